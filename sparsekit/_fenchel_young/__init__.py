"""Sparsemax and softmax regression by Fenchel-Young losses.

- ``estimators/``: SparsemaxClassifier, SoftmaxClassifier, their cross-validated forms, paths over alpha.
- ``plan.py``: which algorithm a fit gets, with the size thresholds.
- ``solver/``: Newton's method (``minimize_model.py``), dual ascent, duality gaps, blocks of rows.
- ``losses/``: the losses of linear scores, Newton systems, and sparsemax as a function of arrays.
"""
