"""LP-SparseMAP: sparse inference in factor graphs, and the multi-label classifier on top.

- ``estimators/``: LPSparseMAPClassifier, its cross-validated form, decisions about label sets.
- ``labels/``: training: independent labels, coupled labels, their losses.
- ``graphs/``: FactorGraph, the builder, and its solutions.
- ``plan.py``: which of ADMM, Newton's method, the interior point method and HiGHS solves a graph.
- ``solver/``: the layout of a graph as arrays, runs, and the ends of hard ones.
- ``factors/``: logic and structured factors, and factors of the user.
"""
