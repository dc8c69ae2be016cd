"""Weights in 8 bits that rule out most of very many classes, so that the others alone are read as they are.

They are computed for features of the rows when first needed, and stored as long as the array of weights
lives. They take a byte a weight, a quarter of float32.
"""

import copy
import threading
import weakref

import numpy as np

from ..._cython.extreme import _shortlist as kernels

# Costs are in units of a multiply-add of an exact score.
# smallest number of classes for which single rows gain time
MIN_CLASSES = 2**12
# largest number of bytes of one table in 8 bits
MAX_BYTES = 2**32
# bytes of the columns that are rounded together if a class's weights are adjacent: one cache line
CACHE_LINE = 64
# cost of rounding a weight
ROUND_COST = 3
# cost of reading a weight if a class's weights are adjacent
FETCH_COST = 16
# cost of sorting a class by size
SORT_COST = 200
# number of features that determine a class's size
SIZE_FEATURES = 64
# classes are not sorted if the largest is less than this many times the median
SIMILAR_SIZES = 4.0
# largest cost of rounding, relative to the exact scores so far
ROUNDING_BUDGET = 2
# rows after which the use of shortlists is decided
DECISION_ROWS = 64
# entries of the weights that are compared before each call
COMPARED_ENTRIES = 512

_lock = threading.Lock()
_kept: dict[int, tuple] = {}


def shortlist_of(coef, intercept):
    """The Shortlist kept for the array ``coef``, or a new one if its weights are no longer the same."""
    with _lock:
        ref, kept = _kept.get(id(coef), (None, None))
        key = id(coef)
        if kept is None or ref() is not coef or not kept.is_of(coef, intercept):
            kept = Shortlist(coef, intercept)
            _kept[key] = weakref.ref(coef, lambda ref: _drop(key, ref)), kept
        elif kept.arrays and not kept.helps:
            kept = kept.given_up()
            _kept[key] = ref, kept
        return kept


def forget(coef):
    """Drop what is kept for an array whose weights are about to change, or have."""
    with _lock:
        _kept.pop(id(coef), None)


def _drop(key, ref):
    if _kept.get(key, (None,))[0] is ref:
        _kept.pop(key, None)


class Shortlist:
    """Columns of ``coef`` (n_classes, n_features) in 8 bits, made when rows need them."""

    def __init__(self, coef, intercept):
        K, p = coef.shape
        self.n_classes, self.n_features = K, p
        self.n_parts = -(-K // kernels.PART)
        self.by_feature = abs(coef.strides[0]) < abs(coef.strides[1])
        self.rounded, self.parts = np.zeros(p + 1, dtype=np.intp), np.zeros(p + 1, dtype=np.intp)
        self.arrays = []
        self.n_bytes, self.credit, self.rows, self.failures = 0, 0.0, 0, 0
        self.has_bias = bool(intercept.any())
        self.looked = np.zeros(2, dtype=np.int64)
        self.lock = threading.Lock()
        rng = np.random.default_rng(0)
        self.seen = (
            rng.integers(0, K, COMPARED_ENTRIES),
            rng.integers(0, p, COMPARED_ENTRIES) if p else np.zeros(0, dtype=int),
        )
        self.values = self._values(coef, intercept)
        self.order = None

    def _values(self, coef, intercept):
        rows, columns = self.seen
        return (coef[rows[: len(columns)], columns], intercept[rows])

    def is_of(self, coef, intercept):
        """Whether some entries are still what they were: steps or scalings in place would show."""
        same = zip(self.values, self._values(coef, intercept))
        return coef.shape == (self.n_classes, self.n_features) and all(
            np.array_equal(old, new, equal_nan=True) for old, new in same
        )

    def _sort(self, coef, intercept):
        """Put classes of like weights side by side: steps are then small where weights are."""
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = np.abs(intercept - np.median(intercept))
            if self.by_feature:
                for f in np.unique(self.seen[1][:SIZE_FEATURES]):
                    sizes = sizes + np.abs(coef[:, f])
            else:  # neighbours are in the same cache line
                for f in np.unique(self.seen[1][: SIZE_FEATURES // 16]):
                    sizes = sizes + np.abs(coef[:, f : f + 16]).sum(axis=1)
            large, usual = np.max(sizes), np.median(sizes)
            order = np.arange(self.n_classes) if large < SIMILAR_SIZES * usual else np.argsort(-sizes)
        self.order = order.astype(np.int32)
        if self.has_bias:
            bias = intercept.astype(np.result_type(intercept, np.float32), copy=False)
            _, q, parts = self._round(bias.reshape(-1, 1), [np.array([0])], 1)
            self._store_addresses(self.n_features, q[0], parts[0])

    def _round(self, table, groups, n_threads):
        """Columns of ``table`` and their addresses; one array for all, since large ones get large pages."""
        columns = np.concatenate(groups)
        q = np.empty((len(columns), self.n_parts * kernels.PART), dtype=np.int8)
        parts = np.empty((len(columns), 3, self.n_parts), dtype=np.float32)
        done = 0
        for group in groups:
            here = slice(done, done + len(group))
            part = table[:, group[0] : group[-1] + 1]
            kernels.round_columns(part, self.order, q[here], parts[here], n_threads)
            done += len(group)
        self.arrays.append((q, parts))
        self.n_bytes += q.nbytes + parts.nbytes
        return (
            columns,
            q.ctypes.data + q.strides[0] * np.arange(len(columns)),
            parts.ctypes.data + parts.strides[0] * np.arange(len(columns)),
        )

    def _store_addresses(self, columns, q, parts):
        self.rounded[columns], self.parts[columns] = q, parts

    def covers(self, coef, intercept, features, work, n_threads):
        """Whether all ``features`` are there, or could be made for what ``work`` products pay for."""
        with self.lock:
            missing = features[self.rounded[features] == 0]
            self.credit += work * ROUNDING_BUDGET
            if not len(missing):
                return True
            width = 1 if self.by_feature else max(1, CACHE_LINE // coef.itemsize)
            groups = np.unique(missing // width)
            cost = (
                len(groups) * self.n_classes * (width * ROUND_COST + (0 if self.by_feature else FETCH_COST))
            )
            cost += SORT_COST * self.n_classes if self.order is None else 0
            size = len(groups) * width * self.n_parts * kernels.PART
            if cost > self.credit or self.n_bytes + size > MAX_BYTES:
                return False
            self.credit -= cost
            if self.order is None:
                self._sort(coef, intercept)
            groups = [np.arange(g * width, min(self.n_features, (g + 1) * width)) for g in groups]
            self._store_addresses(*self._round(coef, groups, n_threads))
            return True

    @property
    def helps(self):
        """Whether most rows so far had a shortlist."""
        return self.rows < DECISION_ROWS or 2 * self.failures < self.rows

    def given_up(self):
        """The same without the columns; a thread that still reads them has this one."""
        out = copy.copy(self)
        out.arrays, out.n_bytes = [], 0
        out.rounded, out.parts = np.zeros_like(self.rounded), np.zeros_like(self.parts)
        return out

    def rank(self, data, indices, indptr, coef, intercept, best, codes, n_threads):
        """Best scores and codes (n, k) of CSR rows whose features are there; returns which rows got them."""
        n, k = best.shape
        failed = np.zeros(n, dtype=np.int8)
        # an undecided class costs some hundred times as much as an excluded one
        capacity = 512 + 4 * k + self.n_classes // 1024
        kernels.rank_shortlisted(
            data, indices, indptr, self.order, self.rounded, self.parts, self.has_bias, coef, intercept,
            capacity, best, codes, failed, self.looked, n_threads,
        )  # fmt: skip
        self.rows += n
        self.failures += int(failed.sum())
        return failed == 0
