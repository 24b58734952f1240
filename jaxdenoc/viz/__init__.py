"""Figures of motions. matplotlib is imported when one is drawn, not before."""

from ._joints import Quantity as Quantity
from ._joints import joint_curves as joint_curves
from ._joints import joint_panels as joint_panels
from ._joints import save_figure as save_figure
