"""Motions in time."""

from ._simulate import simulate as simulate
from ._trajectory import Trajectory as Trajectory
