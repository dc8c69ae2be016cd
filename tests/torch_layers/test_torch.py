"""The torch layers: against the array functions, finite differences and torch.compile."""

import numpy as np
import pytest

import sparsekit

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from sparsekit import torch as layers  # noqa: E402
from sparsekit._torch import operators  # noqa: E402


def scores(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_forward_is_the_array_function(dim, dtype):
    z = scores(7, 40, 33, dtype=dtype)
    p = layers.sparsemax(z, dim)
    np.testing.assert_array_equal(p.numpy(), sparsekit.sparsemax(z.numpy(), dim))
    assert p.is_contiguous() and p.dtype == dtype
    view = z.permute(2, 0, 1)
    np.testing.assert_array_equal(layers.sparsemax(view, dim).numpy(), sparsekit.sparsemax(view.numpy(), dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("K", [5, 40])
def test_derivatives(dim, K):
    z = scores(4, K).requires_grad_()
    assert gradcheck(lambda x: layers.sparsemax(x, dim), (z,))
    # many numbers along random directions alone: all pairs of them take seconds, and show no more
    twice = {"fast_mode": K > 5}
    assert gradgradcheck(lambda x: layers.sparsemax(x, dim), (z,), **twice)
    codes = torch.tensor([0, 2, -100, 1])
    turned = z if dim != 0 else z.detach().T.clone().requires_grad_()
    for reduction in ("mean", "sum", "none"):
        f = lambda x, r=reduction: layers.sparsemax_loss(x, codes, dim, r)  # noqa: E731
        assert gradcheck(f, (turned,)) and gradgradcheck(f, (turned,), **twice)
    q = torch.softmax(scores(*z.shape, seed=1), dim)
    assert gradgradcheck(lambda x: layers.sparsemax_loss(x, q, dim), (z,), **twice)


def test_gradient_of_the_targets():
    """dL/dq = q - z, up to what leaves q a distribution."""
    z = scores(3, 6).requires_grad_()
    logits = scores(3, 6, seed=1).requires_grad_()
    assert gradcheck(lambda x, t: layers.sparsemax_loss(x, torch.softmax(t, -1)), (z, logits))
    assert gradgradcheck(lambda x, t: layers.sparsemax_loss(x, torch.softmax(t, -1)), (z, logits))


def test_masks_and_special_rows():
    z = scores(5, 40).requires_grad_()
    mask = torch.rand(5, 40, generator=torch.Generator().manual_seed(2)) < 0.5
    mask[3] = False
    p = layers.sparsemax(z, mask=mask)
    (p * scores(5, 40, seed=3)).sum().backward()
    assert torch.isfinite(z.grad).all() and not p[3].any() and not z.grad[3].any()
    assert not p[~mask].any() and not z.grad[~mask].any()
    for i in (0, 1, 2, 4):
        torch.testing.assert_close(p[i, mask[i]], layers.sparsemax(z[i, mask[i]]))
    assert layers.sparsemax(torch.tensor([torch.nan, 1.0])).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    z = scores(6, 50, dtype=torch.float32).to(dtype).requires_grad_()
    p = layers.sparsemax(z)
    assert p.dtype == dtype
    loss = layers.sparsemax_loss(z, torch.arange(6))
    loss.backward()
    assert z.grad.dtype == dtype and loss.dtype == dtype
    torch.testing.assert_close(p.float(), layers.sparsemax(z.float()), atol=4e-3, rtol=1e-2)
    with pytest.raises(TypeError, match="floating point"):
        layers.sparsemax(torch.arange(3))


def test_loss_reductions_and_ignored_rows():
    z, codes = scores(6, 9), torch.tensor([0, 8, -100, 3, -100, 4])
    kept = codes != -100
    expected = torch.from_numpy(sparsekit.sparsemax_loss(z[kept].numpy(), codes[kept].numpy()))
    torch.testing.assert_close(layers.SparsemaxLoss()(z, codes), expected.mean())
    torch.testing.assert_close(layers.SparsemaxLoss(reduction="sum")(z, codes), expected.sum())
    none = layers.SparsemaxLoss(reduction="none")(z, codes)
    torch.testing.assert_close(none[kept], expected)
    assert not none[~kept].any()
    images = scores(2, 9, 4, 3)
    labels = torch.randint(9, (2, 4, 3), generator=torch.Generator().manual_seed(0))
    moved = layers.sparsemax_loss(images.movedim(1, -1), labels)
    torch.testing.assert_close(layers.sparsemax_loss(images, labels, dim=1), moved)
    with pytest.raises(ValueError, match="reduction must be"):
        layers.sparsemax_loss(z, codes, reduction="median")
    with pytest.raises(ValueError, match=r"classes lie in 0 \.\. 8"):
        layers.sparsemax_loss(z, codes + 9)
    with pytest.raises(ValueError, match="sum to 1"):
        layers.sparsemax_loss(z, torch.full_like(z, 0.3))


def test_modules_say_what_they_are():
    assert repr(layers.Sparsemax(1)) == "Sparsemax(dim=1)"
    assert "reduction='sum'" in repr(layers.SparsemaxLoss(reduction="sum"))
    z = scores(3, 4)
    torch.testing.assert_close(layers.Sparsemax(0)(z), layers.sparsemax(z, 0))


@pytest.mark.parametrize("K", [5, 200])
def test_sorting_kernels_of_other_devices(K):
    """What runs where we have no kernel of our own, run here on the CPU."""
    z = scores(20, K)
    z[3, 2:] = -torch.inf
    z[4] = -torch.inf
    z[5, 1:3] = torch.inf
    z[6] += 1e9
    v = scores(20, K, seed=1)
    q = torch.softmax(v, -1)
    q[3, 2:] = 0.0
    q[3] /= q[3].sum()
    q[5] = 0.0
    q[5, 1] = 1.0
    codes = torch.zeros(20, dtype=torch.long)
    codes[5] = 1
    rows = [i for i in range(20) if i not in (4, 5)]
    calls = [
        (operators.sparsemax, (z, 1), slice(None)),
        (operators.product, (layers.sparsemax(z), v, 1), slice(None)),
        (operators.loss, (z, q, 1), rows),
        (operators.loss, (z, codes, 1), rows),
        (operators.sparsemax, (z.T.contiguous(), 0), slice(None)),
    ]
    for op, args, checked in calls:
        ours = op(*args)
        general = operators.GENERAL[op](*args)
        for a, b in zip(*((x,) if isinstance(x, torch.Tensor) else x for x in (ours, general))):
            torch.testing.assert_close(a[checked], b[checked], atol=2e-7, rtol=1e-6)


def test_operators_keep_pytorchs_rules():
    z, c = scores(4, 5).requires_grad_(), torch.tensor([0, 1, 2, 3])
    for op, args in (
        (operators.sparsemax, (z, 1)),
        (operators.product, (z.detach(), z, 0)),
        (operators.loss, (z, c, 1)),
    ):
        assert set(torch.library.opcheck(op, args).values()) == {"SUCCESS"}


def test_compile_does_not_break():
    z, c = scores(4, 5).requires_grad_(), torch.tensor([0, 1, 2, 3])

    def f(x):
        return layers.sparsemax_loss(2 * x, c) + (layers.Sparsemax(0)(3 * x) ** 2).sum()

    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(z), f(z))
    (slope,) = torch.autograd.grad(compiled(z), z)
    torch.testing.assert_close(slope, torch.autograd.grad(f(z), z)[0])


def test_targets_of_other_types():
    z = scores(3, 3)
    hot = torch.eye(3, dtype=torch.long)
    for target in (hot, hot.bool(), hot.float()):
        torch.testing.assert_close(
            layers.sparsemax_loss(z, target), layers.sparsemax_loss(z, torch.arange(3))
        )
    soft = torch.softmax(scores(40, 9, dtype=torch.float32), -1)
    for dtype in (torch.float16, torch.bfloat16):
        loss = layers.sparsemax_loss(scores(40, 9, dtype=torch.float32).to(dtype), soft.to(dtype))
        assert torch.isfinite(loss)
    masked = torch.tensor([[1.0, -torch.inf]], requires_grad=True)
    target = torch.tensor([[1.0, 0.0]], requires_grad=True)
    layers.sparsemax_loss(masked, target).backward()
    assert torch.isfinite(target.grad).all() and torch.isfinite(masked.grad).all()


def test_arrays_are_no_tensors():
    for function in (layers.sparsemax, lambda z: layers.sparsemax_loss(z, z)):
        with pytest.raises(TypeError, match=r"must be a tensor; got numpy\.ndarray.*sparsekit\.sparsemax"):
            function(np.ones((2, 3)))


def test_arguments_that_do_not_fit_are_named():
    z, classes = scores(3, 4), torch.tensor([0, 1, 2])
    for call, said in (
        (lambda: layers.SparsemaxLoss("sum"), r"dim must be an integer; got 'sum'; pass reduction='sum'"),
        (lambda: layers.Sparsemax(1.0), r"dim must be an integer; got 1\.0"),
        (lambda: layers.sparsemax(z, 5), r"dim must lie in -2 \.\. 1; got 5"),
        (lambda: layers.sparsemax(z[0, 0]), "input must have at least one dimension"),
        (
            lambda: layers.sparsemax(z, mask=torch.ones(3, 4)),
            r"mask must be a tensor of bool; got torch\.float",
        ),
        (lambda: layers.sparsemax_loss(z, [0, 1, 2]), "target must be a tensor; got list"),
        (lambda: layers.sparsemax_loss(z, classes[:2]), r"target must have the shape of input, \(3, 4\), or"),
        (
            lambda: layers.sparsemax_loss(z, classes.double()),
            r"integer classes of shape \(3,\); got torch\.float",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            call()
