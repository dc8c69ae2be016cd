"""Blocks of negatives: which classes are adjacent, and which blocks a step takes.

A cache line holds the weights of 16 classes at one feature. Together they cost little more as negatives than
one alone, so a step uses many more classes in the same time. The price is that the classes of a block are
drawn together.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..._arrays import kernel_module, thread_arguments
from ..._cython.extreme import _class_blocks as kernels
from .noise import Noise

# rows of a table whose distance in bytes is a multiple of this compete for the same cache lines
PAGE = 4096
BLOCK = kernels.BLOCK


@dataclass(frozen=True)
class BlockPlan:
    """Columns of a table of weights (n_features, stride) and the blocks of `kernels.BLOCK` of them.

    Column c is class order[c], class k column place[k], the inverse permutation. A step takes n_drawn blocks:
    all of them, or drawn by ``noise`` over the blocks, or uniform ones (None).
    """

    order: np.ndarray
    place: np.ndarray
    stride: int
    n_drawn: int
    noise: Noise | None
    log_noise: np.ndarray  # (stride,): see kernels.run_block_steps

    @property
    def n_classes(self):
        return len(self.order)

    @property
    def n_blocks(self):
        return -(-len(self.order) // kernels.BLOCK)

    def expected(self):
        """Expected number of times that a step draws each block (n_blocks,)."""
        if self.noise is None or self.n_drawn == self.n_blocks:
            return np.full(self.n_blocks, self.n_drawn / self.n_blocks)
        return self.n_drawn * self.noise.p

    def probability(self):
        """Probability that a step draws each block (n_blocks,)."""
        if self.noise is None or self.n_drawn == self.n_blocks:
            return self.expected()
        return 1.0 - (1.0 - self.noise.p) ** self.n_drawn  # with replacement

    def inverse_probability(self, counts, method):
        """beta of eq. (6) in the order of the columns, from counts in that of the classes.

        NCE meets a block as often as it is drawn, the others once.
        """
        label = counts[self.order] / counts.sum()
        block = self.expected() if method == "nce" else self.probability()
        sampled = label + (1.0 - label) * np.repeat(block, kernels.BLOCK)[: self.n_classes]
        return np.divide(1.0, sampled, out=np.ones(self.n_classes), where=sampled > 0)

    def to_classes(self, W, bias):
        """Weights (n_classes, n_features) and intercepts of a table and its bias; a view if the order is."""
        K = self.n_classes
        if self.is_identity():
            return W[:, :K].T, None if bias is None else bias[:K]
        place = np.asarray(self.place, like=W)
        return W[:, place].T, None if bias is None else bias[place]

    def from_classes(self, coef, intercept, W, bias):
        """The reverse, into W and bias."""
        order = np.asarray(self.order, like=W)
        W[:, : self.n_classes] = coef.T[:, order]
        if bias is not None:
            bias[: self.n_classes] = intercept[order]

    def is_identity(self):
        return bool((self.order == np.arange(self.n_classes)).all())

    def put_in_order(self, W, bias, n_threads):
        """Bring the columns into the order of the classes, in place; returns the plan of that order."""
        if not self.is_identity():
            place = np.asarray(self.place, like=W)
            permute = kernel_module("extreme._class_blocks", W).permute_columns
            permute(W, place, *thread_arguments(W, n_threads))
            if bias is not None:
                bias[: self.n_classes] = bias[place]
        every = np.arange(self.n_classes)
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
        alike. Without, classes stand in random order, since neighbours among sorted labels may be alike.
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
    if n_drawn < n_blocks and noise is not None:
        over_blocks = Noise(np.add.reduceat(noise.p[order], np.arange(0, K, size)))
    place = np.empty(K, dtype=np.int64)
    place[order] = np.arange(K)
    plan = BlockPlan(order, place, stride, n_drawn, over_blocks, np.full(stride, np.inf))
    with np.errstate(divide="ignore"):
        plan.log_noise[:K] = np.log(np.repeat(plan.expected(), size)[:K] / (n_drawn * size))
    return plan
