"""Rows by numbers, in slices: the same as indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc._take import MOST_RUNS, take

X = jnp.arange(80.0).reshape(40, 2)


@pytest.mark.parametrize(
    "indices",
    [
        [3],
        list(range(40)),
        list(range(39, -1, -1)),
        [5, 4, 3, 2, 1, 0, 6, 7, 8],
        [0, 0, 0, 1, 2, 3, 3],
        [7, 6, 7, 8, 8, 7],
        np.random.default_rng(0).permutation(40).tolist(),
        [2 * k for k in range(20)] * (MOST_RUNS // 10),
    ],
    ids=lambda i: f"{len(i)} from {i[0]}",
)
def test_take(indices):
    np.testing.assert_array_equal(take(X, indices), X[np.array(indices)])


def test_neighbours_are_slices_and_many_runs_are_a_gather():
    def operations(indices):
        return str(jax.make_jaxpr(lambda x: take(x, indices))(X))

    assert "gather" not in operations([5, 4, 3, 2, 1, 0, 6, 7, 8])
    assert "gather" in operations([2 * k for k in range(20)] * 2)
