"""What a robot is: its topology, its numbers, its joints, and ways to build one."""

from ._build import Link as Link
from ._build import build as build
from ._build import links_of as links_of
from ._configuration import configuration_rate as configuration_rate
from ._configuration import difference as difference
from ._configuration import integrate as integrate
from ._configuration import neutral as neutral
from ._configuration import random_state as random_state
from ._dh import DHLink as DHLink
from ._dh import from_dh as from_dh
from ._frames import locate as locate
from ._joints import Joint as Joint
from ._joints import carried as carried
from ._joints import joints as joints
from ._joints import turn_and_slide as turn_and_slide
from ._lock import lock as lock
from ._model import Model as Model
from ._model import Placement as Placement
from ._rows import Rows as Rows
from ._tree import Tree as Tree
