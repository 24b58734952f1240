"""Feedback laws: functions of (t, q, qd) that give joint forces for `simulate`."""

from ._decoupled import RateFeedback as RateFeedback
from ._decoupled import SetPoint as SetPoint
from ._decoupled import rate_feedback as rate_feedback
from ._decoupled import set_point as set_point
from ._joint_space import ComputedTorque as ComputedTorque
from ._joint_space import PDGravity as PDGravity
from ._joint_space import computed_torque as computed_torque
from ._joint_space import pd_gravity as pd_gravity
