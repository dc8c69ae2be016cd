"""``sparsekit compare``: solvers of linear models side by side, by time to a given accuracy.

- ``problem``: the problem that is solved (objective, lambda_max, certificate);
- ``solver``: how a solver is called; ``peers``: one adapter each;
- ``worker``: runs a solver in a process of its own; ``engine``, ``cells``: measure; ``paths``: whole paths;
- ``io``, ``tables``, ``matrix_files``: read the user's files;
- ``report``, ``json_output``, ``plot``: tables, files, the picture;
- ``cli``, ``options``: the command line.

``benchmarks/l1_logistic.py`` and ``weak_penalties.py`` use the same engine.
"""
