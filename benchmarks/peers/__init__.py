"""Other libraries' numbers, one subprocess per measurement; see `peers.py`."""

from .caller import best_of_flags as best_of_flags
from .caller import measure as measure
from .names import JAX_PEERS as JAX_PEERS
from .names import PEERS as PEERS
from .names import QUANTITIES as QUANTITIES
