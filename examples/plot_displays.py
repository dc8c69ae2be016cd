"""
Pictures of solvers and of sparse probabilities
===============================================

A performance profile of two solvers, and the classes that a classifier holds possible.

A display of ``sparsekit.inspection`` is made by a class method ``from_...`` and keeps what it drew:
``display.ax_``, ``display.figure_`` and so on.
"""

# %%
# Which solver, on functions with kinks
# -------------------------------------
#
# Twenty-four functions that are not differentiable everywhere, each from one start inside its bounds.
# ``minimize_nqn`` and SciPy's L-BFGS-B get 2000 evaluations. A function counts as solved when f has decreased
# by 99.99 % of the way to the lowest value of both. The cost is the number of evaluations until then.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sparsekit import SoftmaxClassifier, SparsemaxClassifier, minimize_nqn
from sparsekit.inspection import AttentionDisplay
from sparsekit.optimize import nonsmooth_problems


def values_of(problem, method, options):
    """f at each evaluation."""
    values = []

    def fun(x):
        f, g = problem.fun_and_jac(x)
        values.append(f)
        return f, g

    x0 = np.clip(problem.starts(1)[0], problem.bounds.lb, problem.bounds.ub)
    with np.errstate(all="ignore"):  # trial points may lie where f overflows
        minimize(fun, x0, jac=True, bounds=problem.bounds, method=method, options=options)
    return np.minimum.accumulate(values)


solvers = {
    "NQN": (minimize_nqn, {"max_fun": 2000, "gtol": 0.0}),
    "L-BFGS-B": ("L-BFGS-B", {"maxfun": 2000, "maxiter": 2000, "gtol": 0.0, "ftol": 0.0}),
}
costs = []
# the last of the 25 starts at 1e18: there every solver is done at once
for problem in nonsmooth_problems(20)[:-1]:
    runs = [values_of(problem, *solver) for solver in solvers.values()]
    lowest = min(run[-1] for run in runs)
    solved = [run - lowest < 1e-4 * (run[0] - lowest) for run in runs]
    costs.append([done.argmax() + 1 if done.any() else np.inf for done in solved])
costs = np.array(costs, dtype=float)
ratios = costs / costs.min(axis=1, keepdims=True)
figure, axis = plt.subplots(layout="constrained")
for name, column in zip(solvers, ratios.T):
    axis.ecdf(np.minimum(column, 1e9), label=name)  # what is not solved lies to the right of the picture
axis.set(xscale="log", xlim=(0.95, 100), xlabel="evaluations / the fewest", ylabel="share of the functions")
axis.set_title("Evaluations for 24 functions with kinks")
axis.legend()

# %%
# The left end shows the share of functions for which a solver needs the fewest evaluations. The right end
# shows the share that it solves at all.
for name, column in zip(solvers, ratios.T):
    print(f"{name}: best for {np.mean(column == 1):.0%}, solves {np.mean(np.isfinite(column)):.0%}")

# %%
# Which classes are possible
# --------------------------
#
# Softmax gives every digit some probability. Sparsemax leaves out those that it holds impossible: their
# cells are blank. The frames are the true digits.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
sparse = SparsemaxClassifier(alpha=1e-3).fit(X_train, y_train)
dense = SoftmaxClassifier(alpha=1e-3).fit(X_train, y_train)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for axis, model in zip(axes, (dense, sparse)):
    P = model.predict_proba(X_test)
    AttentionDisplay.from_weights(
        P[:25], keys=model.classes_, frames=y_test[:25], ax=axis, colorbar=axis is axes[-1]
    )
    axis.set(title=type(model).__name__, xlabel="digit", ylabel="test row")

# %%
# How many are left, over all test rows:
sizes = np.count_nonzero(P, axis=1)
print(f"{np.mean(sizes):.2f} of {len(sparse.classes_)} digits are possible on average")

plt.show()
