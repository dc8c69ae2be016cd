"""Where `sparsekit.torch.FactorGraphLayer` solves.

CUDA tensors are solved on their GPU if CuPy is installed, by DLPack and on PyTorch's current stream. All
other tensors are solved on the CPU, as are graphs with a factor that has a MAP oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from .._factor_graph.factors.factors import Factor
from .._factor_graph.graphs.graph import FactorGraph
from .._typing import EitherArray
from .sparsemax import has_cupy, shared

if TYPE_CHECKING:
    from torch import Tensor, device


def is_cuda(tensor: Tensor) -> bool:
    """Whether a tensor is CuPy's to work with."""
    return bool(tensor.is_cuda)


def device_of(tensor: Tensor, graph: FactorGraph) -> device | str:
    """The device on which a graph is solved for the scores in a tensor."""
    stays = is_cuda(tensor) and has_cupy() and not any(map(has_to_stay, graph.factors))
    return tensor.device if stays else "cpu"


def has_to_stay(factor: Factor) -> bool:
    """Whether a factor can be solved on the CPU alone."""
    return factor._kind == "structured"


@contextmanager
def arrays(*tensors: Tensor) -> Iterator[list[EitherArray]]:
    """NumPy's or CuPy's arrays of the tensors' memory."""
    if is_cuda(tensors[0]):
        with shared(*(tensor.contiguous() for tensor in tensors)) as found:
            yield found
    else:
        yield [tensor.numpy(force=True) for tensor in tensors]


def tensor_like(array: EitherArray, tensor: Tensor) -> Tensor:
    """A tensor of an array, in memory of PyTorch's own, where another tensor is."""
    import torch

    if isinstance(array, np.ndarray):
        return torch.from_numpy(array)
    # its dtype by the array's name: torch.float32, torch.float64
    out = torch.empty(array.shape, dtype=getattr(torch, str(array.dtype)), device=tensor.device)
    with shared(out) as (memory,):
        memory[...] = array
    return out
