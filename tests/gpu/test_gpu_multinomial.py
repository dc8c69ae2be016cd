"""The multinomial loss on the GPU (or its emulation) against NumPy, the Cython kernels and the CPU's fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

from sparsekit._l1.losses.multinomial import MultinomialLoss


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("gram", [False, True])
def test_models(cupy, make, gram, monkeypatch):
    from sparsekit._l1.losses import multinomial

    if not gram:
        monkeypatch.setattr(multinomial, "MAX_SIDE", 0)
    rng = np.random.default_rng(0)
    X = make(rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.6))
    given = X, rng.integers(5, size=60), rng.random(60) + 0.2
    losses = [
        MultinomialLoss(X, codes, 5, s, fit_intercept=True)
        for X, codes, s in (given, [to_device(cupy, a) for a in given])
    ]
    x = 0.5 * rng.standard_normal(losses[0].n_variables)
    chosen = np.sort(rng.choice(len(x), len(x) * 2 // 3, replace=False))
    v = rng.standard_normal(len(chosen))
    found = []
    for loss, convert in zip(losses, (np.asarray, cupy.asarray)):
        problem = loss.problem()
        problem.start(convert(x))
        dz = problem.move_all().direction(convert(np.ones(len(x))))
        operator, move = problem.model(convert(chosen), 0.1)
        found.append(
            [
                operator.matvec(convert(v)), 1e60 * operator.matvec(convert(-1e-60 * v)), operator.diag,
                move.direction(convert(v)), problem.gradient(), problem.stretch(dz), problem.lipschitz(),
            ]
        )  # fmt: skip
    for mine, theirs in zip(found[1], found[0]):
        mine = cupy.asnumpy(mine)
        # a sparse design's bound has another tie of rows and columns, or the trace
        rtol = 1e-10 if gram else 1e-5
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())
