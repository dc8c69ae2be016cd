"""Softmax over very many classes, by sampled classes.

- ``estimators/``: ExtremeSoftmaxSGD: fits in memory, in blocks and as a stream, predictions.
- ``plan.py``: which algorithms a fit and a prediction get, with the size thresholds.
- ``solver/``: stochastic steps, blocks of classes, and the exact end of small problems.
"""
