"""Scores with very many classes, by blocks: the highest ones and the normaliser of each row."""

from math import isqrt

import numpy as np
import scipy.sparse as sp

from ..._arrays import full, is_sparse, kernel_module, namespace, thread_arguments
from ..._cython.extreme import _ranking
from ..._cython.extreme._extreme import WORK_PER_CALL
from ..._linalg.threads import blas_threads
from ..plan import MAX_SCORES, shortlist_pays
from ..solver.shortlist import shortlist_of
from .targets import NO_INDEX


def linear_scores(X, coef, dtype, n_threads):
    """X coef^T (n, n_classes), where the two are."""
    if is_sparse(coef):
        scores = X @ coef.T
        return scores.toarray() if is_sparse(scores) else scores
    if is_sparse(X):
        return kernel_module("extreme._ranking", coef).sparse_scores(X, coef, dtype)
    with blas_threads(n_threads):
        return X @ coef.T.astype(dtype, copy=False)


class LinearScores:
    """Scores ``X coef^T + intercept`` of a model, block by block.

    Parameters
    ----------
    coef : ndarray (n_classes, n_features) of float16, float32 or float64, or CSR matrix; may be a memory map
    intercept : ndarray (n_classes,)
    n_threads : int
    shorten : bool, default=False
        Whether weights in 8 bits may be made and kept for `rank`.
    """

    def __init__(self, coef, intercept, n_threads=1, shorten=False):
        self.coef, self.intercept, self.n_threads, self.shorten = coef, intercept, n_threads, shorten
        self.threads = thread_arguments(intercept, n_threads)
        self.n_classes = coef.shape[0]

    def block(self, X, lo, hi):
        """Scores (n, hi - lo) of the rows X for classes lo .. hi, a new array."""
        dtype = self.dtype(X)
        scores = linear_scores(X, self.coef[lo:hi], dtype, self.n_threads)
        scores = namespace(scores=scores).ascontiguousarray(scores, dtype=dtype)
        scores += self.intercept[lo:hi].astype(dtype, copy=False)
        return scores

    @staticmethod
    def dtype(X):
        """Type of the scores of rows X."""
        return np.result_type(X.dtype, np.float32)

    def rank(self, X, k, codes, normalize):
        """A Ranking of sparse rows by dense weights, or None: no kernel does it without a block of scores."""
        if self.shorten and codes is None and not normalize:
            result = self._rank_shortlisted(X, k)
            if result is not None:
                return result
        # for few classes the product as it is costs less than a tile
        if not is_sparse(X) or self.n_classes < _ranking.TILE or not isinstance(self.coef, np.ndarray):
            return None
        is_used = np.zeros(X.shape[1], dtype=bool)
        is_used[X.indices] = True
        columns = np.flatnonzero(is_used)
        number = np.cumsum(is_used) - 1
        indices = number[X.indices].astype(np.int64, copy=False)
        data, indptr = X.data.astype(self.dtype(X), copy=False), X.indptr.astype(np.int64)
        # each part keeps k scores a row
        most = min(self.n_classes // max(1, k), MAX_SCORES // max(1, X.shape[0] * k))
        n_parts = max(1, min(self.n_threads, most))
        result = Ranking(X.shape[0], k, data.dtype, codes, normalize, n_parts)
        intercept = self.intercept.astype(data.dtype, copy=False)
        is_half = self.coef.dtype == np.float16  # which the kernel does not read
        # calls that end soon enough for a KeyboardInterrupt, and copies of moderate size
        size = WORK_PER_CALL // max(1, X.nnz)
        if is_half:
            size = min(size, MAX_SCORES // max(1, len(columns)))
        tiles = _ranking.TILE * n_parts
        size = max(tiles, size // tiles * tiles)
        for lo in range(0, self.n_classes, size):
            part, chosen = self.coef[lo : lo + size], columns
            if is_half:
                part = part[:, columns].astype(np.float32)
                chosen = np.arange(len(columns))
            _ranking.rank_sparse(data, indices, indptr, part, chosen, intercept[lo : lo + size], lo, result)
        return result

    def _rank_shortlisted(self, X, k):
        """A Ranking by weights in 8 bits, or None where they are not there or do not help."""
        coef = self.coef
        if not shortlist_pays(self.n_classes, k, 0 if is_sparse(X) else X.size):
            return None
        if type(coef) not in (np.ndarray, np.memmap):
            return None
        if coef.dtype not in (np.float32, np.float64) or not coef.shape[1]:
            return None
        kept = shortlist_of(coef, self.intercept)
        if not kept.helps:
            return None
        X = X if is_sparse(X) else sp.csr_array(X)
        if not kept.covers(coef, np.unique(X.indices).astype(np.int64), self.n_threads):
            return None
        data = X.data.astype(self.dtype(X), copy=False)
        indices, indptr = X.indices.astype(np.int64, copy=False), X.indptr.astype(np.int64, copy=False)
        result = Ranking(X.shape[0], k, data.dtype)
        intercept = self.intercept.astype(coef.dtype, copy=False)
        done = kept.rank(
            data, indices, indptr, coef, intercept, result.best[0], result.codes[0], self.n_threads
        )
        if not done.all():
            rest = np.flatnonzero(~done)
            other = LinearScores(coef, self.intercept, self.n_threads).rank(X[rest], k, None, False).merged()
            result.best[0][rest], result.codes[0][rest] = other[1], other[0]
        return result


class HashedScores:
    """The same from a hashed table."""

    def __init__(self, table, intercept, shift, n_threads=1):
        # the kernel reads no half precision
        self.table = table.astype(np.float32) if table.dtype == np.float16 else table
        self.intercept, self.shift, self.threads = intercept, shift, thread_arguments(table, n_threads)
        self.n_classes = len(intercept)

    def block(self, X, lo, hi):
        dtype = self.table.dtype
        out = np.empty((X.shape[0], hi - lo), dtype=dtype, like=self.table)
        sparse, none = is_sparse(X), np.asarray(NO_INDEX, like=self.table)
        xp = namespace(table=self.table)
        data = (X.data if sparse else xp.ascontiguousarray(X).reshape(-1)).astype(dtype, copy=False)
        indices, indptr = (X.indices, X.indptr) if sparse else (none, none)
        kernel_module("extreme._extreme", self.table).hashed_scores(
            data, indices, indptr, X.shape[1], 0, X.shape[0], self.table, self.shift,
            np.arange(lo, hi, dtype=np.int64, like=out), out, *self.threads,
        )  # fmt: skip
        out += self.intercept[lo:hi]
        return out

    def dtype(self, X):
        return self.table.dtype

    def rank(self, X, k, codes, normalize):
        return None


def blocks(X, n_classes):
    """Slices of rows, each with its slices of classes: of all classes, or square where these are more."""
    n = X.shape[0]
    height = max(1, min(n, max(isqrt(MAX_SCORES), MAX_SCORES // max(1, n_classes))))
    width = max(1, min(n_classes, MAX_SCORES // height))
    for begin in range(0, n, height):
        rows = slice(begin, min(n, begin + height))
        yield rows, [slice(c, min(n_classes, c + width)) for c in range(0, n_classes, width)]


class Ranking:
    """What is wanted of each row's scores, in arrays like ``like``: see `_ranking.rank_scores`."""

    def __init__(self, n, k, dtype, codes=None, normalize=False, n_parts=1, like=None):
        self.best = full((n_parts, n, k), -np.inf, dtype, like)
        self.codes = full((n_parts, n, k), np.iinfo(np.int64).max, np.int64, like)
        self.high = full((n_parts, n), -np.inf, like=like)
        self.total = np.zeros((n_parts, n if normalize else 0), like=like)
        self.own = (
            np.empty(0, dtype=np.int64, like=like)
            if codes is None
            else namespace(codes=codes).ascontiguousarray(codes, dtype=np.int64)
        )
        self.own_score = np.zeros(len(self.own), like=like)

    def merged(self):
        """Codes and scores (n, k), as `rank` returns them, and log normalizers (n,) or None."""
        n, k = self.best.shape[1:]
        best, codes = (a.transpose(1, 0, 2).reshape(n, -1) for a in (self.best, self.codes))
        # CuPy's lexsort knows no rows
        by_code = np.argsort(codes, axis=1, kind="stable")
        by_score = np.argsort(-np.take_along_axis(best, by_code, 1), axis=1, kind="stable")
        order = np.take_along_axis(by_code, by_score, 1)[:, :k]
        normalizers = None
        if self.total.size or not n:
            high = self.high.max(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                # parts without classes, or with -inf alone, add nothing; NaN stays what it is
                shares = np.where(self.total == 0, 0.0, self.total * np.exp(self.high - high))
                normalizers = high + np.log(shares.sum(axis=0))
        codes, best = np.take_along_axis(codes, order, 1), np.take_along_axis(best, order, 1)
        nowhere = codes == np.iinfo(np.int64).max  # NaN is never the best score
        if nowhere.any():
            codes[nowhere], best[nowhere] = 0, np.nan
        return codes, best, normalizers


def rank(scores, X, k=0, *, codes=None, normalize=False):
    """One evaluation of all scores of each row, by blocks of rows and classes.

    Parameters
    ----------
    scores : LinearScores or HashedScores
    X : ndarray or CSR (n, d)
    k : int
        Number of classes.
    codes : ndarray (n,), default=None
        A class of each row whose score is wanted.
    normalize : bool
        Whether log sum_k exp(score_k) is wanted.

    Returns
    -------
    best_codes, best : ndarray (n, k)
        The highest scores, falling, of equal ones the first class first.
    normalizers : ndarray (n,) or None
    own : ndarray (n,) or (0,)
    """
    k, results = min(k, scores.n_classes), []
    for rows, parts in blocks(X, scores.n_classes):
        here, own = X[rows], None if codes is None else codes[rows]
        result = scores.rank(here, k, own, normalize)
        if result is None:
            result = Ranking(here.shape[0], k, scores.dtype(X), own, normalize, like=scores.intercept)
            for part in parts:
                kernel_module("extreme._ranking", scores.intercept).rank_scores(
                    scores.block(here, part.start, part.stop), part.start, result.best[0], result.codes[0],
                    result.high[0], result.total[0], result.own, result.own_score, *scores.threads,
                )  # fmt: skip
        results.append((*result.merged(), result.own_score))
    if not results:
        results.append((np.empty((0, k), dtype=np.int64), np.empty((0, k)), np.empty(0), np.empty(0)))
    best_codes, best, normalizers, own = zip(*results)
    return (
        np.concatenate(best_codes),
        np.concatenate(best),
        np.concatenate(normalizers) if normalize else None,
        np.concatenate(own),
    )


def top_k(scores, X, k):
    """Codes and scores (n, k) of the k highest scores of each row, falling."""
    return rank(scores, X, k)[:2]


def log_normalizers(scores, X, codes=None):
    """log sum_k exp(score_k) of each row, float64 (n,), and the scores of the classes ``codes`` (n,)."""
    return rank(scores, X, codes=codes, normalize=True)[2:]


def log_losses(scores, X, codes):
    """-log p of each row's class, float64 (n,)."""
    normalizers, own = log_normalizers(scores, X, codes)
    return normalizers - own
