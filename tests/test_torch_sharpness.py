"""Sharpness and parametric plots of PyTorch modules."""

import numpy as np
import pytest
import reference_sharpness as reference
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from sparsekit import SoftmaxClassifier
from sparsekit.inspection import ParametricPlotDisplay, sharpness
from sparsekit.inspection._training import training_function

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
    f = training_function(net, X, y, loss=functional.cross_entropy, batch_size=40)
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
    rows = training_function(net, X, y, loss=lambda z, y: functional.cross_entropy(z, y, reduction="none"))
    assert rows.fun(x)[0] == pytest.approx(value)


@pytest.mark.parametrize("method", ["l-bfgs-b", "nqn"])
def test_a_linear_module_is_softmax_regression(method):
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    model = SoftmaxClassifier(alpha=0.0, max_iter=3, tol=1e-1).fit(X, y)
    net = torch.nn.Linear(4, 3, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(model.coef_))
        net.bias.copy_(torch.tensor(model.intercept_))
    options = dict(epsilon=[1e-3, 1e-2], method=method, n_starts=3)
    ours = sharpness(model, X, y, **options, random_state=0)
    theirs = sharpness(net, X, y, loss=functional.cross_entropy, **options, random_state=0)
    np.testing.assert_allclose(theirs, ours, rtol=1e-2)


def test_against_a_search_of_the_box(data):
    X, y = data
    net = torch.nn.Sequential(torch.nn.Linear(4, 3, bias=False)).double()
    with torch.no_grad():  # a loss that is convex in these
        net[0].weight.copy_(torch.linspace(-1, 1, 12).reshape(3, 4))
    X = X.double()
    x = net[0].weight.detach().numpy().ravel()
    expected = reference.sharpness(plain_loss(net, X, y), x, 1e-3, n_inside=2)
    with torch.no_grad():
        net[0].weight.copy_(torch.linspace(-1, 1, 12).reshape(3, 4))
    found = sharpness(net, X, y, loss=functional.cross_entropy, n_starts=3, random_state=0)
    assert found == pytest.approx(expected, rel=1e-6)


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
    assert numpy_input == sharpness(net, X, y, n_directions=10, random_state=0, **options) > 0
    ParametricPlotDisplay.from_estimator(net, other, X, y, alphas=[0.5], **options)
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert [part.training for part in net.modules()] == modes
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), gradients))


def test_only_trained_parameters_move(data):
    X, y = data
    net = trained(data)
    whole = training_function(net, X, y, loss=functional.cross_entropy)
    net[0].requires_grad_(False)
    part = training_function(net, X, y, loss=functional.cross_entropy)
    assert len(whole.x) - len(part.x) == 25
    assert part.fun(part.x)[0] == whole.fun(whole.x)[0]


def test_parametric_plot_adapts_batch_normalisation(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    X, y = data
    first, second = trained(data, 0), trained(data, 1)
    display = ParametricPlotDisplay.from_estimator(
        first, second, X, y, X_test=X[:50], y_test=y[:50], loss=functional.cross_entropy, alphas=[0, 0.4, 1]
    )
    between = network()
    vectors = [torch.nn.utils.parameters_to_vector(net.parameters()) for net in (first, second)]
    for k, alpha in enumerate((0, 0.4, 1)):
        x = (1 - alpha) * vectors[0] + alpha * vectors[1]
        torch.nn.utils.vector_to_parameters(x.detach(), between.parameters())
        torch.optim.swa_utils.update_bn([X], between)
        between.eval()
        with torch.no_grad():
            expected = float(functional.cross_entropy(between(X), y))
            right = float((between(X[:50]).argmax(1) == y[:50]).float().mean())
        assert display.loss[k] == pytest.approx(expected, rel=1e-4)
        assert display.test_score[k] == pytest.approx(right)


def test_regression_has_no_accuracy(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    X = data[0]
    net = torch.nn.Linear(4, 1)
    f = training_function(net, X, X[:, :1], loss=functional.mse_loss)
    assert np.isnan(f.measure(f.x)[1])
    display = ParametricPlotDisplay.from_estimator(
        net, net, X, X[:, :1], loss=functional.mse_loss, alphas=[0]
    )
    assert display.score_ax_ is None and display.loss[0] == pytest.approx(f.fun(f.x)[0])


def test_bad_input(data):
    X, y = data
    net = network()
    with pytest.raises(TypeError, match="A module needs loss="):
        sharpness(net, X, y)
    with pytest.raises(TypeError, match="needs its data"):
        sharpness(net, X)
    with pytest.raises(TypeError, match="weight the rows of a module in its loss"):
        sharpness(net, X, y, loss=functional.cross_entropy, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="as many rows"):
        sharpness(net, X, y[:3], loss=functional.cross_entropy)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        sharpness(net, X, y, loss=functional.cross_entropy, batch_size=0)
    with pytest.raises(ValueError, match="no trainable parameters"):
        sharpness(torch.nn.ReLU(), X, y, loss=functional.cross_entropy)
