"""Engine of ``sparsekit compare``: L1 logistic regression solvers side by side, by time to a given accuracy.

``problem`` states the problem that is solved (objective, lambda_max, certificate), ``solver`` how a solver is
called; ``peers`` and ``liblinear_package`` adapt each one, ``worker`` runs it in a process of its own,
``engine`` measures, ``io`` and ``tables`` read the user's files, ``report`` writes tables and JSON,
``csv_output`` CSV, ``plot`` the picture. ``benchmarks/l1_logistic.py`` and ``weak_penalties.py`` use the same
engine.
"""
