"""The 25 nonsmooth functions of the NQN paper, on arrays: f(x) gives (value, gradient).

Where f is differentiable the gradient is exact. Elsewhere it is one fixed generalised gradient. For a maximum
it is that of the first largest piece. For |t| and for a norm it is zero at zero. Indices in the formulas
count from 1, x_0 = x_{n+1} = 0 and h = 1 / (n + 1). Sources: Table 3.2 of Keskar's thesis and the papers
named there. The thesis does not write out L1, L2, Nesterov_1 and _2 and Modified_Rosenbrock_2; these are the
usual functions of those names.
"""

import numpy as np
from scipy import fft, linalg, special


def _largest(t):
    """Index, modulus and sign of the first entry of t (n,) that is largest in modulus."""
    i = int(np.argmax(np.abs(t)))
    return i, abs(t[i]), np.sign(t[i])


def _at(n, i, value):
    g = np.zeros(n)
    g[i] = value
    return g


def _chained(da, db):
    """Gradient (n,) of a sum over i < n of terms in (x_i, x_{i+1}) with partial derivatives (n - 1,)."""
    g = np.empty(len(da) + 1)
    g[:-1], g[-1] = da, 0.0
    g[1:] += db
    return g


def active_faces(x):
    """max(log(|sum x| + 1), max_i log(|x_i| + 1))"""
    n, total = len(x), float(x.sum())
    i, most, sign = _largest(x)
    f = np.log1p(max(abs(total), most))
    if abs(total) >= most:
        return f, np.full(n, np.sign(total) / (abs(total) + 1.0))
    return f, _at(n, i, sign / (most + 1.0))


def _sum_of_largest(pieces, da, db):
    """sum_{i<n} of the largest of k pieces (k, n - 1) in (x_i, x_{i+1}), whose derivatives are given."""
    which = pieces.argmax(axis=0)[None]
    f, da, db = (np.take_along_axis(A, which, axis=0)[0] for A in (pieces, da, db))
    return f.sum(), _chained(da, db)


def _largest_sum(pieces, da, db):
    """The largest of the k sums of the pieces (k, n - 1)."""
    sums = pieces.sum(axis=1)
    k = int(sums.argmax())
    return sums[k], _chained(da[k], db[k])


def _cb3(x):
    a, b = x[:-1], x[1:]
    # products: a power of an array costs ten times as much
    third = 2 * np.exp(b - a)
    pieces = a * a * a * a + b * b, (2 - a) ** 2 + (2 - b) ** 2, third
    return np.stack(pieces), np.stack([4 * a * a * a, 2 * a - 4, -third]), np.stack([2 * b, 2 * b - 4, third])


def chained_cb3_1(x):
    """sum_{i<n} max(x_i^4 + x_{i+1}^2, (2 - x_i)^2 + (2 - x_{i+1})^2, 2 exp(x_{i+1} - x_i))"""
    return _sum_of_largest(*_cb3(x))


def chained_cb3_2(x):
    """The largest of the sums of the three pieces of chained_cb3_1."""
    return _largest_sum(*_cb3(x))


def _crescent(x):
    a, b = x[:-1], x[1:] - 1
    square = a**2 + b**2
    return np.stack([square + b, 2 + b - square]), np.stack([2 * a, -2 * a]), np.stack([2 * b + 1, 1 - 2 * b])


def chained_crescent_1(x):
    """max(sum x_i^2 + (x_{i+1} - 1)^2 + x_{i+1} - 1, sum -x_i^2 - (x_{i+1} - 1)^2 + x_{i+1} + 1), i < n"""
    return _largest_sum(*_crescent(x))


def chained_crescent_2(x):
    """sum_{i<n} of the larger of the two terms of chained_crescent_1."""
    return _sum_of_largest(*_crescent(x))


def chained_lq(x):
    """sum_{i<n} max(-x_i - x_{i+1}, -x_i - x_{i+1} + x_i^2 + x_{i+1}^2 - 1)"""
    a, b = x[:-1], x[1:]
    linear, minus = -a - b, np.full_like(a, -1.0)
    pieces = np.stack([linear, linear + a**2 + b**2 - 1])
    return _sum_of_largest(pieces, np.stack([minus, 2 * a - 1]), np.stack([minus, 2 * b - 1]))


def chained_mifflin_2(x):
    """sum_{i<n} -x_i + 2 y_i + 1.75 |y_i|, y_i = x_i^2 + x_{i+1}^2 - 1"""
    a, b = x[:-1], x[1:]
    y = a**2 + b**2 - 1
    f = (2 * y + 1.75 * np.abs(y) - a).sum()
    weight = 4 + 3.5 * np.sign(y)
    return f, _chained(weight * a - 1, weight * b)


class ConvexNonsmooth:
    """sqrt(x'Ax) + x'Bx with A = [M 0; 0 0].

    M, of order ceil(n/2), has condition ceil(n/2)^2 and B has n^2. The paper has random matrices. Here the
    eigenvectors are those of a cosine transform with random signs, S C', so that a product costs O(n log n)
    for every n. The eigenvalues are evenly spaced in their logarithm between 1/condition and 1, in random
    order.

    Parameters
    ----------
    n : int
    rng : numpy.random.Generator
    """

    def __init__(self, n, rng):
        self.m = -(-n // 2)
        self.inner, self.outer = self._matrix(self.m, rng), self._matrix(n, rng)

    @staticmethod
    def _matrix(order, rng):
        spectrum = np.logspace(-2 * np.log10(order), 0, order)
        return rng.permutation(spectrum), rng.choice([-1.0, 1.0], order)

    @staticmethod
    def product(matrix, v):
        """Matrix times v, and the quadratic form in v, which is exactly a sum of squares."""
        spectrum, signs = matrix
        z = fft.dct(signs * v, norm="ortho")
        return signs * fft.idct(spectrum * z, norm="ortho"), float(spectrum @ (z * z))

    def __call__(self, x):
        Av, first = self.product(self.inner, x[: self.m])
        Bx, second = self.product(self.outer, x)
        root = np.sqrt(first)
        g = 2 * Bx
        if root > 0:
            g[: self.m] += Av / root
        return root + second, g


def l1(x):
    """sum |x_i|"""
    return np.abs(x).sum(), np.sign(x)


def l2(x):
    """sqrt(sum x_i^2)"""
    f = np.linalg.norm(x)
    return f, x / f if f > 0 else np.zeros(len(x))


class Hilbert:
    """Products with the Hilbert matrix H_ij = 1 / (i + j - 1) of order n, by Fourier transforms.

    Entries have an absolute error of about 1e-16 ||x||_2. Smaller entries of Hx have no correct sign.
    """

    def __init__(self, n):
        self.n = n
        self.entries = 1.0 / np.arange(1.0, 2.0 * n)  # H_ij = entries[i + j], counted from 0

    def product(self, x):
        """H x, shape (n,)."""
        # with its columns reversed H is a Toeplitz matrix
        column, row = self.entries[self.n - 1 :], self.entries[self.n - 1 :: -1]
        return linalg.matmul_toeplitz((column, row), x[::-1])

    def l1(self, x):
        """sum_i |(Hx)_i|"""
        r = self.product(x)
        return np.abs(r).sum(), self.product(np.sign(r))

    def maximum(self, x):
        """max_i |(Hx)_i|"""
        i, f, sign = _largest(self.product(x))
        return f, sign * self.entries[i : i + self.n]


def maxq(x):
    """max_i x_i^2"""
    i, most, _ = _largest(x)
    return most**2, _at(len(x), i, 2 * x[i])


def modified_rosenbrock_1(x):
    """(x_1 - 1)^2 + sum_{i<n} |x_{i+1} - x_i^2|"""
    r = x[1:] - x[:-1] ** 2
    f = (x[0] - 1) ** 2 + np.abs(r).sum()
    g = _chained(-2 * np.sign(r) * x[:-1], np.sign(r))
    g[0] += 2 * (x[0] - 1)
    return f, g


def modified_rosenbrock_2(x):
    """(x_1 - 1)^2 + sum_{i<n} (x_{i+1} - x_i^2)^2"""
    r = x[1:] - x[:-1] ** 2
    f = (x[0] - 1) ** 2 + r @ r
    g = _chained(-4 * r * x[:-1], 2 * r)
    g[0] += 2 * (x[0] - 1)
    return f, g


def _myopic(a, b):
    r, s = a - b, a + 0.1 * b
    return (np.abs(r) + s * s).sum(), np.sign(r) + 2 * s, 0.2 * s - np.sign(r)


def myopic_coupled(x):
    """(3.24): sum_{i<n} |x_i - x_{i+1}| + (x_i + 0.1 x_{i+1})^2"""
    f, da, db = _myopic(x[:-1], x[1:])
    return f, _chained(da, db)


def myopic_decoupled(x):
    """(3.23): the terms of (3.24) with odd i only; for odd n, x_n is in none of them."""
    even = len(x) - len(x) % 2
    f, da, db = _myopic(x[0:even:2], x[1:even:2])
    g = np.zeros(len(x))
    g[0:even:2], g[1:even:2] = da, db
    return f, g


def nesterov_1(x):
    """(x_1 - 1)^2 / 4 + sum_{i<n} |x_{i+1} - 2 x_i^2 + 1|"""
    r = x[1:] - 2 * x[:-1] ** 2 + 1
    f = 0.25 * (x[0] - 1) ** 2 + np.abs(r).sum()
    g = _chained(-4 * np.sign(r) * x[:-1], np.sign(r))
    g[0] += 0.5 * (x[0] - 1)
    return f, g


def nesterov_2(x):
    """|x_1 - 1| / 4 + sum_{i<n} |x_{i+1} - 2 |x_i| + 1|"""
    r = x[1:] - 2 * np.abs(x[:-1]) + 1
    f = 0.25 * abs(x[0] - 1) + np.abs(r).sum()
    g = _chained(-2 * np.sign(r) * np.sign(x[:-1]), np.sign(r))
    g[0] += 0.25 * np.sign(x[0] - 1)
    return f, g


def nesterov_3(x):
    """max(|x_1|, max_{i>1} |x_{i-1} - x_i|)"""
    i, f, sign = _largest(np.diff(x, prepend=0.0))
    g = _at(len(x), i, sign)
    if i > 0:
        g[i - 1] = -sign
    return f, g


def nonsmooth_brown(x):
    """sum_{i<n} |x_i|^(x_{i+1}^2 + 1) + |x_{i+1}|^(x_i^2 + 1); inf where a power overflows."""
    a, b = x[:-1], x[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        p, q = np.abs(a) ** (b * b + 1), np.abs(b) ** (a * a + 1)
        f = (p + q).sum()
        # p log|a| is 0 at a = 0
        da = (b * b + 1) * np.abs(a) ** (b * b) * np.sign(a) + 2 * a * special.xlogy(q, np.abs(b))
        db = (a * a + 1) * np.abs(b) ** (a * a) * np.sign(b) + 2 * b * special.xlogy(p, np.abs(a))
        return f, _chained(da, db)


def test29_2(x):
    """max_i |x_i|"""
    i, f, sign = _largest(x)
    return f, _at(len(x), i, sign)


def broyden_tridiagonal(x):
    """Residuals (3 - 2 x_i) x_i + 1 - x_{i-1} - x_{i+1} of TEST29_6 and their own derivatives."""
    r = (3 - 2 * x) * x + 1
    r[1:] -= x[:-1]
    r[:-1] -= x[1:]
    return r, 3 - 4 * x


def boundary_value(x):
    """Residuals 2 x_i + h^2/2 (x_i + ih + 1)^3 - x_{i-1} - x_{i+1} of TEST29_22 and derivatives."""
    n = len(x)
    h = 1.0 / (n + 1)
    s = x + h * np.arange(1, n + 1) + 1
    r = 2 * x + 0.5 * h * h * s * s * s
    r[1:] -= x[:-1]
    r[:-1] -= x[1:]
    return r, 2 + 1.5 * h * h * s * s


def troesch(x):
    """Residuals 2 x_i + 10 h^2 sinh(10 x_i) - x_{i-1} - x_{i+1} of TEST29_24, x_{n+1} = 1."""
    h = 1.0 / (len(x) + 1)
    with np.errstate(over="ignore"):
        r = 2 * x + 10 * h * h * np.sinh(10 * x)
        slope = 2 + 100 * h * h * np.cosh(10 * x)
    r[1:] -= x[:-1]
    r[:-1] -= x[1:]
    r[-1] -= 1.0
    return r, slope


def max_residual(residuals):
    """max_i |r_i| of a system in which every neighbour's derivative is -1; inf where it overflows."""

    def evaluate(x):
        r, slope = residuals(x)
        i, f, sign = _largest(r)
        g = np.zeros(len(x))
        g[max(i - 1, 0) : i + 2] = -sign
        g[i] = sign * slope[i]
        return f, g

    return evaluate
