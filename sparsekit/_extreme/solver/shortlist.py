"""Weights in 8 bits that rule out most of very many classes, so that the others alone are read as they are.

They are computed for features of the rows when first needed, and stored as long as the array of weights
lives. They take a byte a weight, a quarter of float32.
"""

import threading
import weakref

import numpy as np

from ..._arrays import enlarged
from ..._cython.extreme import _ranking as kernels
from ..plan import MAX_BYTES, shortlist_helps

# entries of the weights that are compared before each call, and that determine the classes' order
COMPARED_ENTRIES = 512

_lock = threading.Lock()
_kept: dict[int, tuple] = {}


def shortlist_of(coef, intercept):
    """The Shortlist kept for the array ``coef``, or a new one if its weights are no longer the same."""
    with _lock:
        key = id(coef)
        ref, kept = _kept.get(key, (None, None))
        if kept is None or ref() is not coef or not kept.is_of(coef, intercept):
            kept = Shortlist(coef, intercept)
            _kept[key] = weakref.ref(coef, lambda ref: _drop(key, ref)), kept
        return kept


def forget(coef):
    """Drop what is kept for an array whose weights are about to change, or have."""
    with _lock:
        _kept.pop(id(coef), None)


def _drop(key, ref):
    if _kept.get(key, (None,))[0] is ref:
        _kept.pop(key, None)


class Shortlist:
    """Columns of ``coef`` (n_classes, n_features) in 8 bits, made when rows need them.

    ``q`` and ``steps`` are those of `kernels.round_columns`, feature j at slots[j] (-1: not made yet). Their
    classes are in the order ``order``, as are the intercepts ``bias``.
    """

    def __init__(self, coef, intercept):
        K, p = coef.shape
        self.slots, self.n_made = np.full(p, -1, dtype=np.int64), 0
        self.rows = self.failures = self.listed = 0
        self.lock = threading.Lock()
        rng = np.random.default_rng(0)
        self.compared = rng.integers(0, K, COMPARED_ENTRIES), rng.integers(0, p, COMPARED_ENTRIES)
        self.values = self._values(coef, intercept)
        # parts of similar classes have small steps where the weights are small
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = np.abs(coef[:, np.unique(self.compared[1][:64])]).sum(axis=1, dtype=np.float64)
            self.order = np.argsort(-sizes, kind="stable").astype(np.int32)
        n_parts = -(-K // kernels.PART)
        self.q = np.empty((0, n_parts * kernels.PART), dtype=np.int8)
        self.steps = np.empty((0, n_parts), dtype=np.float32)
        self.bias = np.zeros(n_parts * kernels.PART, dtype=np.float32)
        with np.errstate(over="ignore"):
            self.bias[:K] = intercept[self.order]
        starts = np.arange(0, K, kernels.PART)
        self.about_bias = np.stack(
            [np.maximum.reduceat(one[:K], starts) for one in (self.bias, np.abs(self.bias))]
        )

    def _values(self, coef, intercept):
        rows, columns = self.compared
        return coef[rows, columns], intercept[rows]

    def is_of(self, coef, intercept):
        """Whether some entries are still what they were: steps or scalings in place would show."""
        same = zip(self.values, self._values(coef, intercept))
        return all(np.array_equal(old, new, equal_nan=True) for old, new in same)

    @property
    def helps(self):
        """Whether most rows so far had a shortlist."""
        return shortlist_helps(self.rows, self.failures)

    def covers(self, coef, features, n_threads):
        """Whether all ``features`` are there, or could be made."""
        with self.lock:
            missing = features[self.slots[features] < 0]
            n = self.n_made + len(missing)
            if n * self.q.shape[1] > MAX_BYTES:
                return False
            if n > len(self.q):
                most = MAX_BYTES // self.q.shape[1]
                size = min(len(self.slots), max(n, 2 * len(self.q)), most)
                self.q, self.steps = (enlarged(one, (size, one.shape[1])) for one in (self.q, self.steps))
            if len(missing):
                made = slice(self.n_made, n)
                kernels.round_columns(coef, missing, self.order, self.q[made], self.steps[made], n_threads)
                self.slots[missing] = np.arange(self.n_made, n)
                self.n_made = n
            return True

    def rank(self, data, indices, indptr, coef, intercept, best, codes, n_threads):
        """Best scores and codes (n, k) of CSR rows whose features are there; returns which rows got them."""
        n, k = best.shape
        listed = np.empty(n, dtype=np.int64)
        # an undecided class costs some hundred times as much as an excluded one
        capacity = 512 + 4 * k + len(self.order) // 1024
        kernels.rank_shortlisted(
            data, indices, indptr, self, coef, intercept, capacity, best, codes, listed, n_threads
        )
        is_done = listed >= 0
        self.rows += n
        self.failures += n - int(is_done.sum())
        self.listed += int(listed[is_done].sum())
        return is_done
