"""Spatial algebra in scalar components, for one link in base axes."""

from ._angles import sin_versin as sin_versin
from ._inertia import ArticulatedInertia as ArticulatedInertia
from ._inertia import RigidInertia as RigidInertia
from ._matrices import Mat3 as Mat3
from ._matrices import Sym3 as Sym3
from ._matrices import both as both
from ._matrices import outer as outer
from ._matrices import outer_sym as outer_sym
from ._matrices import rotate as rotate
from ._matrices import second_moment as second_moment
from ._matrices import skew as skew
from ._matrices import skew_times as skew_times
from ._matrices import with_transpose as with_transpose
from ._vectors import Screw as Screw
from ._vectors import Shift as Shift
from ._vectors import Twist as Twist
from ._vectors import Vec3 as Vec3
from ._vectors import Wrench as Wrench
