"""L1-regularised models by OBA, the orthant-based second-order method.

- ``estimators/``: L1LogisticOBA, LassoOBA, their cross-validated forms, and `shared_fits`.
- ``paths/``: regularisation paths, and the problems and scores of cross-validation.
- ``plan.py``: which algorithm solves least squares and paths, by size.
- ``solver/``: OBA (``oba.py``, ``oba_step.py``), sessions that go from penalty to penalty
  (``newton_session.py``, ``squares_session.py``), ridges, blocks of rows, duality gaps.
- ``losses/``: logistic, multinomial, least squares, probit, and what a solver asks of a problem.
"""
