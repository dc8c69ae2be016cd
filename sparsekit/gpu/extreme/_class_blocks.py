"""Kernels of softmax with very many classes whose negatives are blocks of neighbouring classes, on a GPU.

Steps are those of `sparsekit.gpu.extreme._extreme`, with the weights feature by feature.
"""

from __future__ import annotations

from ..._typing import DeviceArray
from ._extreme import BLOCK, run
from ._step_arguments import BlockOptions, Rows, State, Work

__all__ = ["BLOCK", "permute_columns", "run_block_steps"]

# entries of a copy of some rows of weights
COPIED = 2**24


def run_block_steps(
    data: DeviceArray, indices: DeviceArray, indptr: DeviceArray, W: DeviceArray, rows: Rows, state: State,
    work: Work, options: BlockOptions, eta: float, begin: int, end: int,
) -> int:  # fmt: skip
    """Steps of length eta over work.examples[begin : end], with blocks of negatives, some rows at a time.

    Arguments are those of ``_cython.extreme._class_blocks.run_block_steps``; the work space of the CPU's
    threads is not used. Returns what `_extreme.run_steps` does.
    """
    plan = options.plan
    return run(
        data, indices, indptr, W, rows, state, work, options, eta, begin, end, work.columns,
        (1, W.shape[1]), (plan.n_blocks, plan.n_drawn),
    )  # fmt: skip


def permute_columns(W: DeviceArray, order: DeviceArray) -> None:
    """W[:, : len(order)] = W[:, order], some rows at a time."""
    n = len(order)
    height = max(1, COPIED // max(1, n))
    for lo in range(0, W.shape[0], height):
        W[lo : lo + height, :n] = W[lo : lo + height].take(order, axis=1)
