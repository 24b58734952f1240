"""Whether derivatives of the dynamics go by the closed rules, or plainly."""

from typing import Literal

import jax

_rules = jax.make_user_context("closed")


def autodiff_rules(rules: Literal["closed", "plain"]):
    """Within it, derivatives of the dynamics go by closed rules, or plainly.

    "closed", which is what holds outside of it, differentiates forward and inverse
    dynamics by the implicit function and the gradient of virtual work [MATH 10.1];
    "plain" sends autodiff through every line of the recursions: for comparison. The
    two differ in one point. A rotation (`placement.rotation`) and an axis are kept as
    nine and three numbers; the closed rules differentiate along rotations and unit
    vectors only, so their gradients have no part that leads off these.

        with jd.autodiff_rules("plain"):
            slow = jax.grad(loss)(model)

    `jax.jit` takes notice of it: what was compiled one way does not run the other.
    """
    if rules not in ("closed", "plain"):
        raise ValueError(f"rules is '{rules}'; it can be 'closed' or 'plain'.")
    return _rules(rules)


def closed_rules() -> bool:
    return _rules.value == "closed"
