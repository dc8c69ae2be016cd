"""Operators of `sparsekit.torch` for sparsemax and its loss, and their derivatives.

Each is an operator of PyTorch's library inside an `autograd.Function`. `torch.compile` and `torch.export`
keep the operator whole. Only the function can have rules for `torch.func.grad`, `jvp` and what is made of
them. Annotations are read when the module is imported: PyTorch makes the operators' schemas of them. Plain
tensors in main memory go around both, see `eager`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from .._fenchel_young.losses import sparsemax as _functions
from . import sparsemax as _device
from .eager import differentiable, operator

_TYPES = {torch.float32: np.float32, torch.float64: np.float64}


def _sparsemax(z: Tensor, dim: int) -> Tensor:
    # NumPy's arrays come in huge pages where the system has them, which halves the time of large calls
    p = np.empty(z.shape, dtype=_TYPES[z.dtype])
    _functions.sparsemax(z.numpy(force=True), dim, out=p, n_jobs=torch.get_num_threads())
    return torch.from_numpy(p)


def _product(p: Tensor, v: Tensor, dim: int) -> Tensor:
    out = np.empty(p.shape, dtype=_TYPES[p.dtype])
    _functions.sparsemax_jvp(
        p.numpy(force=True), v.numpy(force=True), dim, out=out, n_jobs=torch.get_num_threads()
    )
    return torch.from_numpy(out)


def _loss(z: Tensor, q: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Losses, and their gradients p - q."""
    slope = np.empty(z.shape, dtype=_TYPES[z.dtype])
    losses, _ = _functions.sparsemax_loss_and_gradient(
        z.numpy(force=True), q.numpy(force=True), dim, out=slope, n_jobs=torch.get_num_threads()
    )
    return torch.as_tensor(losses, dtype=z.dtype), torch.from_numpy(slope)


def empty_like(tensor: Tensor, *_: Any) -> Tensor:
    """What an operator returns where programs are traced: a tensor like its first argument."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _empty_losses(z: Tensor, q: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    shape = [size for i, size in enumerate(z.shape) if i != dim % z.ndim]
    return z.new_empty(shape), z.new_empty(z.shape)


sparsemax = operator("sparsemax", _sparsemax, empty_like, "cpu")
product = operator("sparsemax_jvp", _product, empty_like, "cpu")
loss = operator("sparsemax_loss", _loss, _empty_losses, "cpu")


# what runs on devices that have no kernel of ours, and on CUDA
_Kernels = dict[Any, Callable[..., Any]]
GENERAL: _Kernels = {
    sparsemax: _device.sorted_sparsemax,
    product: _device.sorted_jvp,
    loss: _device.sorted_loss,
}
CUDA: _Kernels = {sparsemax: _device.cuda_sparsemax, product: _device.cuda_jvp, loss: _device.cuda_loss}
for _operator, _kernel in GENERAL.items():
    _operator.register_kernel(["mps", "xpu"])(_kernel)
    _operator.register_kernel("cuda")(_device.with_cupy(CUDA[_operator], _kernel))


def stacked(info, dims, *tensors):
    """Tensors with the dimension of `torch.func.vmap` in front; those without one are repeated."""
    return [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, dims)
    ]


def _behind(dim, stack):
    """``dim`` of the tensors that are stacked, in the stack."""
    ndim = stack.ndim - 1
    if not -ndim <= dim < ndim:
        raise IndexError(f"dim must be between {-ndim} and {ndim - 1}; got {dim}")
    return dim % ndim + 1


def _batched(operator, at):
    """The rule of `torch.func.vmap` for an operator along a dimension; ``at``: where it stacks results."""

    def rule(info, dims, *inputs):
        *tensors, dim = inputs
        tensors = stacked(info, dims, *tensors)
        return operator(*tensors, _behind(dim, tensors[0])), at

    return rule


class Product(Function):
    """The Jacobian's product with v: linear in v and symmetric; the support is piecewise constant."""

    generate_vmap_rule = True

    @staticmethod
    def forward(p, v, dim):
        return product(p, v, dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        p, _, ctx.dim = inputs
        ctx.save_for_backward(p)
        ctx.save_for_forward(p)

    @staticmethod
    def backward(ctx, g):
        return None, _apply_product(ctx.saved_tensors[0], g, ctx.dim), None

    @staticmethod
    def jvp(ctx, to_p, to_v, _):
        (p,) = ctx.saved_tensors
        return torch.zeros_like(p) if to_v is None else _apply_product(p, to_v, ctx.dim)


class Sparsemax(Function):
    """Sparsemax along a dimension."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z, dim):
        return sparsemax(z, dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.dim = inputs[1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        return _apply_product(ctx.saved_tensors[0], g, ctx.dim), None

    @staticmethod
    def jvp(ctx, to_z, _):
        return _apply_product(ctx.saved_tensors[0], to_z, ctx.dim)


class Loss(Function):
    """The loss and its gradient p - q; q are classes, or distributions."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z, q, dim):
        return loss(z, q, dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        z, q, ctx.dim = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(z, q, output[1])
        ctx.save_for_forward(z, q, output[1])

    @staticmethod
    def backward(ctx, g_loss, g_slope):
        z, q, slope = ctx.saved_tensors
        soft = q.ndim == z.ndim and ctx.needs_input_grad[1]
        to_z = to_q = None
        if g_loss is not None:
            g = g_loss.unsqueeze(ctx.dim)
            to_z = g * slope
            if soft:
                to_q = g * _by_target(z, q)
        if g_slope is not None:  # only when the gradient itself is differentiated
            p = apply_sparsemax(z, ctx.dim)
            further = _apply_product(p, g_slope.contiguous(), ctx.dim)
            to_z = further if to_z is None else to_z + further
            if soft:
                to_q = -g_slope if to_q is None else to_q - g_slope
        return to_z, to_q, None

    @staticmethod
    def jvp(ctx, to_z, to_q, _):
        z, q, slope = ctx.saved_tensors
        moved, further = torch.zeros_like(slope), torch.zeros_like(slope)
        if to_z is not None:
            moved = moved + slope * to_z
            further = further + _apply_product(apply_sparsemax(z, ctx.dim), to_z, ctx.dim)
        if to_q is not None and q.ndim == z.ndim:
            moved = moved + _by_target(z, q) * to_q
            further = further - to_q
        return moved.sum(ctx.dim), further


def _by_target(z, q):
    """Derivative of the loss by the target; a masked class without a share stays without one."""
    return torch.where(torch.isinf(z) & (q == 0), 0.0, q - z)


_apply_product = differentiable(product, Product, _product, _batched(product, 0))
_apply_sparsemax = differentiable(sparsemax, Sparsemax, _sparsemax, _batched(sparsemax, 0))
_apply_loss = differentiable(loss, Loss, _loss, _batched(loss, (0, 0)))


# torch.compile does not trace it, since it would stop at the rules for `jvp`; what it makes of the program
# afterwards does
@torch.compiler.allow_in_graph
def apply_sparsemax(z: Tensor, dim: int) -> Tensor:
    """Sparsemax, with its derivatives."""
    return _apply_sparsemax(z, dim)


@torch.compiler.allow_in_graph
def apply_loss(z: Tensor, q: Tensor, dim: int) -> Tensor:
    """Losses, with their derivatives."""
    return _apply_loss(z, q, dim)[0]
