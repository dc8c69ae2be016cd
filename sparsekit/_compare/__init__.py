"""Engine of ``sparsekit compare``: L1 logistic regression solvers side by side, by time to a given accuracy.

``problem`` states the problem that is solved (objective, lambda_max, certificate), ``solver`` how a solver is
called; ``peers`` and ``liblinear_package`` adapt each one, ``worker`` runs it in a process of its own,
``engine`` measures, ``io`` and ``tables`` read the user's files, ``report`` writes tables,
``json_output`` and ``csv_output`` files, ``plot`` the picture. ``options`` are those of ``cli``.
``benchmarks/l1_logistic.py`` and ``weak_penalties.py`` use the same engine.
"""
