"""What do other libraries need for the same numbers on the same robot?

One measurement of one peer in one process, so that XLA's flags and the precision are
set for it alone and a peer that hangs can be ended. Prints one line of JSON.

    python benchmarks/peers.py PEER QUANTITY --urdf FILE [--batch 4096]
        [--dtype float64] [--repeats 20] [--floating] [--states FILE.npz]
        [--steps 1000] [--dt 0.001] [--mode MODE]

PEER: mujoco, mjx, brax, jaxsim, frax, adam, pinocchio. QUANTITY: "inverse dynamics",
"forward dynamics", "mass matrix", "FD Jacobian", "FD VJP", "rollout", "rollout
gradient". A benchmark beside this one says `from peers import measure`, which starts
this program.

The work is done by the package of the same name, one small module per peer.
"""

from peers.run import main  # the package: it comes before this file in an import

if __name__ == "__main__":
    main()
