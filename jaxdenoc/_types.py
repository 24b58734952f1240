"""Array types. `n` counts links, `v` velocities; 6 is [angular, linear]."""

from jaxtyping import Array, Float

Scalar = Float[Array, "..."]  # a number; outside a step, a row of them, one per link
Position = Float[Array, " q"]
Joints = Float[Array, " v"]
Spatial = Float[Array, "n 6"]
Poses = Float[Array, "n 4 4"]
Square = Float[Array, "v v"]
