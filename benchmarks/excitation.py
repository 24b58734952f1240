"""How much better is a motion that was looked for than the best of many random ones?

    python benchmarks/excitation.py --random 1000

On the Panda arm (7 joints), for its base parameters and those of its joints. The
random motions are of the same family: as many harmonics, the same period, at rest at
both ends, drawn large and made smaller until they just keep to the same limits. What is
compared is the condition number of the normal matrix with columns of length one, at the
same times. Limits are looked at again on a grid ten times as fine as the check's.
"""

import argparse
from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

from identification import panda  # noqa: E402

import jaxdenoc as jd  # noqa: E402
from jaxdenoc.identify._excitation import random_series  # noqa: E402
from jaxdenoc.identify._fourier import motion  # noqa: E402
from jaxdenoc.identify._information import Question, condition, logdet  # noqa: E402
from jaxdenoc.identify._limits import (  # noqa: E402
    FINE,
    feasible,
    limits_of,
    torques_of,
    used,
)

PERIOD, HARMONICS, SHARE = jnp.asarray(10.0), 5, 0.95
TIMES = jnp.linspace(0.0, 10.0, 1001)


@eqx.filter_jit
def look(model, limits, question, c):
    c, ok = feasible(model, limits, c, PERIOD)
    F = question.matrix(model, motion(c, TIMES, PERIOD))
    share = jnp.max(jnp.stack(list(used(model, limits, c, PERIOD).values())))
    return ok, condition(F), logdet(F), share


def random_motions(model, limits, question, count):
    c = random_series(limits, HARMONICS, jax.random.key(1), count, at_rest=True)
    found = [look(model, limits, question, x) for x in c]
    return (np.array(x) for x in zip(*found, strict=True))


def left(model, limits, found):
    """What is left of every limit, ten times as finely."""
    t = jnp.linspace(0.0, 10.0, 10 * FINE * HARMONICS + 1)
    x = motion(jnp.asarray(found.coefficients), t, PERIOD)
    shares = limits.shares(x, eqx.filter_jit(torques_of)(model, x))
    return {s: 1 - SHARE * float(y.max()) for s, y in shares.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--starts", type=int, default=4)
    args = parser.parse_args()
    model = panda()
    base = jd.base_parameters(model)
    limits = limits_of(model, None, None, None, None, SHARE)
    columns = jnp.asarray(base.parameters.columns[base.independent])
    question = Question(columns, limits.tau)
    start = perf_counter()
    ok, kappa, volume, share = random_motions(model, limits, question, args.random)
    print(
        f"{args.random} random motions, {ok.sum()} within limits, {base.rank} base "
        f"parameters, {perf_counter() - start:.0f} s\n"
        f"  they use {np.median(share):.2f} of the tightest limit (median)\n"
        f"  condition number: best {kappa[ok].min():.1f}, median "
        f"{np.median(kappa[ok]):.1f}; log det: best {volume[ok].max():.2f}"
    )
    for criterion in ("condition", "logdet"):
        start = perf_counter()
        how = {"criterion": criterion, "steps": args.steps, "starts": args.starts}
        found = jd.excitation(model, period=10.0, share=SHARE, **how)
        again = {s: f"{y:.3f}" for s, y in left(model, limits, found).items()}
        print(
            f"excitation, {criterion}: condition number {found.condition:.1f}, "
            f"{found.condition / kappa[ok].min():.2f} of the best random one, log det "
            f"{found.logdet:.2f}, {perf_counter() - start:.0f} s\n"
            f"  left of limits on the finer grid: {again}"
        )


if __name__ == "__main__":
    main()
