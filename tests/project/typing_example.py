"""Code as a user writes it, to be checked by mypy; tests/project/test_typing.py runs it as well."""

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

import sparsekit as sk

Floats = NDArray[np.floating[Any]]

X = np.eye(6)
y = ["a", "b", "a", "b", "a", "b"]

model = sk.L1LogisticOBA(C=10.0, hessian="lbfgs", callback=lambda state: state.nit > 5).fit(X, y)
assert_type(model, sk.L1LogisticOBA)
assert_type(model.predict_proba(X), Floats)

assert_type(sk.LassoOBA(0.1).fit(X, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], sample_weight=None), sk.LassoOBA)
assert_type(sk.SparsemaxClassifierCV(cv=3, scoring="accuracy").fit(X, y), sk.SparsemaxClassifierCV)
assert_type(sk.BoundedClassifier(bounds={0: (0.0, None)}).fit(X, y), sk.BoundedClassifier)

stream = sk.ExtremeSoftmaxSGD("umax", alpha=0.01, random_state=np.random.RandomState(0))
labels, scores = stream.partial_fit(X, y, classes=["a", "b", "c"]).predict_topk(X, k=2, proba=True)
assert_type(scores, Floats)
stream.method = "ove"

p = sk.sparsemax([[1.0, 0.5, -1.0]], axis=-1)
assert_type(p, Floats)
assert_type(sk.sparsemax_support_size(p), NDArray[np.int64])
loss, gradient = sk.sparsemax_loss_and_gradient(p, [0])
assert_type(gradient, Floats)


def absolute(x: Floats) -> tuple[float, Floats]:
    return float(np.abs(x).sum()), np.sign(x)


found = sk.minimize_nqn(absolute, [1.0, -2.0], jac=True, bounds=[(0.5, None), (None, None)], ftol=-1.0)
print(found.x, found.fun, found.success)
print(sk.minimize_oba(sk.optimize.LogisticLoss(X, [-1, 1, -1, 1, -1, 1]), 0.1, tol=1e-6).dual_gap)


class Quadratic:
    n_variables = 2

    def value(self, x: Floats) -> float:
        return float(x @ x)

    def gradient(self, x: Floats) -> Floats:
        return 2 * x


sk.minimize_oba(Quadratic(), [0.1, 0.2], hessian="lbfgs")

graph = sk.FactorGraph()
u = graph.variable([[0.9, 0.1], [0.2, 0.4]])
graph.add(sk.Xor(u))
graph.add(sk.AtMostOne([u[0, 0], u[1, 1]]))
assert_type(graph.solve(max_iter=100, exact=False)[u], Floats)
assert_type(sk.lp_sparsemap([graph, graph])[0].local(graph.factors[0]), dict[str, NDArray[Any]])
assert_type(sk.lp_sparsemap(graph, np.zeros((3, 4)))[u], Floats)

assert_type(sk.metrics.precision_at_k([[1, 0]], [[0]]), float)

history = {"OBA": {"time": [0.0, 0.1], "fun": [2.0, 1.0], "optimality": [1.0, 1e-6]}}
display = sk.inspection.ConvergenceDisplay.from_history(history, y="gap")
assert_type(display, sk.inspection.ConvergenceDisplay)
assert_type(sk.__version__, str)

if TYPE_CHECKING:  # what is to be refused: mypy reports an ignore that nothing needs
    sk.L1LogisticOBA(hessian="lbgfs")  # type: ignore[arg-type]
    sk.minimize_nqn(absolute, [1.0], active_set="none")  # type: ignore[arg-type]
    sk.FactorGraph().solve(max_iters=3)  # type: ignore[call-arg]
    sk.L1LogisticsOBA  # type: ignore[attr-defined]  # noqa: B018
