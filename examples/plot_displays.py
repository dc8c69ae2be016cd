"""
Pictures of solvers, sparse probabilities and factor graphs
===========================================================

Three displays of ``sparsekit.inspection``, each on one small problem.

They compare the evaluations of two solvers, count classes of positive probability, and draw the connections
of a factor graph. A display is made by a class method ``from_...`` and keeps what it drew: ``display.ax_``,
``display.figure_`` and so on.
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

from sparsekit import AtMostOne, FactorGraph, SoftmaxClassifier, SparsemaxClassifier, Xor, minimize_nqn
from sparsekit.inspection import FactorGraphDisplay, PerformanceProfileDisplay, SupportDisplay
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
display = PerformanceProfileDisplay.from_table(costs, names=list(solvers))
display.ax_.set_title("Evaluations for 24 functions with kinks")

# %%
# The left end shows the share of functions for which a solver needs the fewest evaluations. The right end
# shows the share that it solves at all.
for name, (_, shares) in display.profiles_.items():
    print(f"{name}: best for {shares[0]:.0%}, solves {shares[-1]:.0%}")

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
    SupportDisplay.from_estimator(model, X_test, y=y_test, ax=axis, colorbar=axis is axes[-1])
    axis.set_title(type(model).__name__)

# %%
# How many are left, over all test rows:
display = SupportDisplay.from_estimator(sparse, X_test, kind="sizes")
print(f"{np.mean(display.sizes_):.2f} of {len(sparse.classes_)} digits are possible on average")

# %%
# What hangs together
# -------------------
#
# Three people are to get one of four tasks each, and no task goes to two of them. The scores are binary
# variables' (person, task); ``Xor`` ties a row together, ``AtMostOne`` a column. The marginals of the
# solution are the shades.
graph = FactorGraph()
u = graph.variable([[0.9, 0.1, 0.4, 0.0], [0.8, 0.5, 0.3, 0.1], [0.2, 0.6, 0.7, 0.1]])
graph.add(Xor(u))
graph.add(AtMostOne(u.T))
display = FactorGraphDisplay.from_graph(graph, graph.solve())
display.ax_.set_title("Three people, four tasks")

plt.show()
