"""How large are the errors, in float32 and float64, beside fifty digits?

Inverse and forward dynamics by each method, the mass matrix, forward and reverse mode
of forward dynamics, and a second of motion in 128 semi-implicit steps, each against
`exact.py`. For both types model and state are rounded first, and the exact result is
that of the rounded numbers: what is left is the error of the arithmetic,

    ‖x - x*‖ / ‖x*‖ ,   median and worst of some draws; "fails" is not finite.

    python benchmarks/precision.py [--links 1 8 64 512] [--spreads 0 1 2]
        [--robots panda ur5 solo12] [--draws 12] [--rollout-links 64]
        [--quick] [--verbose] [--json PATH]

The robots, of revolute joints where nothing else is said:

- straight n: equal rods along the first axis at q = 0, in motion; "turned" are the
  same, at rest, with the first joint at a random angle;
- spread s, n: random chains, masses times 10^±s, lengths times 10^(-0.75s...0.25s), in
  random states, in motion;
- Panda, UR5, and Solo12 with a free base, in random states, in motion; "talos" can be
  asked for, but takes long to compile.

Rates, forces and directions of derivatives are standard normal. "input" is the
recursion in float64 on the float32 numbers: of the error that is what their rotations
are off the nearest rotations (`exact.py`), and no arithmetic in float32 can avoid.

A motion is compared at its end, q and θ̇ as one vector, and its length is limited,
because fifty digits of 512 links for 128 steps take long. "growth" is how many times
as large a change of the start in all q and θ̇ is after that second, in exact arithmetic
and relative to the end: no arithmetic can have an error much below growth times its
rounding, 6e-8 in float32 and 1e-16 in float64. Draws whose rates pass 1e9 within the
second are left out: for them the steps are too long in any arithmetic.

The last table is the README's, which `tests/test_precision.py` holds: the worst of all
draws with a margin of a half, rounded up to one digit. There are a third as many draws
of more than 64 links, and a fourth as many motions. Needs the extra `test` (gmpy2,
mpmath, example-robot-data), and ten to fifteen minutes, most of them to compile.
"""

import argparse
import json
import math
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import common
import equinox as eqx
import exact
import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from rich.console import Console
from rich.progress import track

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402

TYPES = ("float32", "float64")
GROUPS = ("straight", "ordinary", "spread 1", "spread 2")
STEPS, DT = 128, 1 / 128
MARGIN = 1.5


class State(NamedTuple):
    """What the functions are given. x is τ, or θ̈ for inverse dynamics."""

    q: Any
    qd: Any
    x: Any
    dq: Any
    dqd: Any
    dx: Any
    weights: Any


class Draw(NamedTuple):
    model: Any
    state: State


class Robot(NamedTuple):
    name: str
    group: str | None  # of the contract
    draw: Any  # number -> Draw
    n: int


# robots


@cache
def _chain(n):
    """The names and kinds of all chains of n links, so that they share programs."""
    return jd.robots.rod_chain(n)


def straight(n, k, turned=False):
    model, rng = _named(_chain(n)), np.random.default_rng([k, n, 99])
    state = _state(rng, np.zeros(n), n)
    if turned:
        state = state._replace(q=state.q.copy(), qd=np.zeros(n))
        state.q[0] = rng.uniform(-np.pi, np.pi)
    return Draw(model, state)


def spread_chain(n, s, k):
    rng = np.random.default_rng([k, n, round(10 * s)])
    key = jax.random.key(int(rng.integers(2**31)))
    model = jd.robots.random_chain(key, n, kinds=("revolute",))
    mass = 10.0 ** rng.uniform(-s, s, n)
    length = 10.0 ** rng.uniform(-0.75 * s, 0.25 * s, n)
    before = np.concatenate([[1.0], length[:-1]])
    model = eqx.tree_at(
        lambda m: (m.mass, m.com, m.inertia, m.placement.translation),
        model,
        (
            model.mass * mass,
            model.com * length[:, None],
            model.inertia * (mass * length**2)[:, None, None],
            model.placement.translation * before[:, None],
        ),
    )
    return Draw(_named(model), _state(rng, rng.uniform(-np.pi, np.pi, n), n))


def real(name, k):
    model = _loaded(name)
    q, _ = jd.random_state(model, jax.random.key(k))
    return Draw(model, _state(np.random.default_rng(k), np.asarray(q), model.nv))


_loaded = cache(common.robot)


def _named(model):
    return replace(model, name=f"chain{model.n_links}")


def _state(rng, q, nv):
    qd, x, dqd, dx, weights = rng.normal(size=(5, nv))
    return State(q, qd, x, rng.normal(size=len(q)), dqd, dx, weights)


def robots(links, spreads, real_ones):
    for n in links:
        yield Robot(f"straight {n}", "straight", partial(straight, n), n)
        yield Robot(f"straight {n}, turned", None, partial(straight, n, turned=True), n)
        for s in spreads:
            group = f"spread {s:g}" if s else "ordinary"
            draw = partial(spread_chain, n, s)
            yield Robot(f"spread {s:g}, {n}", group, draw, n)
    for name in real_ones:
        yield Robot(name, "ordinary", partial(real, name), _loaded(name).nv)


# functions: how the library has them, and the exact ones


def _fd(model, s, **options):
    return jd.forward_dynamics(model, s.q, s.qd, s.x, **options)


def _forward_mode(model, s):
    f = partial(jd.forward_dynamics, model)
    return jax.jvp(f, (s.q, s.qd, s.x), (s.dq, s.dqd, s.dx))[1]


def _reverse_mode(model, s):
    f = partial(jd.forward_dynamics, model)
    return jnp.concatenate(jax.vjp(f, s.q, s.qd, s.x)[1](s.weights))


def _rollout(model, s):
    options = {"steps": STEPS, "samples": "ends", "limits": "ignore"}
    motion = jd.rollout(model, s.q, s.qd, None, DT, **options)
    return jnp.concatenate([motion.q[-1], motion.qd[-1]])


def _end(robot, q, qd):
    q, qd = robot.rollout(q, qd, DT, STEPS)
    return q + qd


EXACT = {
    "ID": lambda robot, s: robot.inverse_dynamics(s.q, s.qd, s.x),
    "FD": lambda robot, s: robot.forward_dynamics(s.q, s.qd, s.x),
    "ℳ": lambda robot, s: robot.mass_matrix(s.q),
    "slope": lambda robot, s: robot.slope(*s[:6]),
    "gradient": lambda robot, s: robot.gradient(s.q, s.qd, s.x, s.weights),
    "motion": lambda robot, s: _end(robot, s.q, s.qd),
}
FUNCTIONS = {  # as the README names them: the exact one, and the library's
    "ID": ("ID", lambda m, s: jd.inverse_dynamics(m, s.q, s.qd, s.x)),
    "ID, parallel": (
        "ID",
        lambda m, s: jd.inverse_dynamics(m, s.q, s.qd, s.x, method="parallel"),
    ),
    "FD": ("FD", _fd),
    "FD, refine=1": ("FD", partial(_fd, refine=1)),
    "FD, parallel": ("FD", partial(_fd, method="parallel")),
    "FD, parallel, refine=1": ("FD", partial(_fd, method="parallel", refine=1)),
    "FD, dense": ("FD", partial(_fd, method="dense")),
    "ℳ": ("ℳ", lambda m, s: jd.mass_matrix(m, s.q)),
    "FD, forward mode": ("slope", _forward_mode),
    "FD, reverse mode": ("gradient", _reverse_mode),
    "motion": ("motion", _rollout),
}
UNDONE: dict[tuple[str, str], str] = {}  # what XLA could not compile, and why
PROGRAMS = {name: jax.jit(run) for name, (_, run) in FUNCTIONS.items()}


@cache
def possible(name):
    """Whether the library has it: `refine` is not for every method in all versions."""
    model, state = straight(1, 0)
    try:
        jax.eval_shape(FUNCTIONS[name][1], model, jt.map(jnp.asarray, state))
    except ValueError:
        return False
    return True


def errors(draw, dtype, names):
    """The error of each function on the model and state, rounded to that type."""
    model, state = common.in_type((draw.model, jt.map(jnp.asarray, draw.state)), dtype)
    robot = exact.Robot(model)
    numbers = State(*map(robot.numbers, state))
    known: dict[str, Any] = {}

    def error(name, found):
        which = FUNCTIONS[name][0]
        if which not in known:
            known[which] = exact.halves(EXACT[which](robot, numbers))
        return exact.error(found, known[which])

    found = {}
    for name in filter(possible, names):
        try:
            if (model.name, name) in UNDONE:
                continue
            result = PROGRAMS[name](model, state)
        except jax.errors.JaxRuntimeError as problem:
            UNDONE[model.name, name] = str(problem).splitlines()[0]
        else:
            found[name] = error(name, result)
    if dtype == "float32" and "FD" in names:
        same = common.in_type((model, state), "float64")
        found["input"] = error("FD", PROGRAMS["FD"](*same))
    return found


def growth(draw, change=1e-12):
    """Of a change of the start in all q and θ̇, over the second, beside the end."""
    robot = exact.Robot(draw.model)
    s = State(*map(robot.numbers, draw.state))
    rng, change = np.random.default_rng(0), robot.by.number(change)
    dq, dqd = ([change * x for x in robot.numbers(rng.normal(size=robot.nv))]
               for _ in range(2))  # fmt: skip
    moved = [x + y for x, y in zip(s.qd, dqd, strict=True)]
    end = _end(robot, s.q, s.qd)
    other = _end(robot, robot.integrate(s.q, dq), moved)
    apart = [x - y for x, y in zip(other, end, strict=True)]
    norms = [np.linalg.norm(exact.halves(x)[0]) for x in (apart, end)]
    return float(norms[0] / norms[1] / change)


# tables


def measured(robot, draws, most):
    """{type: {function: errors}} of one robot, and the growths of its motions."""
    names = [name for name in FUNCTIONS if name != "motion"]
    found: dict[str, dict[str, list]] = {dtype: {} for dtype in TYPES}
    growths = []
    for k in range(draws):
        draw = robot.draw(k)
        moves = ["motion"] * (robot.n <= most and k < max(draws // 4, 1))
        try:
            growths += [growth(draw) for _ in moves]
        except OverflowError:
            moves = []
        for dtype in TYPES:
            for name, value in errors(draw, dtype, names + moves).items():
                found[dtype].setdefault(name, []).append(value)
    return found | {"growth": growths}


def cell(values):
    if not values:
        return "–"
    values = [math.inf if math.isnan(x) else x for x in values]
    return " / ".join(
        f"{x:.0e}".replace("e-0", "e-").replace("e+0", "e") if x < 1e30 else "fails"
        for x in (float(np.median(values)), max(values))
    )


def rounded_up(x):
    """To one digit, after the margin; "fails" where there is no digit left."""
    if not x * MARGIN < 0.1:
        return "fails"
    power = math.floor(math.log10(x * MARGIN))
    digit = math.ceil(x * MARGIN / 10.0**power)
    return f"1e{power + 1}" if digit == 10 else f"{digit}e{power}"


def contract(found, robots):
    """The README's table: upper bounds per function, group and type, as Markdown."""
    groups = [g for g in GROUPS if any(r.group == g for r in robots)]
    heads = [f"{g}, {dtype}" for g in groups for dtype in TYPES]
    lines = [f"| | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    for name in FUNCTIONS:
        if name == "motion" or not possible(name):
            continue
        cells = []
        for group in groups:
            for dtype in TYPES:
                values = [
                    math.inf if math.isnan(x) else x
                    for r in robots
                    if r.group == group
                    for x in found[r.name][dtype].get(name, [])
                ]
                cells.append(rounded_up(max(values)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, nargs="*", default=[1, 8, 64, 512])
    parser.add_argument("--robots", nargs="*", default=["panda", "ur5", "solo12"])
    parser.add_argument("--spreads", type=float, nargs="+", default=[0, 1, 2])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--rollout-links", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="few and short robots")
    parser.add_argument("--verbose", action="store_true", help="the time after each")
    parser.add_argument(
        "--json", type=Path, help="kept after each robot; goes on there"
    )
    args = parser.parse_args(argv)
    console = Console(width=180)
    console.print(common.about())
    if args.quick:
        args.links, args.robots, args.rollout_links = [1, 8], ["panda"], 8
        args.draws = min(args.draws, 3)
    all_robots = list(robots(args.links, args.spreads, args.robots))
    kept = args.json is not None and args.json.exists()
    found = json.loads(args.json.read_text())["errors"] if kept else {}
    start = perf_counter()
    for robot in track(all_robots, "Measuring", console=console, transient=True):
        if robot.name in found:
            continue
        draws = args.draws if robot.n <= 64 else max(args.draws // 3, 1)
        found[robot.name] = measured(robot, draws, args.rollout_links)
        common.write(args.json, {"errors": found})
        if args.verbose:
            console.print(f"{robot.name}: {perf_counter() - start:.0f} s")
    for dtype in TYPES:
        names = [name for name in FUNCTIONS if name != "motion" and possible(name)]
        names += ["input"] * (dtype == "float32")
        rows = [
            {"robot": r.name} | {f: cell(found[r.name][dtype].get(f)) for f in names}
            for r in all_robots
        ]
        common.show(console, f"{dtype}: median / worst", rows)
    rows = [
        {"robot": r.name}
        | {dtype: cell(found[r.name][dtype].get("motion")) for dtype in TYPES}
        | {"growth": cell(found[r.name]["growth"])}
        for r in all_robots
        if r.n <= args.rollout_links
    ]
    common.show(console, "A second of motion: median / worst", rows)
    for (name, function), why in UNDONE.items():
        console.print(f"not compiled: {function} of {name}: {why}", markup=False)
    console.print(contract(found, all_robots), soft_wrap=True, markup=False)


if __name__ == "__main__":
    main()
