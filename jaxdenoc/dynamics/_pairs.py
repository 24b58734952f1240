"""Dense matrices from pairs of rows: what an ancestor reads of a descendant.

Entry (j, i) of the mass matrix, of U and of the Coriolis matrix is a product of a
six-vector of row j and one of row i, where j lies between i and the base. Taken about
one point for the whole robot, the origin of link 0, every entry is a plain product.
The six-vectors may have the lanes of a batch behind their rows; so has the matrix then.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model import Rows, Tree
from ..recursion import Posture
from ..spatial import Screw, Shift, Twist, Vec3, Wrench

Table = Float[Array, "v v *lanes"]


def to_common_point(here: Posture) -> Shift:
    """The shift from every row's origin to that of row 0."""
    o = here.o
    return Shift(o - Vec3(o.x[0], o.y[0], o.z[0]))


def twists_there(shift: Shift, S: Twist | Screw) -> Twist:
    return Twist(S.w, S.v - S.w.cross(shift.l))


def ancestors(tree: Tree, S: Twist, f: Wrench) -> Table:
    """`[j, i] = S_j · f_i` where j is i or between i and the base; zero elsewhere."""

    def column(a):
        return a[:, None]

    def row(a):
        return a[None, :]

    def dot(a: Vec3, b: Vec3):
        return column(a.x) * row(b.x) + column(a.y) * row(b.y) + column(a.z) * row(b.z)

    return where(tree.ancestry, dot(S.w, f.n) + dot(S.v, f.f))


def descendants(tree: Tree, f: Wrench, S: Twist) -> Table:
    """`[i, j] = f_i · S_j` where j lies strictly between i and the base."""
    return strictly(jnp.swapaxes(ancestors(tree, S, f), 0, 1))


def strictly(X: Table) -> Table:
    """X without its diagonal."""
    return where(~np.eye(len(X), dtype=bool), X)


def where(mask: np.ndarray, X: Table) -> Table:
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (X.ndim - 2)), X, 0)


def in_order(rows: Rows, X: Table) -> Table:
    """From row order to that of `qd`, both ways."""
    X = jnp.swapaxes(rows.to_velocities(X), 0, 1)
    return jnp.swapaxes(rows.to_velocities(X), 0, 1)
