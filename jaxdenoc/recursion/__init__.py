"""Recursions along the links: each one a short function over one of the two sweeps."""

from ._composite import composite_inertias as composite_inertias
from ._diagonal import Motion as Motion
from ._diagonal import accelerations as accelerations
from ._diagonal import inertia_rates as inertia_rates
from ._diagonal import motion as motion
from ._diagonal import twist_fields as twist_fields
from ._kinematics import Body as Body
from ._kinematics import Posture as Posture
from ._kinematics import bodies as bodies
from ._kinematics import posture as posture
from ._kinematics import twists as twists
from ._kinematics import wrenches as wrenches
from ._mobility import Mobility as Mobility
from ._mobility import mobilities as mobilities
from ._newton_euler import joint_forces as joint_forces
from ._riccati import Articulated as Articulated
from ._riccati import innovations as innovations
from ._riccati import riccati as riccati
from ._sweep import base_to_tip as base_to_tip
from ._sweep import tip_to_base as tip_to_base
from ._triangular import solve_U as solve_U
from ._triangular import solve_UT as solve_UT
from ._triangular import times_U as times_U
from ._triangular import times_UT as times_UT
