"""Complementary halves of the rows."""

from __future__ import annotations

import numpy as np

from ..._typing import Array


def complementary_pairs(
    rows: Array, codes: Array | None, n_pairs: int, random_state: np.random.RandomState
) -> list[tuple[Array, Array]]:
    """Pairs of disjoint halves of ``rows``, each sorted; an odd row is left out, another one in each pair.

    Parameters
    ----------
    rows : ndarray of int
        Those to draw from.
    codes : ndarray of int of shape (n_samples,) or None
        Classes of all rows: each half gets the same number of each, so that no class is lost. Given these
        numbers the halves are still two independent samples of the same distribution, which is all that the
        bounds ask for.
    n_pairs : int
    random_state : RandomState
    """
    groups = [rows] if codes is None else [rows[codes[rows] == k] for k in np.unique(codes[rows])]
    pairs = []
    for _ in range(n_pairs):
        one, other = [], []
        for group in groups:
            drawn = random_state.permutation(group)
            half = len(drawn) // 2
            one.append(drawn[:half])
            other.append(drawn[half : 2 * half])
        pairs.append((np.sort(np.concatenate(one)), np.sort(np.concatenate(other))))
    return pairs


def refuse_few_rows(rows: Array, codes: Array | None) -> None:
    """ValueError where ``rows`` cannot be halved so that each half has two rows, and classes two."""
    if codes is None:
        if len(rows) < 4:
            raise ValueError(f"{len(rows)} sample(s) with a positive weight cannot be halved; 4 can.")
    elif np.count_nonzero(np.bincount(codes[rows]) >= 2) < 2:
        raise ValueError(
            "fewer than 2 classes have 2 rows or more (with a positive weight), one for each half."
        )
