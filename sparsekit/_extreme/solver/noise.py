"""Distributions that negatives are drawn from, and how many rows may step at once under one."""

import copy
from dataclasses import dataclass, field

import numpy as np

from ..._cython.extreme import _extreme as kernels

# Most rows of a round that a class is expected to be in: their steps are independent.
MAX_ROWS_OF_CLASS = 3.0
# Most rows of a round: more than fill a device gain nothing.
MAX_ROWS = 4096


@dataclass
class Noise:
    """A distribution of negatives (n_classes,) and Walker's alias table of it."""

    p: np.ndarray
    log: np.ndarray = field(init=False)
    keep: np.ndarray = field(init=False)
    alias: np.ndarray = field(init=False)

    def __post_init__(self):
        self.p = np.ascontiguousarray(self.p, dtype=np.float64)
        with np.errstate(divide="ignore"):
            self.log = np.log(self.p)
        self.keep, self.alias = np.empty_like(self.p), np.empty(len(self.p), dtype=np.int64)
        kernels.alias_table(self.p, self.keep, self.alias)

    def as_like(self, x):
        """The same with arrays where ``x`` is, in main memory or on a GPU."""
        out = copy.copy(self)
        for name, value in vars(self).items():
            setattr(out, name, np.asarray(value, like=x))
        return out


def rows_at_once(counts, n_negatives, noise, batch_size):
    """Batches of rows that may start from the same weights without getting in each other's way.

    All of a round's changes are added up. A class that many of the round's rows have, as label or negative,
    moves by as many steps at once. Each of those was meant to be the only one. So a round has so few rows
    that the most frequent class gets only a few of them. With eight fits may diverge, with thirty they do.
    Where every row has every class as a negative, each row moves it by the class's probability only. That is
    on average the share of its label.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
    n_negatives : int
    noise : Noise or None
    batch_size : int
        Rows of a batch, whose steps are a mean.
    """
    K = len(counts)
    label = counts / counts.sum()
    if n_negatives >= K - 1:
        negative = label
    else:
        negative = n_negatives * (np.full(K, 1.0 / (K - 1)) if noise is None else noise.p)
    share = np.minimum(1.0, label + negative).max()
    return int(max(1, min(MAX_ROWS // batch_size, MAX_ROWS_OF_CLASS / share)))
