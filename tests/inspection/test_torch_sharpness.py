"""Sharpness and parametric plots of PyTorch modules."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from sparsekit.inspection import ParametricPlotDisplay, sharpness
from sparsekit.inspection._torch import ModuleFunction

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional = torch.nn.functional


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    return torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y)


def network(seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU(), torch.nn.Dropout(0.5),
        torch.nn.Linear(5, 3),
    ).to(dtype)  # fmt: skip


def trained(data, seed=0, batch=30, epochs=20):
    X, y = data
    net = network(seed)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(batch):
            optimizer.zero_grad()
            functional.cross_entropy(net(X[rows]), y[rows]).backward()
            optimizer.step()
    return net


def plain_loss(net, X, y):
    """Value at a vector of parameters, by writing them into the module."""

    def value(x):
        torch.nn.utils.vector_to_parameters(torch.tensor(x, dtype=X.dtype), net.parameters())
        net.eval()
        with torch.no_grad():
            return float(functional.cross_entropy(net(X), y))

    return value


def test_value_gradient_and_accuracy(data):
    X, y = data[0].double(), data[1]
    net = network(dtype=torch.float64)
    net[1].running_mean += 0.3
    f = ModuleFunction(net, X, y, functional.cross_entropy, batch_size=40)
    rng = np.random.default_rng(0)
    d = rng.standard_normal(len(f.x))
    x = f.x + 0.1 * d
    value, gradient = f.fun(x)
    slope = (f.fun(x + 1e-6 * d)[0] - f.fun(x - 1e-6 * d)[0]) / 2e-6
    assert gradient @ d == pytest.approx(slope, rel=1e-6)
    measured, accuracy = f.measure(x)
    assert measured == pytest.approx(value, rel=1e-12)
    assert plain_loss(net, X, y)(x) == pytest.approx(value, rel=1e-12)
    assert accuracy == float((net(X).argmax(1) == y).double().mean())
    # a loss of one number a row is averaged
    rows = ModuleFunction(net, X, y, loss=lambda z, y: functional.cross_entropy(z, y, reduction="none"))
    assert rows.fun(x)[0] == pytest.approx(value)


def test_a_linear_module_is_softmax_regression():
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    Y = np.eye(3)[y]
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 3, dtype=torch.float64)

    def softmax_regression(x):
        W, b = x[:12].reshape(3, 4), x[12:]
        P = softmax(X @ W.T + b, axis=1)
        R = (P - Y) / len(X)
        return -np.log(P[Y > 0]).mean(), np.concatenate([(R.T @ X).ravel(), R.sum(axis=0)])

    options = dict(epsilon=[1e-3, 1e-2], n_starts=3, random_state=0)
    x = torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()
    ours = sharpness(softmax_regression, x, jac=True, **options)
    theirs = sharpness(net, X, y, loss=functional.cross_entropy, **options)
    np.testing.assert_allclose(theirs, ours, rtol=1e-6)


def test_the_module_stays_as_it_is(data):
    net = trained(data)
    net[3].eval()
    other = trained(data, 1)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    modes = [part.training for part in net.modules()]
    gradients = [p.grad.clone() for p in net.parameters()]
    X, y = data
    options = dict(loss=functional.cross_entropy)
    numpy_input = sharpness(net, X.double().numpy(), y.numpy(), n_directions=10, random_state=0, **options)
    tensor_input = sharpness(net, X, y, n_directions=10, random_state=0, **options)
    assert numpy_input == pytest.approx(tensor_input, rel=1e-3) and tensor_input > 0
    ParametricPlotDisplay.from_modules(net, other, X, y, alphas=[0.5], **options)
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert [part.training for part in net.modules()] == modes
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), gradients))


def test_only_trained_parameters_move(data):
    X, y = data
    net = trained(data)
    whole = ModuleFunction(net, X, y, loss=functional.cross_entropy)
    net[0].requires_grad_(False)
    part = ModuleFunction(net, X, y, loss=functional.cross_entropy)
    assert len(whole.x) - len(part.x) == 25
    assert part.fun(part.x)[0] == whole.fun(whole.x)[0]


def test_parametric_plot_adapts_batch_normalisation(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    X, y = data
    first, second = trained(data, 0), trained(data, 1)
    display = ParametricPlotDisplay.from_modules(
        first, second, X, y, X_test=X[:50], y_test=y[:50], loss=functional.cross_entropy, alphas=[0, 0.4, 1]
    )
    between = network()
    vectors = [torch.nn.utils.parameters_to_vector(net.parameters()) for net in (first, second)]
    for k, alpha in enumerate((0, 0.4, 1)):
        x = (1 - alpha) * vectors[0] + alpha * vectors[1]
        torch.nn.utils.vector_to_parameters(x.detach(), between.parameters())
        with torch.no_grad():
            hidden = between[0](X)
            between[1].running_mean.copy_(hidden.mean(0))
            between[1].running_var.copy_(hidden.var(0))
        between.eval()
        with torch.no_grad():
            expected = float(functional.cross_entropy(between(X), y))
            right = float((between(X[:50]).argmax(1) == y[:50]).float().mean())
        assert display.loss[k] == pytest.approx(expected, rel=1e-4)
        assert display.test_score[k] == pytest.approx(right)


def test_modules_that_differ_elsewhere_are_refused(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    X, y = data
    first, second = trained(data, 0), trained(data, 1)
    for net in (first, second):
        net[0].requires_grad_(False)
    with pytest.raises(ValueError, match=r"differ in '0\.(weight|bias)', which is not trained"):
        ParametricPlotDisplay.from_modules(first, second, X, y, loss=functional.cross_entropy)
    second[0].load_state_dict(first[0].state_dict())
    display = ParametricPlotDisplay.from_modules(
        first, second, X, y, loss=functional.cross_entropy, alphas=[1]
    )
    second[1].momentum = None
    second[1].reset_running_stats()
    second[1].train()(second[0](X))
    second.eval()
    with torch.no_grad():
        assert display.loss[0] == pytest.approx(float(functional.cross_entropy(second(X), y)), rel=1e-4)


def test_pictures_of_networks_with_dropout_are_the_same_twice(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    X, y = data
    nets = [
        torch.nn.Sequential(
            torch.nn.Linear(4, 5), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 3)
        )
        for _ in range(2)
    ]
    state = torch.get_rng_state()
    losses = [
        # 50 + 50 + 50 rows, not 149 and one, of which there is no variance
        ParametricPlotDisplay.from_modules(
            *nets, X, y, loss=functional.cross_entropy, alphas=[0.5], batch_size=149
        ).loss
        for _ in range(2)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert torch.equal(state, torch.get_rng_state())


def test_what_comes_out_and_goes_in_may_be_of_any_kind(data):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = data
    net = trained(data)
    # another layout of the rows sums in another order
    expected = pytest.approx(sharpness(net, X, y, loss=functional.cross_entropy, random_state=0), rel=1e-3)
    frame, series = pandas.DataFrame(X.numpy()), pandas.Series(y.numpy())
    assert sharpness(net, frame, series, loss=functional.cross_entropy, random_state=0) == expected
    tracked = X.clone().requires_grad_()
    assert sharpness(net, tracked, y, loss=functional.cross_entropy, random_state=0) == expected
    assert tracked.grad is None
    with torch.inference_mode():
        made_there = X.clone()
        assert sharpness(net, made_there, y, loss=functional.cross_entropy, random_state=0) == expected
    with torch.no_grad():
        assert sharpness(net, X, y, loss=functional.cross_entropy, random_state=0) == expected

    class Several(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, X):
            return self.net(X), "something else"

    several = Several()
    loss = lambda output, y: functional.cross_entropy(output[0], y)  # noqa: E731
    assert sharpness(several, X, y, loss=loss, random_state=0) == expected
    f = ModuleFunction(several, X, y, loss=loss)
    assert np.isnan(f.measure(f.x)[1])


def test_shared_parameters_move_together(data):
    X, y = data
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    net = torch.nn.Sequential(layer, torch.nn.Tanh(), layer, torch.nn.Linear(4, 3)).double()
    f = ModuleFunction(net, X.double(), y, loss=functional.cross_entropy)
    assert len(f.x) == 20 + 15
    d = np.random.default_rng(0).standard_normal(35)
    slope = (f.fun(f.x + 1e-6 * d)[0] - f.fun(f.x - 1e-6 * d)[0]) / 2e-6
    assert f.fun(f.x)[1] @ d == pytest.approx(slope, rel=1e-6)
    torch.nn.utils.vector_to_parameters(torch.tensor(f.x + d), net.parameters())
    with torch.no_grad():
        moved = float(functional.cross_entropy(net(X.double()), y))
    assert f.fun(f.x + d)[0] == pytest.approx(moved)


def test_regression_has_no_accuracy(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    X = data[0]
    net = torch.nn.Linear(4, 1)
    f = ModuleFunction(net, X, X[:, :1], loss=functional.mse_loss)
    assert np.isnan(f.measure(f.x)[1])
    display = ParametricPlotDisplay.from_modules(net, net, X, X[:, :1], loss=functional.mse_loss, alphas=[0])
    assert display.score_ax_ is None and display.loss[0] == pytest.approx(f.fun(f.x)[0])


def test_bad_input(data):
    X, y = data
    net = network()
    with pytest.raises(TypeError, match="A module needs loss="):
        sharpness(net, X, y)
    with pytest.raises(TypeError, match="needs its data"):
        sharpness(net, X)
    with pytest.raises(ValueError, match="go together"):
        ParametricPlotDisplay.from_modules(net, net, X, y, loss=functional.cross_entropy, X_test=X)
    with pytest.raises(TypeError, match="one class; got Sequential and Linear"):
        ParametricPlotDisplay.from_modules(net, net[0], X, y, loss=functional.cross_entropy)
    wider = torch.nn.Sequential(*net, torch.nn.Linear(3, 3))
    with pytest.raises(ValueError, match=r"one shape \(n,\)"):
        ParametricPlotDisplay.from_modules(net, wider, X, y, loss=functional.cross_entropy)
    with pytest.raises(TypeError, match="jac goes with a function"):
        sharpness(net, X, y, loss=functional.cross_entropy, jac=True)
    with pytest.raises(ValueError, match="as many rows"):
        sharpness(net, X, y[:3], loss=functional.cross_entropy)
    for size in (0, 2.7, "a"):
        with pytest.raises((ValueError, TypeError), match="batch_size must be a"):
            sharpness(net, X, y, loss=functional.cross_entropy, batch_size=size)
    with pytest.raises(ValueError, match="bfloat16, which is too coarse"):
        sharpness(network(dtype=torch.bfloat16), X, y, loss=functional.cross_entropy)
    with pytest.raises(ValueError, match="no trainable parameters"):
        sharpness(torch.nn.ReLU(), X, y, loss=functional.cross_entropy)
