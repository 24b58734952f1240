"""From logs to a robot: what an arm of seven joints weighs, and how sure that is.

The drawing of an arm is wrong by some per cent in every mass, mass centre and moment,
and says nothing of friction. A motion is found that shows as much as it can within the
joints' limits; the arm follows it under a controller that knows the drawing only, and
what encoders and torque sensors say of it, with noise, goes to a table. From that table
the arm is identified, another motion tells whether it was, and a page of HTML shows
all of it.

    python examples/09_identify_arm.py [folder for the table, the page, the robot]
"""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402

PERIOD, RATE = 6.0, 200  # seconds, and samples in each
ENCODER, SENSOR = 2e-5, 0.01  # noise: radians, and of a joint's usual torque
HOLD = {"kp": 100.0, "kd": 20.0}


def drawing(n):
    """The arm as it was drawn, with the limits of its joints."""
    arm = jd.robots.random_chain(jax.random.key(7), n, kinds=("revolute",))
    return eqx.tree_at(
        lambda m: (m.q_lower, m.q_upper, m.qd_limit),
        arm,
        (jnp.full(n, -2.5), jnp.full(n, 2.5), jnp.full(n, 2.0)),
    )


def built(arm):
    """The arm as it is: other bodies, and joints that rub."""
    theta = jax.vmap(jd.log_cholesky)(jd.inertial_parameters(arm))
    off = jax.random.normal(jax.random.key(1), theta.shape)
    arm = jd.with_inertial_parameters(
        arm, jax.vmap(jd.from_log_cholesky)(theta + 0.05 * off)
    )
    rub = jnp.linspace(0.3, 0.1, arm.nv)
    return eqx.tree_at(lambda m: (m.damping, m.friction), arm, (rub, 0.5 * rub))


def followed(arm, known, plan):
    """The arm under a controller that has the drawing, and what is measured of it."""
    ts = jnp.arange(int(PERIOD * RATE) + 1) / RATE
    law = jd.control.computed_torque(known, plan, **HOLD)
    q, qd, _ = plan(0.0)
    return jd.simulate(arm, q, qd, ts, tau=law, rtol=1e-7, atol=1e-7)


def table(motion, path, seed):
    """Positions and torques with noise, in a table, as a robot's own log has them."""
    rng = np.random.default_rng(seed)
    q, tau = np.asarray(motion.q), np.asarray(motion.tau)
    q = q + ENCODER * rng.normal(size=q.shape)
    tau = tau + SENSOR * tau.std(axis=0) * rng.normal(size=tau.shape)
    names = [f"{x}_joint{k + 1}" for x in ("q", "tau") for k in range(q.shape[1])]
    rows = np.column_stack([motion.t, q, tau])
    head = ",".join(["t", *names])
    np.savetxt(path, rows, "%.9g", ",", header=head, comments="")


def main(out="figures", links=7, steps=300):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    known = drawing(links)
    real = built(known)

    logs, plans = {}, {}
    for seed, name in enumerate(("fit", "held out")):
        how = {"period": PERIOD, "key": jax.random.key(seed), "show": False}
        plans[name] = jd.excitation(known, starts=2, steps=steps, **how)
        path = out / f"log_{name.replace(' ', '_')}.csv"
        table(followed(real, known, plans[name]), path, seed)
        logs[name] = jd.read_measurements(path, known, cutoff=15.0)
    print(plans["fit"])
    print(logs["fit"])

    free = "links", "damping", "friction"
    found = jd.identify(known, logs["fit"], parameters=free, show=False)
    told = found.validate(logs["held out"])
    truth = found.base.project(found.base.parameters.of(real))
    sure = np.abs(found.base_values - truth) / found.base_sigma
    print(f"{found.base.rank} combinations are visible of {len(found.parameters)}")
    print("joint   torque off by, N·m: as drawn   identified   noise")
    for k, joint in enumerate(known.joint_names):
        row = told["prior"][k], told["rms"][k], found.noise[k]
        print(
            f"{joint:10s}                {row[0]:9.4f}    {row[1]:9.4f}  {row[2]:.4f}"
        )
    print(f"{np.mean(sure < 1.96):.0%} of the truth within intervals of 95 %")
    print(f"all links possible bodies: {bool(np.all(found.consistent))}")

    found.report(out / "identified.html", logs["fit"], logs["held out"])
    (out / "drawn.urdf").write_text(jd.to_urdf(known))
    fitted = jd.patched_urdf(out / "drawn.urdf", found.model)
    (out / "fitted.urdf").write_text(fitted)
    print(f"wrote {out / 'identified.html'} and {out / 'fitted.urdf'}")
    return {"found": found, "told": told, "sure": sure, "real": real, "plans": plans}


if __name__ == "__main__":
    main(*sys.argv[1:2])
