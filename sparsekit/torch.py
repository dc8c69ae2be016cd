"""PyTorch layers: sparsemax, its loss, and LP-SparseMAP, on the kernels of :mod:`sparsekit`.

Needs PyTorch (``pip install torch``); nothing else in the package does. Tensors on the CPU use
the package's own kernels with ``torch.get_num_threads()`` threads. CUDA tensors use its CUDA kernels,
without a copy, where CuPy is installed; else, and on other devices, PyTorch's sort runs.
All operators are differentiable twice and known to ``torch.compile``.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal, Unpack

import numpy as np
from sklearn.exceptions import ConvergenceWarning

try:
    import torch
except ImportError as error:
    raise ImportError("sparsekit.torch needs PyTorch: pip install torch") from error

from torch import Tensor, nn

from ._arrays import to_host
from ._factor_graph.graph import FactorGraph, check_options
from ._fenchel_young import sparsemax as _functions
from ._messages import shown
from ._solver import outcome
from ._torch import factor_graph as _graphs
from ._torch import sparsemax as _device
from ._typing import SolveOptions

_Reduction = Literal["mean", "sum", "none"]

__all__ = ["FactorGraphLayer", "Sparsemax", "SparsemaxLoss", "sparsemax", "sparsemax_loss"]

_TYPES = {torch.float32: np.float32, torch.float64: np.float64}


def _threads():
    return torch.get_num_threads()


@torch.library.custom_op("sparsekit::sparsemax", mutates_args=(), device_types="cpu")
def _sparsemax(z: Tensor, dim: int) -> Tensor:
    # NumPy's arrays come in huge pages where the system has them, which halves the time of large calls
    p = np.empty(z.shape, dtype=_TYPES[z.dtype])
    _functions.sparsemax(z.numpy(force=True), dim, out=p, n_jobs=_threads())
    return torch.from_numpy(p)


@_sparsemax.register_fake
def _(z: Tensor, dim: int) -> Tensor:
    return torch.empty(z.shape, dtype=z.dtype, device=z.device)


@torch.library.custom_op("sparsekit::sparsemax_jvp", mutates_args=(), device_types="cpu")
def _jvp(p: Tensor, v: Tensor, dim: int) -> Tensor:
    out = np.empty(p.shape, dtype=_TYPES[p.dtype])
    _functions.sparsemax_jvp(p.numpy(force=True), v.numpy(force=True), dim, out=out, n_jobs=_threads())
    return torch.from_numpy(out)


@_jvp.register_fake
def _(p: Tensor, v: Tensor, dim: int) -> Tensor:
    return torch.empty(p.shape, dtype=p.dtype, device=p.device)


def _keep_result(ctx, inputs, output):
    ctx.dim = inputs[1]
    ctx.save_for_backward(output)


_sparsemax.register_autograd(
    lambda ctx, g: (_jvp(ctx.saved_tensors[0], g, ctx.dim), None), setup_context=_keep_result
)


def _keep_support(ctx, inputs, output):
    ctx.dim = inputs[2]
    ctx.save_for_backward(inputs[0])


# the support is piecewise constant, so nothing flows to p; in v the product is linear and symmetric
_jvp.register_autograd(
    lambda ctx, g: (None, _jvp(ctx.saved_tensors[0], g, ctx.dim), None), setup_context=_keep_support
)


@torch.library.custom_op("sparsekit::sparsemax_loss", mutates_args=(), device_types="cpu")
def _loss(z: Tensor, q: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Losses, and their gradients p - q."""
    slope = np.empty(z.shape, dtype=_TYPES[z.dtype])
    loss, _ = _functions.sparsemax_loss_and_gradient(
        z.numpy(force=True), q.numpy(force=True), dim, out=slope, n_jobs=_threads()
    )
    return torch.as_tensor(loss, dtype=z.dtype), torch.from_numpy(slope)


@_loss.register_fake
def _(z: Tensor, q: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    shape = [size for i, size in enumerate(z.shape) if i != dim % z.ndim]
    return z.new_empty(shape), z.new_empty(z.shape)


def _keep_loss(ctx, inputs, output):
    z, q, ctx.dim = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(z, q, output[1])


def _loss_backward(ctx, g_loss, g_slope):
    z, q, slope = ctx.saved_tensors
    soft = q.ndim == z.ndim
    to_z = to_q = None
    if g_loss is not None:
        g = g_loss.unsqueeze(ctx.dim)
        to_z = g * slope
        if soft and ctx.needs_input_grad[1]:
            # a masked class without a share stays without one
            to_q = torch.where(torch.isinf(z) & (q == 0), 0.0, g * (q - z))
    if g_slope is not None:  # only when the gradient itself is differentiated
        p = _sparsemax(z, ctx.dim)
        further = _jvp(p, g_slope.contiguous(), ctx.dim)
        to_z = further if to_z is None else to_z + further
        if soft and ctx.needs_input_grad[1]:
            to_q = -g_slope if to_q is None else to_q - g_slope
    return to_z, to_q, None


_loss.register_autograd(_loss_backward, setup_context=_keep_loss)

# what runs on devices that have no kernel of ours, and on CUDA
_Kernels = dict[Any, Callable[..., Any]]
GENERAL: _Kernels = {
    _sparsemax: _device.sorted_sparsemax,
    _jvp: _device.sorted_jvp,
    _loss: _device.sorted_loss,
}
CUDA: _Kernels = {_sparsemax: _device.cuda_sparsemax, _jvp: _device.cuda_jvp, _loss: _device.cuda_loss}
for _operator, _kernel in GENERAL.items():
    _operator.register_kernel(["mps", "xpu"])(_kernel)
    _operator.register_kernel("cuda")(_device.with_cupy(CUDA[_operator], _kernel))


def _wide(z):
    """z in a type that the kernels know; half precision is worked in single precision."""
    if not isinstance(z, torch.Tensor):
        raise TypeError(
            f"input must be a tensor; got {type(z).__module__}.{type(z).__qualname__}, for which there is "
            "sparsekit.sparsemax (and sparsemax_loss)"
        )
    if not z.is_floating_point():
        raise TypeError(f"input must be a floating point tensor; got {z.dtype}")
    return z if z.dtype in (torch.float32, torch.float64) else z.float()


def sparsemax(input: Tensor, dim: int = -1, mask: Tensor | None = None) -> Tensor:
    """Euclidean projection of the scores along ``dim`` onto the probability simplex.

    Parameters
    ----------
    input : Tensor
        Scores of any shape and floating point type.
    dim : int, default=-1
        Dimension along which probabilities sum to 1.
    mask : Tensor of bool, default=None
        Broadcast to the scores' shape: where it is False the probability is 0. Scores of -inf mean the same.
        Where nothing is allowed, all probabilities are 0 and no gradient flows; never NaN.

    Returns
    -------
    Tensor
        Probabilities, of the scores' shape and type.

    Examples
    --------
    >>> import torch
    >>> from sparsekit.torch import sparsemax
    >>> sparsemax(torch.tensor([1.0, 0.5, 0.75]), mask=torch.tensor([True, True, False]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    z = _wide(input)
    if mask is not None:
        z = z.masked_fill(~mask, -torch.inf)
    return _sparsemax(z, dim).to(input.dtype)


def sparsemax_loss(
    input: Tensor, target: Tensor, dim: int = -1, reduction: _Reduction = "mean", ignore_index: int = -100
) -> Tensor:
    """Sparsemax loss of scores and targets.

    Parameters
    ----------
    input : Tensor
        Scores.
    target : Tensor
        Integer classes, of the scores' shape without ``dim``; or distributions, to which gradients flow too.
    dim : int, default=-1
        Dimension of the classes.
    reduction : {"mean", "sum", "none"}, default="mean"
        What to make of the losses.
    ignore_index : int, default=-100
        Class of targets that do not count.

    Returns
    -------
    Tensor
        A scalar, or the losses without reduction.

    Examples
    --------
    >>> import torch
    >>> from sparsekit.torch import sparsemax_loss
    >>> sparsemax_loss(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]))
    tensor(0.1250)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {shown(reduction)}")
    z = _wide(input)
    if target.shape == z.shape:
        q = target.to(z.dtype)
        if target.dtype in (torch.float16, torch.bfloat16):
            # half precision cannot sum to one any better than this
            total = q.sum(dim, keepdim=True)
            q = torch.where((total - 1.0).abs() <= 0.02, q / total, q)
        loss = _loss(z, q, dim)[0]
        left_out = None
    else:
        left_out = target == ignore_index
        loss = _loss(z, target.masked_fill(left_out, 0), dim)[0].masked_fill(left_out, 0.0)
    if reduction == "none":
        return loss.to(input.dtype)
    total = loss.sum()
    if reduction == "mean":
        total = total / (loss.numel() if left_out is None else (~left_out).sum())
    return total.to(input.dtype)


class Sparsemax(nn.Module):
    """:func:`sparsemax` as a module.

    Parameters
    ----------
    dim : int, default=-1
        Dimension along which probabilities sum to 1.

    Examples
    --------
    >>> from sparsekit.torch import Sparsemax
    >>> Sparsemax(dim=1)
    Sparsemax(dim=1)
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:
        """Probabilities; see :func:`sparsemax`."""
        return sparsemax(input, self.dim, mask)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class SparsemaxLoss(nn.Module):
    """:func:`sparsemax_loss` as a module.

    Parameters
    ----------
    dim, reduction, ignore_index
        As in :func:`sparsemax_loss`.

    Examples
    --------
    >>> from sparsekit.torch import SparsemaxLoss
    >>> SparsemaxLoss(reduction="sum")
    SparsemaxLoss(dim=-1, reduction='sum')
    """

    def __init__(self, dim: int = -1, reduction: _Reduction = "mean", ignore_index: int = -100) -> None:
        super().__init__()
        self.dim, self.reduction, self.ignore_index = dim, reduction, ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss; see :func:`sparsemax_loss`."""
        return sparsemax_loss(input, target, self.dim, self.reduction, self.ignore_index)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, reduction={self.reduction!r}"


class _Solve(torch.autograd.Function):
    """Marginals (B, n_variables) of scores (B, n_variables) and (B, n_additional)."""

    @staticmethod
    def forward(ctx, scores, additional, layer):
        ctx.solution = layer._solve(scores, additional)
        return _graphs.tensor_like(ctx.solution.x.copy(), scores)

    @staticmethod
    def backward(ctx, direction):
        return *_Backward.apply(direction, ctx.solution), None


class _Backward(torch.autograd.Function):
    """Algorithm 2, linear in the direction; its own derivative is the product with the Jacobian."""

    @staticmethod
    def forward(ctx, direction, solution):
        ctx.solution = solution
        with _graphs.arrays(direction) as (d,):
            got = solution.vjp(d, n_jobs=torch.get_num_threads())
            return tuple(_graphs.tensor_like(part, direction) for part in (got.scores, got.additional_scores))

    @staticmethod
    def backward(ctx, scores, additional):
        with _graphs.arrays(scores, additional) as directions:
            moved = ctx.solution.jvp(*directions, n_jobs=torch.get_num_threads())
            return _graphs.tensor_like(moved, scores), None


class FactorGraphLayer(nn.Module):
    """LP-SparseMAP in one factor graph for a batch of scores.

    Forward and backward are calls of compiled code, with threads over the graphs of the batch. Derivatives of
    any order are exact almost everywhere. CUDA tensors are solved on their GPU where CuPy is installed and no
    factor but small Dense ones has a MAP oracle, other tensors on the CPU.

    Parameters
    ----------
    graph : FactorGraph
        Variables and factors. It may not change as long as the layer is in use; its scores are not read, its
        additional scores only where none are given.
    **options
        Those of :meth:`~sparsekit.FactorGraph.solve`. The paper trains with ``exact=False, max_iter=10,
        step_size=0.5``; marginals and gradients of so few iterations are far from the solution's.

    Examples
    --------
    >>> import torch
    >>> from sparsekit import FactorGraph, Xor
    >>> from sparsekit.torch import FactorGraphLayer
    >>> graph = FactorGraph()
    >>> graph.add(Xor(graph.variable((3,))))
    >>> FactorGraphLayer(graph)(torch.tensor([[0.0, 0.5, -2.0]]))
    tensor([[0.2500, 0.7500, 0.0000]])
    """

    def __init__(self, graph: FactorGraph, **options: Unpack[SolveOptions]) -> None:
        super().__init__()
        if not isinstance(graph, FactorGraph):
            raise TypeError(f"graph must be a FactorGraph; got {type(graph).__name__}")
        check_options(options)
        self.graph, self.options = graph, options

    def forward(self, scores: Tensor, additional_scores: Tensor | None = None) -> Tensor:
        """Marginals.

        Parameters
        ----------
        scores : Tensor of shape (..., n_variables)
            Or of the shape of the graph's variables, where they were made at once, behind any batch
            dimensions. -inf forbids.
        additional_scores : Tensor of shape (..., n_additional), default=None
            Broadcast to the batch. None: the graph's.

        Returns
        -------
        Tensor
            Of the scores' shape and type.

        Raises
        ------
        ValueError
            If a graph of the batch is infeasible.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If an exact solution was not reached within ``max_iter`` or ``max_time``.
        """
        if not scores.is_floating_point():
            raise TypeError(f"scores must be a floating point tensor; got {scores.dtype}")
        batch = self._batch_shape(scores)
        n = int(np.prod(batch, dtype=np.int64))
        flat = self._wide(scores).reshape(n, self.graph.n_variables)
        if additional_scores is None:
            extra = torch.as_tensor(self.graph.additional_scores, dtype=flat.dtype, device=flat.device)
        else:
            extra = additional_scores.to(device=flat.device, dtype=flat.dtype)
        if extra.shape[-1:] != (self.graph.n_additional,):
            raise ValueError(
                f"additional_scores must have {self.graph.n_additional} in the last dimension; "
                f"got {tuple(extra.shape)}"
            )
        extra = extra.expand(*batch, self.graph.n_additional).reshape(n, self.graph.n_additional)
        out = _Solve.apply(flat, extra, self)
        return out.to(device=scores.device, dtype=scores.dtype).reshape(scores.shape)

    def _wide(self, scores):
        """Scores where they are solved, in a type that NumPy knows; gradients go back the same way."""
        dtype = scores.dtype if scores.dtype in (torch.float32, torch.float64) else torch.float32
        return scores.to(device=_graphs.device_of(scores, self.graph), dtype=dtype)

    def _batch_shape(self, scores):
        shape, n = tuple(scores.shape), self.graph.n_variables
        made = self.graph._shapes
        if len(made) == 1 and shape[len(shape) - len(made[0]) :] == made[0]:
            return shape[: len(shape) - len(made[0])]
        if shape[-1:] != (n,):
            raise ValueError(f"scores must have {n} variables in the last dimension; got {shape}")
        return shape[:-1]

    def _solve(self, scores, additional):
        with _graphs.arrays(scores, additional) as given:
            found = self.graph.solve_batch(*given, n_jobs=torch.get_num_threads(), **self.options)
            status = to_host(found.status)
        if (status == outcome.INFEASIBLE).any():
            where = np.flatnonzero(status == outcome.INFEASIBLE)[:10].tolist()
            raise ValueError(f"no assignment satisfies all factors in graphs {where} of the batch")
        short = np.isin(status, (outcome.MAX_ITER, outcome.MAX_TIME))
        if self.options.get("exact", True) and short.any():
            warnings.warn(
                f"{short.sum()} of {len(status)} graphs stopped at max_iter or max_time "
                "before the residual reached the tolerance. Increase them, or pass exact=False if that "
                "is meant.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found

    def extra_repr(self) -> str:
        return f"n_variables={self.graph.n_variables}, n_factors={len(self.graph.factors)}"
