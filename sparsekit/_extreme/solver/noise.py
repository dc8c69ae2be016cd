"""Distributions that negatives are drawn from."""

import copy
from dataclasses import dataclass, field

import numpy as np

from ..._cython.extreme import _extreme as kernels


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
