"""Who is asked, what for, and where a peer is found."""

PEERS = {  # name: the distribution that has its version
    "mujoco": "mujoco",
    "mjx": "mujoco-mjx",
    "brax": "brax",
    "jaxsim": "jaxsim",
    "frax": "frax",
    "adam": "adam-robotics",
    "pinocchio": "pin",
}
JAX_PEERS = ("mjx", "brax", "jaxsim", "frax", "adam")
QUANTITIES = (
    "inverse dynamics",
    "forward dynamics",
    "mass matrix",
    "FD Jacobian",
    "FD VJP",
    "rollout",
    "rollout gradient",
)
CORES = 2
GRAVITY = 9.81


class NotOffered(Exception):
    """The peer has no such quantity, or not for this robot or precision."""
