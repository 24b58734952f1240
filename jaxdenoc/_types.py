"""Array types. `n` counts links, `v` velocities; 6 is [angular, linear]."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float

Number = float | int  # of a person's input, as is
Numbers = Sequence[Any] | np.ndarray | Array  # a row or a table of them

Scalar = Float[Array, "..."]  # a number; outside a step, a row of them, one per link
Position = Float[Array, " q"]
Joints = Float[Array, " v"]
Columns = Float[Array, "v *more"]  # one per velocity, or a row of them, or lanes
Spatial = Float[Array, "n 6"]
Poses = Float[Array, "n 4 4"]
Square = Float[Array, "v v"]
