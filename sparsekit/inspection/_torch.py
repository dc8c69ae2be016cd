"""The training function of a PyTorch module. PyTorch is imported when it is called."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._messages import check_whole, shown

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

BATCH_SIZE = 8192


class ModuleFunction:
    """Mean loss of a module over (X, y), as a function of its trained parameters in one vector.

    A copy of the module is evaluated, ``batch_size`` rows at a time, in ``eval`` mode: batch normalisation
    uses its running averages and dropout is off.

    Attributes
    ----------
    x : ndarray of float64 of shape (n,)
        The trained parameters.
    data : tuple of two tensors
        X and y.
    """

    def __init__(
        self,
        module: Module,
        X: ArrayLike | Tensor,
        y: ArrayLike | Tensor,
        loss: Callable[..., Any] | None,
        batch_size: int | None = None,
    ) -> None:
        import torch

        if loss is None or not callable(loss):
            raise TypeError(
                "A module needs loss=, a callable of its output and y, e.g. "
                "torch.nn.functional.cross_entropy."
            )
        with torch.inference_mode(False):
            self._module = copy.deepcopy(module).eval()
        self._parameters = [p for p in self._module.parameters() if p.requires_grad]
        if not self._parameters:
            raise ValueError("The module has no trainable parameters.")
        coarse = next((p.dtype for p in self._parameters if torch.finfo(p.dtype).bits < 32), None)
        if coarse is not None:
            raise ValueError(
                f"The module has parameters of type {coarse}, which is too coarse for small boxes; pass "
                "copy.deepcopy(module).float()."
            )
        self._loss = loss
        self._size = BATCH_SIZE if batch_size is None else check_whole(batch_size, "batch_size", 1)
        self.data = self.as_data(X, y)
        self.x = np.concatenate([p.detach().double().cpu().numpy().ravel() for p in self._parameters])

    def as_data(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor) -> tuple[Tensor, Tensor]:
        """X and y as tensors where the module is."""
        like = self._parameters[0]
        X, y = as_rows(X, like), as_rows(y, like, same=False)
        if len(X) != len(y) or not len(y):
            raise ValueError(
                f"X and y must have as many rows, at least one; they have {len(X)} and {len(y)}."
            )
        return X, y

    def _move(self, x):
        import torch

        at = 0
        with torch.inference_mode(False), torch.no_grad():
            for p in self._parameters:
                p.copy_(torch.as_tensor(x[at : at + p.numel()]).reshape(p.shape))
                at += p.numel()

    def _batches(self, X, y):
        """Output, y and share of the rows, a batch at a time."""
        for at in range(0, len(y), self._size):
            some = y[at : at + self._size]
            yield self._module(X[at : at + self._size]), some, len(some) / len(y)

    def fun(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f and its gradient (n,)."""
        import torch

        self._move(x)
        value, gradients = 0.0, [np.zeros(p.numel()) for p in self._parameters]
        with torch.inference_mode(False), torch.enable_grad():
            for output, y, share in self._batches(*self.data):
                f = self._loss(output, y).mean() * share
                # with respect to these alone: X and whatever else the user tracks gets no gradient
                found = torch.autograd.grad(f, self._parameters, allow_unused=True)
                for total, g in zip(gradients, found):
                    if g is not None:
                        total += g.detach().double().cpu().numpy().ravel()
                value += f.item()
        return value, np.concatenate(gradients)

    def measure(self, x: np.ndarray, data: tuple[Tensor, Tensor] | None = None) -> tuple[float, float]:
        """f and the accuracy on ``data`` of `as_data`, None: its own; NaN if targets are no classes."""
        import torch

        self._move(x)
        data = data or self.data
        value, right = 0.0, 0.0
        with torch.no_grad():
            for output, y, share in self._batches(*data):
                value += self._loss(output, y).mean().item() * share
                is_classes = y.ndim == 1 and not y.is_floating_point() and getattr(output, "ndim", 0) == 2
                right += int((output.argmax(1) == y).sum()) if is_classes else np.nan
        return value, right / len(data[1])

    def renormalize(self, x: np.ndarray) -> None:
        """Adapt batch normalisation to parameters x.

        Running averages belong to the parameters that they were collected with. At others they are collected
        anew from the rows X, everything but batch normalisation being in ``eval`` mode.
        """
        import torch
        from torch.nn.modules.batchnorm import _BatchNorm

        norms = [p for p in self._module.modules() if isinstance(p, _BatchNorm) and p.track_running_stats]
        if not norms:
            return
        self._move(x)
        for part in norms:
            part.reset_running_stats()
            part.momentum = None  # the plain mean over the chunks
            part.train()
        X, _ = self.data
        with torch.no_grad():
            # of nearly equal size: batch normalisation has no averages of a chunk of one row
            for chunk in X.tensor_split(-(-len(X) // self._size)):
                self._module(chunk)
        self._module.eval()


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
