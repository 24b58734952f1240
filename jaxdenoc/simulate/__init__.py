"""Motions in time."""

from ._dataset import Dataset as Dataset
from ._generate import generate as generate
from ._rollout import rollout as rollout
from ._simulate import simulate as simulate
from ._status import Status as Status
from ._trajectory import Trajectory as Trajectory
