"""PyTorch layers: sparsemax, its loss, and LP-SparseMAP, on the kernels of :mod:`sparsekit`.

Needs PyTorch (``pip install torch``); nothing else in the package does. Tensors on the CPU use
the package's own kernels with ``torch.get_num_threads()`` threads. CUDA tensors use its CUDA kernels,
without a copy, where CuPy is installed; else, and on other devices, PyTorch's sort runs.
All are differentiable twice, whole to ``torch.compile(fullgraph=True)`` and ``torch.export``, and have
``torch.func``'s ``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd`` and ``vmap``.
"""

import math
import warnings
from typing import Literal, Unpack

import numpy as np
from sklearn.exceptions import ConvergenceWarning

try:
    import torch
except ImportError as error:
    raise ImportError("sparsekit.torch needs PyTorch: pip install torch") from error

if not hasattr(torch.library, "custom_op") or not hasattr(torch.library, "register_vmap"):
    raise ImportError(f"sparsekit.torch needs PyTorch 2.5 or newer; this is {torch.__version__}")

from torch import Tensor, nn

from ._arrays import to_host
from ._factor_graph.graphs.graph import FactorGraph
from ._factor_graph.solver.layout import check_options
from ._messages import shown
from ._solver import outcome
from ._torch import factor_graph as _graphs
from ._torch.graph_operators import apply_own_scores, apply_solve, register
from ._torch.operators import apply_loss, apply_sparsemax
from ._typing import SolveOptions

_Reduction = Literal["mean", "sum", "none"]

__all__ = ["FactorGraphLayer", "Sparsemax", "SparsemaxLoss", "sparsemax", "sparsemax_loss"]


def _wide(z):
    """z in a type of the kernels; half precision is worked in single precision."""
    if not isinstance(z, torch.Tensor):
        raise TypeError(
            f"input must be a tensor; got {type(z).__module__}.{type(z).__qualname__}, for which there is "
            "sparsekit.sparsemax (and sparsemax_loss)"
        )
    if not z.is_floating_point():
        raise TypeError(f"input must be a floating point tensor; got {z.dtype}")
    return z if z.dtype in (torch.float32, torch.float64) else z.float()


def _check_dim(dim, ndim=None):
    """TypeError if ``dim`` is no integer, ValueError if a tensor of ``ndim`` dimensions has no such one."""
    if isinstance(dim, bool) or not isinstance(dim, int | torch.SymInt):
        hint = f"; pass reduction={shown(dim)}" if dim in ("mean", "sum", "none") else ""
        raise TypeError(f"dim must be an integer; got {shown(dim)}{hint}")
    if ndim == 0:
        raise ValueError("input must have at least one dimension; got a scalar")
    if ndim is not None and not -ndim <= dim < ndim:
        raise ValueError(f"dim must lie in {-ndim} .. {ndim - 1}; got {dim}")


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
    _check_dim(dim, z.ndim)
    if mask is not None:
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            got = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
            raise TypeError(f"mask must be a tensor of bool; got {got}")
        z = z.masked_fill(~mask, -torch.inf)
    return apply_sparsemax(z, dim).to(input.dtype)


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
    _check_dim(dim, z.ndim)
    if not isinstance(target, torch.Tensor):
        raise TypeError(f"target must be a tensor; got {type(target).__name__}")
    classes = (*z.shape[: dim % z.ndim], *z.shape[dim % z.ndim + 1 :])
    if target.shape != z.shape and (target.shape != classes or target.is_floating_point()):
        raise ValueError(
            f"target must have the shape of input, {tuple(z.shape)}, or be integer classes of shape "
            f"{classes}; got {target.dtype} {tuple(target.shape)}"
        )
    if target.shape == z.shape:
        q = target.to(z.dtype)
        if target.dtype in (torch.float16, torch.bfloat16):
            # half precision cannot sum to one any better than this
            total = q.sum(dim, keepdim=True)
            q = torch.where((total - 1.0).abs() <= 0.02, q / total, q)
        loss = apply_loss(z, q, dim)
        left_out = None
    else:
        left_out = target == ignore_index
        loss = apply_loss(z, target.masked_fill(left_out, 0), dim).masked_fill(left_out, 0.0)
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
        _check_dim(dim)
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
    dim, reduction, ignore_index : default=-1, "mean", -100
        As in :func:`sparsemax_loss`.

    Examples
    --------
    >>> from sparsekit.torch import SparsemaxLoss
    >>> SparsemaxLoss(reduction="sum")
    SparsemaxLoss(dim=-1, reduction='sum')
    """

    def __init__(self, dim: int = -1, reduction: _Reduction = "mean", ignore_index: int = -100) -> None:
        super().__init__()
        _check_dim(dim)
        self.dim, self.reduction, self.ignore_index = dim, reduction, ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss; see :func:`sparsemax_loss`."""
        return sparsemax_loss(input, target, self.dim, self.reduction, self.ignore_index)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, reduction={self.reduction!r}"


class FactorGraphLayer(nn.Module):
    """LP-SparseMAP in one factor graph for a batch of scores.

    Forward and backward are calls of compiled code, with threads over the graphs of the batch. Derivatives of
    any order are exact almost everywhere. CUDA tensors are solved on their GPU if CuPy is installed and no
    factor has a MAP oracle. Others are solved on the CPU.

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
        self._key = register(self)

    def __getstate__(self):
        # a copy is another layer
        return {name: value for name, value in self.__dict__.items() if name != "_key"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._key = register(self)

    def forward(self, scores: Tensor, additional_scores: Tensor | None = None) -> Tensor:
        """Marginals.

        Parameters
        ----------
        scores : Tensor of shape (..., n_variables)
            Or of the shape of the graph's variables, where they were made at once, behind any batch
            dimensions. -inf forbids.
        additional_scores : Tensor of shape (..., n_additional), default=None
            Those of all factors, one factor after the other, broadcast to the batch. Where one factor has
            them all, they may also have its shape behind the batch: (..., T - 1, K, K) for a Sequence.
            None: the graph's.

        Returns
        -------
        Tensor
            Of the scores' shape and type.

        Raises
        ------
        ValueError
            If a graph of the batch is infeasible, or scores have another shape.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If an exact solution was not reached within ``max_iter`` or ``max_time``.
        """
        if not isinstance(scores, torch.Tensor):
            raise TypeError(
                f"scores must be a tensor; got {type(scores).__module__}.{type(scores).__qualname__}, for "
                "which there is FactorGraph.solve_batch"
            )
        if not scores.is_floating_point():
            raise TypeError(f"scores must be a floating point tensor; got {scores.dtype}")
        batch = self._batch_shape(scores)
        n, n_additional = math.prod(batch), self.graph.n_additional
        flat = _wide(scores).reshape(n, self.graph.n_variables)
        if additional_scores is None:
            extra = apply_own_scores(flat, n_additional, self._key)
        else:
            extra = self._flat_additional(additional_scores).to(device=flat.device, dtype=flat.dtype)
        extra = extra.expand(*batch, n_additional).reshape(n, n_additional)
        return apply_solve(flat, extra, self._key).to(scores.dtype).reshape(scores.shape)

    def _flat_additional(self, given):
        n, shape = self.graph.n_additional, tuple(given.shape)
        if shape[-1:] == (n,):
            return given
        theirs = [factor._full_shape for factor in self.graph.factors if factor.n_additional]
        if len(theirs) == 1 and shape[-len(theirs[0]) :] == theirs[0]:
            return given.flatten(-len(theirs[0]))
        raise ValueError(
            f"additional_scores must have {n} in the last dimension, for factors whose own have the shapes "
            f"{', '.join(map(str, theirs[:6])) or 'of none'}; got {shape}"
        )

    def _batch_shape(self, scores):
        shape, n = tuple(scores.shape), self.graph.n_variables
        made = self.graph._shapes
        # from the last one on: where that tells, an exported program may have any size of the others
        if (
            len(made) == 1
            and len(shape) >= len(made[0])
            and all(a == b for a, b in zip(shape[::-1], made[0][::-1]))
        ):
            return shape[: len(shape) - len(made[0])]
        if shape[-1:] != (n,):
            also = f", or end with the shape {made[0]}" if len(made) == 1 and len(made[0]) > 1 else ""
            raise ValueError(f"scores must have {n} variables in the last dimension{also}; got {shape}")
        return shape[:-1]

    def _solve(self, scores, additional):
        with _graphs.arrays(scores, additional) as given:
            found = self.graph.solve_batch(*given, n_jobs=torch.get_num_threads(), **self.options)
            status = to_host(found.status)
        if (status == outcome.INFEASIBLE).any():
            where = np.flatnonzero(status == outcome.INFEASIBLE)[:10].tolist()
            raise ValueError(f"no assignment satisfies all factors in graphs {where} of the batch")
        short = (status == outcome.MAX_ITER) | (status == outcome.MAX_TIME)
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
