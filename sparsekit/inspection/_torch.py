"""The training function of a PyTorch module. PyTorch is imported when it is called."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._messages import check_whole, shown

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

BATCH_SIZE = 8192


@dataclass
class TrainingFunction:
    """f(x), its gradient, and how good the module with parameters x is.

    x : the trained parameters, float64 (n,).
    fun : maps x to f and its gradient (n,).
    measure : maps x to f and the accuracy, NaN where there is none.
    """

    x: np.ndarray
    fun: Callable[[np.ndarray], tuple[float, np.ndarray]]
    measure: Callable[[np.ndarray], tuple[float, float]]


def module_function(
    module: Module,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    loss: Callable[..., Any] | None,
    batch_size: int | None = None,
) -> TrainingFunction:
    """Mean loss of a module over (X, y), as a function of its trainable parameters in one vector.

    The module's own parameters, buffers and mode do not change. It is evaluated ``batch_size`` rows at a time
    in ``eval`` mode: batch normalisation uses its running averages and dropout is off.
    """
    import torch
    from torch.func import functional_call

    if loss is None or not callable(loss):
        raise TypeError(
            "A module needs loss=, a callable of its output and y, e.g. torch.nn.functional.cross_entropy."
        )
    named = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not named:
        raise ValueError("The module has no trainable parameters.")
    names, parameters = list(named), list(named.values())
    coarse = next((p.dtype for p in parameters if torch.finfo(p.dtype).bits < 32), None)
    if coarse is not None:
        raise ValueError(
            f"The module has parameters of type {coarse}, which is too coarse for small boxes; pass "
            "copy.deepcopy(module).float()."
        )
    X, y = as_rows(X, parameters[0]), as_rows(y, parameters[0], same=False)
    n = len(y)
    if len(X) != n or not n:
        raise ValueError(f"X and y must have as many rows, at least one; they have {len(X)} and {n}.")
    size = BATCH_SIZE if batch_size is None else check_whole(batch_size, "batch_size", 1)
    chunks = [slice(at, at + size) for at in range(0, n, size)]

    def carry(x: np.ndarray, track: bool) -> dict[str, Tensor]:
        parts, at = {}, 0
        for name, p in zip(names, parameters):
            part = torch.as_tensor(x[at : at + p.numel()], dtype=p.dtype, device=p.device)
            parts[name] = part.reshape(p.shape).clone().requires_grad_(track)
            at += p.numel()
        return parts

    @contextmanager
    def evaluation() -> Iterator[None]:
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            yield
        finally:
            for part, mode in modes:
                part.training = mode

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradients = 0.0, [np.zeros(p.numel()) for p in parameters]
        with evaluation(), torch.inference_mode(False), torch.enable_grad():
            parts = carry(x, True)
            for rows in chunks:
                f = loss(functional_call(module, parts, (X[rows],)), y[rows]).mean() * (len(y[rows]) / n)
                # with respect to these alone: X and whatever else the user tracks gets no gradient
                found = torch.autograd.grad(f, list(parts.values()), allow_unused=True)
                for total, g in zip(gradients, found):
                    if g is not None:
                        total += g.detach().double().cpu().numpy().ravel()
                value += f.item()
        return value, np.concatenate(gradients)

    # classes have an accuracy; other targets do not
    with evaluation(), torch.no_grad():
        output = module(X[:1])
    is_classes = y.ndim == 1 and not y.is_floating_point() and getattr(output, "ndim", None) == 2

    def measure(x: np.ndarray) -> tuple[float, float]:
        parts, value, right = carry(x, False), 0.0, 0
        with evaluation(), torch.no_grad():
            for rows in chunks:
                output = functional_call(module, parts, (X[rows],))
                value += loss(output, y[rows]).mean().item() * (len(y[rows]) / n)
                right += int((output.argmax(1) == y[rows]).sum()) if is_classes else 0
        return value, right / n if is_classes else np.nan

    x = np.concatenate([p.detach().double().cpu().numpy().ravel() for p in parameters])
    return TrainingFunction(x, fun, measure)


def as_rows(rows: ArrayLike | Tensor, like: Tensor, same: bool = True) -> Tensor:
    """A tensor on the device of ``like``; floating-point rows in its dtype too, if ``same``."""
    import torch

    with torch.inference_mode(False):
        if not isinstance(rows, torch.Tensor):
            rows = torch.as_tensor(np.array(rows))  # a copy: tensors need writable memory
        # tensors of inference mode cannot be differentiated
        rows = (rows.clone() if rows.is_inference() else rows.detach()).to(like.device)
        return rows.to(like.dtype) if same and rows.is_floating_point() else rows


def check_alike(first: Module, second: Module) -> None:
    """Raise ValueError if two modules differ in what is neither trained nor a running average."""
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    averages = {
        f"{name}.{buffer}" if name else buffer
        for name, part in first.named_modules()
        if isinstance(part, _BatchNorm)
        for buffer in ("running_mean", "running_var", "num_batches_tracked")
    }
    trained = {name for name, p in first.named_parameters(remove_duplicate=False) if p.requires_grad}
    one, other = first.state_dict(), second.state_dict()
    for name in one.keys() | other.keys():
        if name in averages or name in trained:
            continue
        if name not in one or name not in other or not torch.equal(one[name], other[name]):
            raise ValueError(
                f"The modules differ in {shown(name)}, which is not trained: no curve through their "
                "parameters ends at the second."
            )


def normalized_copy(
    module: Module, X: ArrayLike | Tensor, batch_size: int | None = None
) -> tuple[Module, Callable[[np.ndarray], None]]:
    """A copy of a module, and a function that adapts the copy's batch normalisation to parameters x.

    Running averages belong to the parameters that they were collected with. At others they are collected anew
    from the rows X, everything but batch normalisation being in ``eval`` mode.
    """
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.utils import vector_to_parameters

    work = copy.deepcopy(module)
    trained = [p for p in work.parameters() if p.requires_grad]
    norms = [part for part in work.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]
    size = BATCH_SIZE if batch_size is None else check_whole(batch_size, "batch_size", 1)

    def adapt(x: np.ndarray) -> None:
        if not norms:
            return
        like = trained[0]
        rows = as_rows(X, like)
        momenta = [part.momentum for part in norms]
        with torch.no_grad():
            vector_to_parameters(torch.as_tensor(x, dtype=like.dtype, device=like.device), trained)
            work.eval()
            for part in norms:
                part.reset_running_stats()
                part.momentum = None  # the plain mean over the chunks
                part.train()
            # of nearly equal size: batch normalisation has no averages of a chunk of one row
            for chunk in rows.tensor_split(-(-len(rows) // size)):
                work(chunk)
        for part, momentum in zip(norms, momenta):
            part.momentum = momentum
            part.eval()

    return work, adapt
