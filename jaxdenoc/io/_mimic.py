"""Joints that follow others, which a model has no place for."""

from ._xml import Node


def held_joints(joints: dict[str, Node], mimic: str) -> dict[str, float]:
    """The joints to hold, and where."""
    follows: dict[str, tuple[str, float, float]] = {}
    for name, joint in joints.items():
        node = joint.child("mimic")
        if node is None or joint.get("type") in ("fixed", "floating"):
            continue
        leader = node.get("joint")
        if mimic == "refuse":
            node.refuse(
                f"it follows joint '{leader}', which a model cannot express. Load with "
                "mimic='free' to make it independent or mimic='lock' to hold it still."
            )
        joint.set_aside(("mimic",), f"({mimic})")
        if mimic == "free":
            continue
        if leader not in joints:
            node.refuse(
                f"there is no joint '{leader}' to follow. Name one that is there, or "
                "load with mimic='free'."
            )
        follows[name] = (
            leader,
            node.number("multiplier", 1.0),
            node.number("offset", 0.0),
        )
    return {name: _resting(name, follows, joints) for name in follows}


def _resting(name: str, follows: dict, joints: dict[str, Node]) -> float:
    """Where a joint is while the one at the head of its line is at zero."""
    value, scale, seen = 0.0, 1.0, set()
    while name in follows:
        if name in seen:
            joints[name].refuse("it mimics itself. Remove one <mimic> of the circle.")
        seen.add(name)
        name, multiplier, offset = follows[name]
        value, scale = value + scale * offset, scale * multiplier
    return value
