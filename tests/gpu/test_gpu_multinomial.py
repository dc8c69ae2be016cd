"""The multinomial loss on the GPU (or its emulation) against NumPy, the Cython kernels and the CPU's fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

from sparsekit._l1.losses.multinomial import MultinomialLoss


def random_problem(n=40, p=9, K=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)).astype(dtype)
    return X, rng.integers(K, size=n), rng.random(n) + 0.2, rng


def losses_of(cupy, X, codes, K, s):
    """The loss in main memory and on the device."""
    there = [to_device(cupy, a) for a in (X, codes, s)]
    return (
        MultinomialLoss(X, codes, K, s, fit_intercept=True),
        MultinomialLoss(*there[:2], K, there[2], fit_intercept=True),
    )


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("gram", [False, True])
def test_models(cupy, make, gram, monkeypatch):
    from sparsekit._l1.losses import multinomial

    if not gram:
        monkeypatch.setattr(multinomial, "MAX_SIDE", 0)
    X, codes, s, rng = random_problem(n=60, K=5)
    losses = losses_of(cupy, make(X), codes, 5, s)
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


def test_host_and_device_together_are_refused(cupy):
    X, codes, s, _ = random_problem(n=30, K=3)
    with pytest.raises(TypeError, match="sample_weight"):
        MultinomialLoss(cupy.asarray(X), cupy.asarray(codes), 3, s)
    with pytest.raises(ValueError, match="codes must be integers"):
        MultinomialLoss(cupy.asarray(X), cupy.asarray(codes + 0.5), 3)
    loss = MultinomialLoss(cupy.asarray(X), cupy.asarray(codes), 3)
    with pytest.raises(TypeError, match=r"cupy\.asarray\(x\)"):
        loss.value(np.zeros(loss.n_variables))
