"""Calls under autograd alone, without what compilers and transforms need.

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


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether all are tensors in main memory under autograd alone; None is."""
    if not _KNOWN or _transforms() or _modes() or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return all(t is None or (type(t) in _TYPES and _keys(t).raw_repr() in _PLAIN) for t in tensors)


def eager(function: type[Function], kernel: Callable[..., Any]) -> type[Function]:
    """``function``, whose forward is ``kernel``, without rules for `torch.func`."""

    def forward(ctx, *inputs):
        output = kernel(*inputs)
        function.setup_context(ctx, inputs, output)
        return output

    rules = {"forward": forward, "backward": function.backward, "jvp": function.jvp}
    body = {name: staticmethod(rule) for name, rule in rules.items()}
    return new_class(f"Eager{function.__name__}", (Function,), exec_body=lambda names: names.update(body))


def chosen(
    function: type[Function], without: dict[type[Function], type[Function]], *tensors: Tensor | None
) -> type[Function]:
    """``function``, or what ``without`` has for it where the tensors are plain."""
    return without[function] if is_plain(*tensors) else function
