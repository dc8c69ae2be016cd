"""Sums over blocks whose order depends on nothing but the number of blocks.

The blocks 0 .. n - 1 are the leaves of a binary tree: the parent of two neighbours 2 i and 2 i + 1 is their
sum, and a last one without a neighbour moves up as it is. Whoever sums a part of the leaves that lies under
one node, in whatever process and at whatever time, gets that node's bits, so that the result is the same
for any number of workers.
"""

import numpy as np


def combine(left, right, own=False):
    """Sum of two results of a kernel: of numbers and arrays; lists are joined; None is nothing.

    Tuples are combined entry by entry. Arrays of the left one are overwritten if they are the caller's
    ``own``.
    """
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, tuple):
        return tuple(combine(a, b, own) for a, b in zip(left, right, strict=True))
    if own and isinstance(left, np.ndarray) and left.ndim:
        left += right
        return left
    return left + right


class TreeSum:
    """Takes the leaves in their order, and holds one partial sum for each level of the tree."""

    def __init__(self):
        self._levels = []  # sum of a full subtree of 2^i leaves, or None
        self._count = 0

    def add(self, leaf):
        """The next leaf."""
        self._count += 1
        level, node, filled = 0, leaf, self._count
        while filled % 2 == 0:
            node, self._levels[level] = combine(self._levels[level], node, own=True), None
            level, filled = level + 1, filled // 2
        if level == len(self._levels):
            self._levels.append(None)
        self._levels[level] = node

    def total(self):
        """The root: what is left over on low levels is added to the right of what stands higher."""
        total = None
        for node in self._levels:
            total = node if total is None else combine(node, total, own=True)
        return total


def tree_sum(leaves):
    """The root over an iterable of leaves."""
    found = TreeSum()
    for leaf in leaves:
        found.add(leaf)
    return found.total()


def group_size(n_blocks, most):
    """The least power of two that puts the blocks into at most ``most`` groups, each under one node."""
    size = 1
    while -(-n_blocks // size) > max(most, 1):
        size *= 2
    return size
