"""The training function of a PyTorch module. PyTorch is imported when it is called."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._training import TrainingFunction

BATCH_SIZE = 8192


def module_function(
    module: Any, X: Any, y: Any, loss: Callable[..., Any] | None, batch_size: int | None = None
) -> TrainingFunction:
    """Mean loss of a module over (X, y), as a function of its trainable parameters in one vector.

    The module's own parameters, buffers and mode stay as they are; it is evaluated in ``eval`` mode, where
    batch normalisation uses its running averages and dropout is off; ``batch_size`` rows at a time.
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
    device = parameters[0].device
    X, y = (torch.as_tensor(part, device=device) for part in (X, y))
    if X.is_floating_point():
        X = X.to(parameters[0].dtype)
    n = len(y)
    if len(X) != n or not n:
        raise ValueError(f"X and y must have as many rows, at least one; they have {len(X)} and {n}.")
    size = BATCH_SIZE if batch_size is None else int(batch_size)
    if size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}.")
    chunks = [slice(at, at + size) for at in range(0, n, size)]

    def place(x: np.ndarray, track: bool) -> dict[str, Any]:
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
        parts, value = place(x, True), 0.0
        with evaluation(), torch.enable_grad():
            for rows in chunks:
                f = loss(functional_call(module, parts, (X[rows],)), y[rows]).mean() * (len(y[rows]) / n)
                f.backward()
                value += f.item()
        gradients = [
            np.zeros(p.numel()) if p.grad is None else p.grad.detach().double().cpu().numpy().ravel()
            for p in parts.values()
        ]
        return value, np.concatenate(gradients)

    # classes have an accuracy; what other targets mean is the loss's matter
    with evaluation(), torch.no_grad():
        output = module(X[:1])
    is_classes = y.ndim == 1 and not y.is_floating_point() and output.ndim == 2

    def measure(x: np.ndarray) -> tuple[float, float]:
        parts, value, right = place(x, False), 0.0, 0
        with evaluation(), torch.no_grad():
            for rows in chunks:
                output = functional_call(module, parts, (X[rows],))
                value += loss(output, y[rows]).mean().item() * (len(y[rows]) / n)
                right += int((output.argmax(1) == y[rows]).sum()) if is_classes else 0
        return value, right / n if is_classes else np.nan

    x = np.concatenate([p.detach().double().cpu().numpy().ravel() for p in parameters])
    return TrainingFunction(x, fun, measure)


def normalized_copy(
    module: Any, X: Any, batch_size: int | None = None
) -> tuple[Any, Callable[[np.ndarray], None]]:
    """A copy of a module, and a function that adapts the copy's batch normalisation to parameters x.

    Running averages belong to the parameters that they were collected with. At others they are collected anew
    from the rows X, as :func:`torch.optim.swa_utils.update_bn` does.
    """
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.utils import vector_to_parameters
    from torch.optim.swa_utils import update_bn

    work = copy.deepcopy(module)
    trained = [p for p in work.parameters() if p.requires_grad]
    needed = any(isinstance(part, _BatchNorm) and part.track_running_stats for part in work.modules())

    def adapt(x: np.ndarray) -> None:
        if not needed:
            return
        like = trained[0]
        with torch.no_grad():
            vector_to_parameters(torch.as_tensor(x, dtype=like.dtype, device=like.device), trained)
        rows = torch.as_tensor(X, device=like.device)
        rows = rows.to(like.dtype) if rows.is_floating_point() else rows
        update_bn(rows.split(batch_size or BATCH_SIZE), work)

    return work, adapt
