"""Operators of PyTorch's library with derivatives, and calls under autograd alone, without these.

An operator of PyTorch's library and an `autograd.Function` that `torch.func` can transform cost 50 to 150
microseconds a call. A small problem takes less. Plain tensors in main memory do without: their
functions call the kernels, and have the same derivatives. All that traces a program - `torch.compile`,
`torch.export`, `torch.jit.trace`, `torch.func`'s transforms, modes, subclasses of tensors - gets operators.
"""

from __future__ import annotations

from collections.abc import Callable
from types import new_class
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import Parameter

_TYPES = (Tensor, Parameter)
# `Function.apply` and the dispatcher ask these themselves; a version of PyTorch that has them no more gets
# operators always
_transforms: Any = getattr(torch._C, "_are_functorch_transforms_active", None)
_modes: Any = getattr(torch._C, "_len_torch_dispatch_stack", None)
_keys: Any = getattr(torch._C, "_dispatch_keys", None)
_KNOWN = None not in (_transforms, _modes, _keys)


def _plain_keys():
    """What a tensor of this kind is to the dispatcher: not batched, traced, conjugated, on a device."""
    with torch.inference_mode():
        inferred = torch.empty(0, device="cpu")
    return {_keys(t).raw_repr() for t in (inferred, torch.empty(0, device="cpu"))}


_PLAIN = _plain_keys() if _KNOWN else set()


def is_plain(*tensors: Tensor) -> bool:
    """Whether all are tensors in main memory under autograd alone."""
    if not _KNOWN or _transforms() or _modes() or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return all(type(t) in _TYPES and _keys(t).raw_repr() in _PLAIN for t in tensors)


def operator(
    name: str, kernel: Callable[..., Any], fake: Callable[..., Any], device_types: str | None = None
) -> Any:
    """An operator of PyTorch's library; its schema is that of the kernel's annotations.

    ``fake`` returns empty results where programs are traced.
    """
    made = torch.library.custom_op(f"sparsekit::{name}", kernel, mutates_args=(), device_types=device_types)
    made.register_fake(fake)
    return made


def differentiable(
    made: Any, function: type[Function], kernel: Callable[..., Any], batch: Callable[..., Any]
) -> Callable[..., Any]:
    """A call of ``function``, which wraps an operator, or of ``kernel`` where the tensors are plain.

    ``batch`` is the operator's rule of `torch.func.vmap`. Exported programs hold the operators without the
    functions, so the operator gets the function's derivatives, too.
    """
    made.register_vmap(batch)
    made.register_autograd(function.backward, setup_context=function.setup_context)

    def forward(ctx, *inputs):
        output = kernel(*inputs)
        function.setup_context(ctx, inputs, output)
        return output

    rules = {"forward": forward, "backward": function.backward, "jvp": function.jvp}
    body = {name: staticmethod(rule) for name, rule in rules.items()}
    eager: Any = new_class(
        f"Eager{function.__name__}", (Function,), exec_body=lambda names: names.update(body)
    )

    def call(*inputs: Any) -> Any:
        tensors = [one for one in inputs if isinstance(one, Tensor)]
        return (eager if is_plain(*tensors) else function).apply(*inputs)

    return call
