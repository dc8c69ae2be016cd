"""Engine of ``sparsekit compare``: L1 logistic regression solvers side by side, by time to a given accuracy.

``problem`` states the problem that is solved (objective, lambda_max, certificate), ``peers`` adapts
each solver to one calling convention, ``engine`` measures, ``io`` reads the user's files and
``report`` writes tables, JSON and the convergence plot. ``benchmarks/l1_logistic.py`` uses the same
engine.
"""
