"""Blocks of negatives: which classes are adjacent, and which blocks a step takes.

A cache line holds the weights of 16 classes at one feature. Together they cost little more as negatives than
one alone, so a step uses many more classes in the same time. The price is that the classes of a block are
drawn together.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..._cython.extreme import _class_blocks as kernels
from ..._linalg import matrix
from .noise import Noise

# rows of a table whose distance in bytes is a multiple of this compete for the same cache lines
PAGE = 4096


@dataclass(frozen=True)
class BlockPlan:
    """Columns of a table of weights (n_features, stride) and the blocks of `kernels.BLOCK` of them.

    Column c is class order[c], class k column place[k], the inverse permutation. A step takes n_drawn blocks:
    all of them (``noise`` is None), or drawn by ``noise`` over the blocks.
    """

    order: np.ndarray
    place: np.ndarray
    stride: int
    n_drawn: int
    noise: Noise | None

    @property
    def n_classes(self):
        return len(self.order)

    @property
    def n_blocks(self):
        return -(-len(self.order) // kernels.BLOCK)

    def to_classes(self, W, bias):
        """Weights (n_classes, n_features) and intercepts of a table and its bias; a view if the order is."""
        K = self.n_classes
        if self.is_identity():
            return W[:, :K].T, None if bias is None else bias[:K]
        return W[:, self.place].T, None if bias is None else bias[self.place]

    def is_identity(self):
        return bool((self.order == np.arange(self.n_classes)).all())

    def put_in_order(self, W, bias):
        """Bring the columns into the order of the classes, in place; returns the plan of that order."""
        every = np.arange(self.n_classes)
        if not self.is_identity():
            height = max(1, matrix.BLOCK // self.n_classes)
            for begin in range(0, len(W), height):
                rows = W[begin : begin + height]
                rows[:, : self.n_classes] = np.take(rows, self.place, axis=1)
            if bias is not None:
                bias[: self.n_classes] = bias[self.place]
        return replace(self, order=every, place=every)


def stride_of(n_classes, itemsize):
    """Columns of a table for classes of so many bytes each: whole blocks, and no multiple of a page."""
    stride = -(-n_classes // kernels.BLOCK) * kernels.BLOCK
    return stride + kernels.BLOCK if stride * itemsize % PAGE == 0 else stride


def plan_blocks(counts, n_negatives, noise, itemsize, rng, in_order=False):
    """A BlockPlan of about n_negatives classes a step, at least one block of them.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
    n_negatives : int
    noise : Noise or None
        Of the classes. With one they are sorted by decreasing probability: the classes of a block are drawn
        alike. None is the uniform one. Then classes stand in random order, since neighbours among sorted
        labels may be alike.
    itemsize : int
        Bytes of a weight.
    rng : numpy.random.Generator
    in_order : bool
        Whether classes stay in their order. They do where a step takes all.
    """
    K, size = len(counts), kernels.BLOCK
    n_blocks = -(-K // size)
    n_drawn, stride = min(n_blocks, -(-n_negatives // size)), stride_of(K, itemsize)
    order, over_blocks = np.arange(K), None
    if n_drawn < n_blocks and not in_order:
        order = rng.permutation(K) if noise is None else np.argsort(-noise.p, kind="stable")
    if n_drawn < n_blocks:
        p = np.full(K, 1.0 / K) if noise is None else noise.p[order]
        over_blocks = Noise(np.add.reduceat(p, np.arange(0, K, size)))
    place = np.empty(K, dtype=np.int64)
    place[order] = np.arange(K)
    return BlockPlan(order, place, stride, n_drawn, over_blocks)
