"""How many multiplications and additions does a robot of n revolute joints cost?

The papers count them by hand and give a law in n; here they are counted in the jaxpr,
the list of operations that JAX compiles, of `inverse_dynamics` and `forward_dynamics`.
What depends on the state (q, qd, and qdd or tau) is counted apart from what depends on
the model alone, which a program that keeps its model fixed has to do only once.

    python benchmarks/operation_counts.py [--max-n 20] [--json PATH]
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params
from rich.console import Console
from rich.table import Table

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc._tiles import no_tiles  # noqa: E402
from jaxdenoc.model import joints  # noqa: E402
from jaxdenoc.recursion import base_to_tip, bodies  # noqa: E402
from jaxdenoc.spatial import Mat3  # noqa: E402

FUNCTIONS = {
    "inverse dynamics": jd.inverse_dynamics,
    "forward dynamics": jd.forward_dynamics,
}
# Laws of the papers, revolute serial chains: coefficients of 1, n, n², n³ in the
# multiplications, then in the additions [Saha 1999, Tables 1 and 2; MATH 17].
PAPERS = {
    "inverse dynamics": {
        "Hollerbach 1980": ((-277, 412), (-201, 320)),
        "Luh et al. 1980": ((-48, 150), (48, 131)),
        "Walker & Orin 1982": ((-22, 137), (-11, 101)),
        "Saha 1999": ((-44, 120), (-55, 97)),
        "Khalil et al. 1986": ((-92, 105), (-86, 94)),
        "Angeles et al. 1989": ((-109, 105), (-105, 90)),
        "Balafoutis et al. 1988": ((-69, 93), (-65, 81)),
    },
    "forward dynamics": {
        "Saha 1999": ((-335, 201), (-361, 193)),
        "Featherstone 1983": ((-198, 199), (-173, 174)),
        "Walker & Orin 1982": (
            (-47, Fraction(115, 3), Fraction(23, 2), Fraction(1, 6)),
            (-46, Fraction(233, 6), 7, Fraction(1, 6)),
        ),
    },
}
AT = (6, 12)
WHY = (
    "The papers work in the axes of the links, use that a DH joint turns about z, and "
    "strike out by hand each product with a known 0 or 1. Here one formula without "
    "branches serves any axis and every kind of joint, all links alike and in base "
    "axes (turning axes, offsets and inertias there is {M}n M and {A}n A of the "
    "forward count), the zeros are multiplied as well, and the polynomials of sine "
    "and cosine are counted."
)


@dataclass
class Count:
    """Operations on float scalars: with the state in them, and without."""

    state: Counter = field(default_factory=Counter)
    model: Counter = field(default_factory=Counter)

    def add(self, other: "Count", times: int = 1) -> None:
        for mine, theirs in ((self.state, other.state), (self.model, other.model)):
            for kind, number in theirs.items():
                mine[kind] += times * number


def operations(eqn) -> dict[str, int]:
    """Scalar operations of one primitive: M, A, or what else it is called."""
    name, out = eqn.primitive.name, eqn.outvars[0].aval
    size = int(np.prod(getattr(out, "shape", ()), dtype=int))
    if not jnp.issubdtype(getattr(out, "dtype", np.int32), jnp.floating):
        return {}
    if name in ("mul", "div", "square"):
        return {"M": size}
    if name in ("add", "sub", "add_any"):
        return {"A": size}
    if name == "integer_pow":
        return {"M": size * max(abs(eqn.params["y"]) - 1, 1)}
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        terms = int(np.prod([shape[k] for k in contracted], dtype=int))
        return {"M": size * terms, "A": size * (terms - 1)}
    if name == "reduce_sum":
        return {"A": int(np.prod(eqn.invars[0].aval.shape, dtype=int)) - size}
    return {name: size}


def count(jaxpr: Jaxpr, depends: list[bool]) -> tuple[Count, list[bool]]:
    """The operations of a jaxpr, and which results depend on the state.

    `depends` says it of the arguments. A result that needs any of them depends on it.
    """
    known = dict(zip(jaxpr.invars, depends, strict=True))
    total = Count()

    def of(var) -> bool:
        return not isinstance(var, Literal) and known.get(var, False)

    for eqn in jaxpr.eqns:
        flags = [of(var) for var in eqn.invars]
        inner = [_open(j) for j in jaxprs_in_params(eqn.params)]
        if eqn.primitive.name == "scan":
            part, results = _scan(eqn, inner[0], flags)
        elif eqn.primitive.name == "while":
            part, results = _while(eqn, flags)
        elif eqn.primitive.name == "cond":
            branches = [count(j, flags[1:]) for j in inner]
            outs = [r for _, r in branches]
            part = max((c for c, _ in branches), key=lambda c: c.state.total())
            results = [flags[0] or any(r) for r in zip(*outs, strict=True)]
        elif inner:  # jit, custom_jvp_call, ...: the first jaxpr is the function itself
            part, results = count(inner[0], flags[len(flags) - len(inner[0].invars) :])
        else:
            part, results = Count(), [any(flags)] * len(eqn.outvars)
            side = part.state if any(flags) else part.model
            side.update(operations(eqn))
        total.add(part)
        known.update(zip(eqn.outvars, results, strict=True))
    return total, [of(var) for var in jaxpr.outvars]


def _scan(eqn, body: Jaxpr, flags: list[bool]) -> tuple[Count, list[bool]]:
    constants, carried = eqn.params["num_consts"], eqn.params["num_carry"]
    carry = slice(constants, constants + carried)
    while True:  # what the carry depends on after a step, it depends on before the next
        part, results = count(body, flags)
        grown = [a or b for a, b in zip(flags[carry], results, strict=False)]
        if grown == flags[carry]:
            break
        flags = [*flags[:constants], *grown, *flags[carry.stop :]]
    total = Count()
    total.add(part, eqn.params["length"])
    return total, results


def _while(eqn, flags: list[bool]) -> tuple[Count, list[bool]]:
    """One pass, as the jaxpr does not say how many there are; listed as such."""
    skip, own = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    carry = [any(flags)] * (len(flags) - skip - own)
    part, _ = count(_open(eqn.params["body_jaxpr"]), flags[skip : skip + own] + carry)
    (part.state if any(flags) else part.model)["while, one pass"] += 1
    return part, carry


def _open(jaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def count_call(function, model: jd.Model, *state: jax.Array) -> Count:
    """What `function(model, *state)` does."""
    with no_tiles():
        jaxpr = jax.make_jaxpr(function)(model, *state).jaxpr
    numbers = len(jax.tree.leaves(model))
    depends = [k >= numbers for k in range(len(jaxpr.invars))]
    return count(jaxpr, depends)[0]


def base_axes(model: jd.Model, q: jax.Array):
    """Rotations, offsets, joint axes and inertias of the links in base axes."""

    def step(R, link):
        joint, body = link
        R, phi, H = joint.place(R)
        return R, (phi, H, body.inertia(R))

    start = Mat3.of(jnp.eye(3))
    return base_to_tip(step, start, (joints(model, q), bodies(model)), model.tree)


def law(ns: list[int], counts: list[int]) -> tuple[float, float, float]:
    """Slope, constant and largest residual of the best line."""
    slope, constant = np.polyfit(ns, counts, 1)
    line = np.round([slope, constant], 6)
    residual = np.max(np.abs(np.polyval(line, ns) - counts))
    return float(line[0]), float(line[1]), float(residual)


def evaluate(coefficients: tuple, n: int) -> float:
    return float(sum(c * n**k for k, c in enumerate(coefficients)))


def measure(ns: list[int]) -> dict:
    """Counts, fitted laws and the papers' numbers, ready for JSON."""
    report = {}
    models = [
        jd.robots.random_chain(jax.random.key(n), n, kinds=("revolute",)) for n in ns
    ]
    for name, function in FUNCTIONS.items():
        counts = [
            count_call(function, model, *[jnp.ones(model.nv)] * 3) for model in models
        ]
        report[name] = {
            "n": ns,
            "counts": [{"state": c.state, "model": c.model} for c in counts],
            "laws": {
                side: {
                    kind: law(ns, [getattr(c, side)[kind] for c in counts])
                    for kind in ("M", "A")
                }
                for side in ("state", "model")
            },
            "papers": {
                paper: {
                    str(n): [round(evaluate(c, n)) for c in coefficients] for n in AT
                }
                for paper, coefficients in PAPERS[name].items()
            },
        }
    per_joint = [
        count_call(base_axes, model, jnp.ones(model.nv)).state for model in models
    ]
    report["base axes"] = {
        kind: law(ns, [c[kind] for c in per_joint]) for kind in ("M", "A")
    }
    return report


def line(slope: float, constant: float) -> str:
    end = "" if not constant else f" {'+' if constant > 0 else '-'} {abs(constant):g}"
    return f"{slope:g}n{end}"


def polynomial(coefficients: tuple) -> str:
    powers = ("", "n", "n²", "n³")
    terms = [(c, powers[k]) for k, c in enumerate(coefficients) if c][::-1]
    text = " ".join(f"{'-' if c < 0 else '+'} {abs(c)}{p}" for c, p in terms)
    return text.removeprefix("+ ")


def show(report: dict, console: Console) -> None:
    for name in FUNCTIONS:
        part = report[name]
        ns = part["n"]
        title = f"{name}, n revolute joints: multiplications M and additions A"
        table = Table(title=title, title_justify="left")
        table.add_column("", no_wrap=True)
        table.add_column("M")
        table.add_column("A")
        for n in AT:
            table.add_column(f"n = {n}", justify="right", no_wrap=True)
        for paper, coefficients in PAPERS[name].items():
            at = [" / ".join(map(str, part["papers"][paper][str(n)])) for n in AT]
            table.add_row(paper, *map(polynomial, coefficients), *at)
        table.add_section()
        for side, words in (
            ("state", "here, of the state"),
            ("model", "here, of the model"),
        ):
            M, A = part["laws"][side]["M"], part["laws"][side]["A"]
            at = [f"{M[0] * n + M[1]:.0f} / {A[0] * n + A[1]:.0f}" for n in AT]
            table.add_row(words, line(*M[:2]), line(*A[:2]), *at)
        console.print(table)
        laws = part["laws"].values()
        worst = max(fitted[kind][2] for fitted in laws for kind in "MA")
        console.print(
            f"Lines through n = {ns[0]}…{ns[-1]}, largest residual {worst:g}."
        )
        others = part["counts"][-1]["state"].items()
        apart = ", ".join(f"{k} {v}" for k, v in others if k not in ("M", "A"))
        console.print(f"Besides, of the state, at n = {ns[-1]}: {apart}.\n")
    slopes = {kind: f"{report['base axes'][kind][0]:g}" for kind in ("M", "A")}
    console.print(WHY.format(**slopes))


def main(argv: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description="Counts operations.")
    parser.add_argument("--max-n", type=int, default=20, help="longest chain (20)")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    args = parser.parse_args(argv)
    if args.max_n < 3:
        parser.error("--max-n must be 3 or more: a line needs points to miss")
    report = measure(list(range(2, args.max_n + 1)))
    show(report, Console())
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(report, indent=1) + "\n")
        print(f"wrote {args.json}")
    return report


if __name__ == "__main__":
    main()
