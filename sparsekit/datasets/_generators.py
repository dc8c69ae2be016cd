"""Generators of the problems that the papers define."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from .._messages import check_whole, plain
from .._typing import FloatArray, RandomState

DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# 0 stands for padding
LETTERS = "_ " + "".join(sorted(set("".join(DIGIT_NAMES))))


def make_oba_synthetic(n: int, *, random_state: RandomState = None) -> tuple[FloatArray, FloatArray]:
    """The "Synthetic" problem of the OBA paper: as many rows as columns and a dense Hessian.

    The labels are random. A = U + U^T with U uniform on [0, 1). It is shifted to A - 2 lambda_min(A) I if its
    smallest eigenvalue is negative. The data matrix is the upper triangular Cholesky factor R of A = R^T R.
    This is the MATLAB listing of [1]_, section 2.7, for the problem of [2]_.

    Parameters
    ----------
    n : int
        Number of rows and of columns; the cost grows as n^3.
    random_state : int, RandomState instance or None, default=None
        Seed of the labels and of U.

    Returns
    -------
    X : ndarray of shape (n, n)
        Upper triangular.
    y : ndarray of shape (n,)
        Labels -1 and 1.

    Raises
    ------
    ValueError
        If n is less than 1.

    Notes
    -----
    The paper gives 69.42 for the metric (2.16) of diagonal dominance at n = 5000. Its listing, followed here,
    yields about 1.2 at every n, since the shift makes the diagonal grow like the norm of a column. The sum of
    a row's off-diagonal entries, relative to its diagonal entry, grows like sqrt(n).

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 2.
    .. [2] N. S. Keskar, J. Nocedal, F. Öztoprak, A. Wächter, "A second-order method for convex
       l1-regularized optimization with active-set prediction", Optimization Methods and Software 31, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.datasets import make_oba_synthetic
    >>> X, y = make_oba_synthetic(4, random_state=1)
    >>> X.shape, bool((X == np.triu(X)).all()), y
    ((4, 4), True, array([-1.,  1., -1., -1.]))
    """
    n = check_whole(n, "n", 1)
    rng = check_random_state(plain(random_state))
    y = np.where(rng.uniform(size=n) > 0.5, 1.0, -1.0)
    A = rng.uniform(size=(n, n))
    A = A + A.T
    smallest = np.linalg.eigvalsh(A)[0]
    if smallest < 0:
        A[np.diag_indices(n)] -= 2.0 * smallest
    return np.linalg.cholesky(A).T.copy(), y


def make_spelled_digits(
    n_samples: int, *, min_digits: int = 1, max_digits: int = 8, random_state: RandomState = None
) -> Bunch:
    """Numbers spelled by letters, "three seven four", to be translated to digits, "374#", as in [1]_.

    Parameters
    ----------
    n_samples : int
        Number of sequences.
    min_digits, max_digits : int, default=1, 8
        Bounds of the number of digits, which is uniform between them, as the digits are.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``texts`` and ``numbers``, lists of n_samples strings. ``inputs`` (n_samples, longest text) of int64,
        indices in the alphabet ``letters``, padded with 0. ``input_lengths`` (n_samples,). ``targets``
        (n_samples, max_digits + 1) of int64, the digits, then 10 for the end "#", padded with 10.
        ``target_lengths`` (n_samples,), the end included.

    Raises
    ------
    ValueError
        If a number is out of its range.

    References
    ----------
    .. [1] A. Madsen, F. W. Rørbech, M. D. F. Kristensen, "Tensorflow implementation of sparsemax",
       section 3.3.

    Examples
    --------
    >>> from sparsekit.datasets import make_spelled_digits
    >>> data = make_spelled_digits(1, min_digits=3, max_digits=3, random_state=0)
    >>> data.texts, data.numbers
    (['five zero three'], ['503#'])
    """
    n_samples = check_whole(n_samples, "n_samples", 0)
    min_digits, max_digits = (
        check_whole(min_digits, "min_digits", 1),
        check_whole(max_digits, "max_digits", 1),
    )
    if min_digits > max_digits:
        raise ValueError(f"1 <= min_digits <= max_digits must hold, got {min_digits} and {max_digits}")
    rng = check_random_state(plain(random_state))
    counts = rng.randint(min_digits, max_digits + 1, size=n_samples)
    digits = rng.randint(10, size=(n_samples, max_digits))
    targets = np.full((n_samples, max_digits + 1), 10, dtype=np.int64)
    kept = np.arange(max_digits) < counts[:, None]
    targets[:, :max_digits][kept] = digits[kept]
    texts = [" ".join(DIGIT_NAMES[d] for d in row[:count]) for row, count in zip(digits, counts)]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    inputs = np.zeros((n_samples, int(lengths.max(initial=0))), dtype=np.int64)
    index = {letter: k for k, letter in enumerate(LETTERS)}
    for row, text in zip(inputs, texts):
        row[: len(text)] = [index[letter] for letter in text]
    numbers = ["".join(map(str, row[:count])) + "#" for row, count in zip(digits, counts)]
    return Bunch(
        texts=texts, numbers=numbers, inputs=inputs, input_lengths=lengths, targets=targets,
        target_lengths=counts + 1, letters=LETTERS,
    )  # fmt: skip
