"""What `sparsekit.torch` does with tensors that are not in main memory.

CUDA tensors go to the kernels of `sparsekit.gpu`, where CuPy is installed: as CuPy arrays of the same memory,
on PyTorch's current stream. Tensors of other devices, and CUDA ones without CuPy, go to PyTorch's sort.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from .._fenchel_young.losses import sparsemax as _functions
from .._typing import DeviceArray

if TYPE_CHECKING:
    from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def has_cupy() -> bool:
    """Whether CuPy can be imported."""
    return find_spec("cupy") is not None


@contextmanager
def shared(*tensors: Tensor) -> Iterator[list[DeviceArray]]:
    """CuPy arrays of the tensors' memory; what is done with them is done on PyTorch's current stream."""
    import cupy
    import torch

    device = tensors[0].device.index
    stream = torch.cuda.current_stream(device).cuda_stream
    with cupy.cuda.Device(device), cupy.cuda.ExternalStream(stream):
        yield [cupy.from_dlpack(tensor.detach()) for tensor in tensors]


def _empty(shape: Sequence[int], like: Tensor) -> Tensor:
    # PyTorch's own memory: it records the stream on which its results are written, and frees them in its
    # order
    import torch

    return torch.empty(shape, dtype=like.dtype, device=like.device)


def cuda_sparsemax(z: Tensor, dim: int) -> Tensor:
    """Sparsemax of a CUDA tensor of float32 or float64."""
    p = _empty(z.shape, z)
    with shared(z, p) as (scores, out):
        _functions.sparsemax(scores, dim, out=out)
    return p


def cuda_jvp(p: Tensor, v: Tensor, dim: int) -> Tensor:
    """Product of the Jacobian with ``v``, from probabilities ``p``."""
    result = _empty(p.shape, p)
    with shared(p, v, result) as (probabilities, direction, out):
        _functions.sparsemax_jvp(probabilities, direction, dim, out=out)
    return result


def cuda_loss(z: Tensor, q: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Losses, and their gradients p - q."""
    slope = _empty(z.shape, z)
    loss = _empty([size for i, size in enumerate(z.shape) if i != dim % z.ndim], z)
    with shared(z, q, slope, loss) as (scores, target, out, losses):
        losses[...] = _functions.sparsemax_loss_and_gradient(scores, target, dim, out=out)[0]
    return loss, slope


def with_cupy(kernel: Callable[P, R], otherwise: Callable[P, R]) -> Callable[P, R]:
    """``kernel`` where CuPy is installed when it is first called, else ``otherwise``."""

    def call(*args: P.args, **options: P.kwargs) -> R:
        return (kernel if has_cupy() else otherwise)(*args, **options)

    return call


def sorted_sparsemax(z: Tensor, dim: int) -> Tensor:
    """Algorithm 2: by sorting, for devices that have no kernel of ours."""
    import torch

    high = z.amax(dim, keepdim=True)
    shift = torch.where(torch.isfinite(high), high, 0.0)
    ranked = (z - shift).sort(dim=dim, descending=True).values
    rank = torch.arange(1, z.shape[dim] + 1, device=z.device, dtype=z.dtype)
    rank = rank.view([-1 if i == dim % z.ndim else 1 for i in range(z.ndim)])
    total = ranked.cumsum(dim) - 1.0
    size = (rank * ranked > total).sum(dim, keepdim=True).clamp(min=1)
    p = (z - shift - total.gather(dim, size - 1) / size).clamp(min=0.0)
    top = (z == high).to(z.dtype)
    p = torch.where(high == torch.inf, top / top.sum(dim, keepdim=True), p)
    return torch.where(high == -torch.inf, 0.0, p).contiguous()


def sorted_jvp(p: Tensor, v: Tensor, dim: int) -> Tensor:
    """Product of the Jacobian with ``v``, from probabilities ``p``."""
    import torch

    support = p != 0
    v = torch.where(support, v, 0.0)
    mean = v.sum(dim, keepdim=True) / support.sum(dim, keepdim=True).clamp(min=1)
    return torch.where(support, v - mean, 0.0).contiguous()


def sorted_loss(z: Tensor, q: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Losses, and their gradients p - q."""
    import torch

    if q.ndim < z.ndim:
        q = torch.nn.functional.one_hot(q.long(), z.shape[dim]).movedim(-1, dim).to(z.dtype)
    if not bool(((q >= 0).all() & ((q.sum(dim) - 1).abs() <= 1e-4).all()).item()):
        raise ValueError("q, the targets, must be distributions over the classes: entries >= 0 that sum to 1")
    p = sorted_sparsemax(z, dim)
    slope = p - q
    # tau where there is a finite score: what a member's score exceeds its share by
    tau = torch.where(p > 0, z - p, torch.inf).amin(dim, keepdim=True)
    below = torch.where((q > 0) & (p == 0), q * (tau - z).clamp(min=0.0), 0.0)
    return 0.5 * slope.square().sum(dim) + below.sum(dim), slope.contiguous()
