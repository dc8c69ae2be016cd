"""Implicit steps of one row as scalar equations, against 60 digits of mpmath."""

import mpmath
import numpy as np
import pytest

from sparsekit._cython.extreme import _extreme as kernels


def residuals(z, r, rho, eta, s, rho_y, u_old, b, u):
    """Both stationarity conditions at the kernel's answer, relative, 60 digits; the second in logarithms."""
    with mpmath.workdps(60):
        b = [mpmath.mpf(float(v)) for v in b]
        u, u_old, eta, s, rho_y = (mpmath.mpf(float(v)) for v in (u, u_old, eta, s, rho_y))
        c = mpmath.fsum(b)
        # u comes out of differences of numbers of the size of z
        terms = [u, u_old, eta, eta * mpmath.exp(-u), c, max(abs(mpmath.mpf(float(v))) for v in z) * 1e-5]
        first = (u - u_old + eta * (1 - mpmath.exp(-u)) - c) / max(abs(t) for t in terms)
        second = 0
        for zk, rk, rhok, bk in zip(z, r, rho, b):
            zk, rk, rhok = (mpmath.mpf(float(v)) for v in (zk, rk, rhok))
            if bk < mpmath.mpf("1e-250"):  # near the smallest numbers: nothing moves
                assert zk - u < -500
                continue
            right = zk - s * rhok * bk - s * rho_y * c - u + mpmath.log(eta * rk)
            size = max(1, abs(zk), s * rhok * bk, s * rho_y * c, abs(u))
            second = max(second, abs(mpmath.log(bk) - right) / size)
        return float(abs(first)), float(second)


@pytest.mark.parametrize("eta", [1e-6, 1e-2, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("s", [1e-300, 1e-4, 1.0, 50.0, 1e8])
def test_implicit_step_with_one_negative(eta, s):
    for z in (-1e4, -800.0, -30.0, -2.0, 0.0, 1.0, 8.0, 40.0, 900.0, 1e5):
        for u_old in (0.0, 1e-3, 0.7, 4.0, 13.0, 700.0):
            for r in (1.0, 9.0, 1e6):
                b, u = kernels.implicit_one(z, np.log(r), eta, 2 * s, u_old)
                assert np.isfinite([b, u]).all() and b >= 0
                first, second = residuals([z], [r], [1.0], eta, s, 1.0, u_old, [b], u)
                assert first < 1e-9 and second < 1e-9, (z, u_old, r, first, second)


@pytest.mark.parametrize("eta", [1e-3, 0.1, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("s", [1e-3, 1.0, 1e3])
def test_implicit_step_with_many_negatives(eta, s):
    rng = np.random.default_rng(0)
    for m, size in ((1, 1.0), (2, 5.0), (3, 2.0), (8, 5.0), (10, 5.0), (5, 300.0)):
        for u_old in (0.0, 0.3, 5.0):
            z = size * rng.standard_normal(m)
            r, rho = rng.uniform(1.0, 100.0, m), rng.uniform(0.3, 1.0, m)
            b = z.copy()
            c, u = kernels.implicit_many(b, r, rho, eta, s, 0.8, u_old)
            assert np.isfinite(b).all() and np.isclose(c, b.sum(), rtol=1e-12)
            first, second = residuals(z, r, rho, eta, s, 0.8, u_old, b, u)
            assert first < 1e-9 and second < 1e-9, (m, size, u_old, first, second)


def test_rows_side_by_side():
    """Ordinary and extreme rows next to each other: each as if alone, to the documented accuracy."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(1500):
        n = rng.integers(1, 5)
        z, u_old = 5 * rng.standard_normal(n) - 3, rng.uniform(0, 8, n)
        if rng.random() < 0.1:
            z[0] *= 1e3
        eta, sigma, log_r = 10 ** rng.uniform(-4, 5, n), 10 ** rng.uniform(-2, 1, n), rng.uniform(0, 14, n)
        b, u = sigma.copy(), u_old.copy()
        kernels.implicit_rows(z, log_r, eta, b, u)
        for i in range(n):
            alone, v = sigma[i : i + 1].copy(), u_old[i : i + 1].copy()
            kernels.implicit_rows(z[i : i + 1], log_r[i : i + 1], eta[i : i + 1], alone, v)
            assert alone[0] == b[i] and v[0] == u[i]
            exact = kernels.implicit_one(z[i], log_r[i], eta[i], sigma[i], u_old[i])
            worst = max(
                worst, abs(b[i] - exact[0]) / max(exact[0], 1e-250), abs(u[i] - exact[1]) / (1 + abs(z[i]))
            )
    assert worst < 2e-8
