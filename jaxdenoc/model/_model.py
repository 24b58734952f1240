"""The model: what a robot is, apart from its state."""

import equinox as eqx
from jaxtyping import Array, Float

from ._check import check_numbers, check_shapes, check_topology
from ._rows import COORDINATES, DEGREES, Rows, rows_of
from ._tree import Tree


class Placement(eqx.Module):
    """Poses, one a row: the axes (as columns) and the origin, in the parent's frame."""

    rotation: Float[Array, "k 3 3"]
    translation: Float[Array, "k 3"]


class Model(eqx.Module):
    """A robot: its topology and names, which are static, and its numbers.

    Link i moves with joint i against link `parent[i]`, -1 being the base. Its body
    frame sits on the joint and moves with the link. Every number is an array leaf and
    nothing derived from the numbers is kept, so that any of them can be changed with
    `eqx.tree_at`, differentiated, and batched with `vmap`, without a new compilation.
    Build one with `jd.load`, `jd.from_dh`, `jd.build` or `jd.robots`.
    """

    # numbers of the links
    mass: Float[Array, " n"]
    com: Float[Array, "n 3"]  # mass centre, body axes
    inertia: Float[Array, "n 3 3"]  # about the mass centre, body axes
    # numbers of the joints
    placement: Placement  # joint i at q = 0, in the frame of link parent[i]
    axis: Float[Array, "n 3"]  # unit vector, body axes
    pitch: Float[Array, " n"]  # metres per radian; of helical joints only
    armature: Float[Array, " v"]
    damping: Float[Array, " v"]
    friction: Float[Array, " v"]
    friction_speed: Float[Array, ""]  # Coulomb friction is friction · tanh(qd / this)
    q_lower: Float[Array, " v"]
    q_upper: Float[Array, " v"]
    qd_limit: Float[Array, " v"]
    tau_limit: Float[Array, " v"]
    # of the whole
    gravity: Float[Array, "3"]  # base axes
    frame_placement: Placement  # of the named frames, in the frame of their link

    tree: Tree
    joint_kinds: tuple[str, ...] = eqx.field(static=True)
    joint_names: tuple[str, ...] = eqx.field(static=True)
    link_names: tuple[str, ...] = eqx.field(static=True)
    frame_names: tuple[str, ...] = eqx.field(static=True, default=())
    frame_links: tuple[int, ...] = eqx.field(static=True, default=())
    base_name: str = eqx.field(static=True, default="base")
    name: str = eqx.field(static=True, default="robot")

    def __check_init__(self):
        check_topology(self)
        check_shapes(self)
        check_numbers(self)

    @property
    def parent(self) -> tuple[int, ...]:
        return self.tree.parent

    @property
    def n_links(self) -> int:
        return len(self.parent)

    @property
    def nv(self) -> int:
        return sum(DEGREES[k] for k in self.joint_kinds)

    @property
    def nq(self) -> int:
        return sum(COORDINATES[k] for k in self.joint_kinds)

    @property
    def floating_base(self) -> bool:
        return self.joint_kinds[0] == "free"

    @property
    def rows(self) -> Rows:
        return rows_of(self.parent, self.joint_kinds)

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """One name per entry of `qd`: the joint's, or the six of a free base."""
        parts = ("wx", "wy", "wz", "vx", "vy", "vz")
        return tuple(
            name
            for joint, kind in zip(self.joint_names, self.joint_kinds, strict=True)
            for name in ([f"{joint}.{s}" for s in parts] if kind == "free" else [joint])
        )

    def __repr__(self) -> str:
        base = "floating" if self.floating_base else "fixed"
        return (
            f"Model('{self.name}': {self.n_links} links, nq={self.nq}, nv={self.nv}, "
            f"{base} base, {getattr(self.mass, 'dtype', self.mass)})"
        )
