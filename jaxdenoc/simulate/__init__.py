"""Motions in time."""

from . import events as events
from ._dataset import Dataset as Dataset
from ._generate import generate as generate
from ._memory import rollout_memory as rollout_memory
from ._rollout import rollout as rollout
from ._simulate import simulate as simulate
from ._status import Status as Status
from ._torque import TorqueTable as TorqueTable
from ._trajectory import Trajectory as Trajectory
