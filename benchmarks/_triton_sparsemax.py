"""Sparsemax as one writes it in Triton: a program a row, which it holds, and Newton's steps."""

import torch
import triton
import triton.language as tl


@triton.jit
def _forward(z, p, K, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDTH)
    x = tl.load(z + row * K + k, mask=k < K, other=-float("inf"))
    x -= tl.max(x)
    t = tl.full((), -1.0, x.dtype)
    members = tl.full((), -1, tl.int32)
    count = tl.sum((x > t).to(tl.int32))
    while count != members:
        members = count
        t = (tl.sum(tl.where(x > t, x, 0.0)) - 1.0) / count
        count = tl.sum((x > t).to(tl.int32))
    tl.store(p + row * K + k, tl.maximum(x - t, 0.0), mask=k < K)


@triton.jit
def _backward(p, v, out, K, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDTH)
    inside = tl.load(p + row * K + k, mask=k < K, other=0.0) > 0
    x = tl.load(v + row * K + k, mask=inside, other=0.0)
    mean = tl.sum(x) / tl.sum(inside.to(tl.int32))
    tl.store(out + row * K + k, tl.where(inside, x - mean, 0.0), mask=k < K)


def _launch(kernel, rows, *tensors):
    K = rows.shape[-1]
    width = triton.next_power_of_2(K)
    kernel[(rows.numel() // K,)](*tensors, K, WIDTH=width, num_warps=min(16, max(1, width // 512)))


class _Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        p = torch.empty_like(z)
        _launch(_forward, z, z, p)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, v):
        (p,) = ctx.saved_tensors
        out = torch.empty_like(v)
        _launch(_backward, p, p, v.contiguous(), out)
        return out


def sparsemax(z):
    """Sparsemax of the last dimension of a contiguous tensor."""
    return _Sparsemax.apply(z)
