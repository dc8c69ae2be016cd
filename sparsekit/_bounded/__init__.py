"""NQN, L-BFGS for nonsmooth functions on a box, and linear models with bounded coefficients.

- ``estimators/``: BoundedRegressor, BoundedClassifier.
- ``plan.py``: which algorithm solves a problem.
- ``solver/``: NQN (``nqn.py``), the fit of a linear model (``minimize_bounded.py``, ``refine.py``,
  ``dual_ascent.py``), its certificate, and ridge models of several outputs (``ridge_outputs.py``).
- ``losses/``: losses by their conjugates, the objective, and the nonsmooth test problems.
"""
