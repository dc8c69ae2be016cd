"""Softmax over very many classes, by sampled classes.

- ``estimators/``: ExtremeSoftmaxSGD: fits in memory, in blocks and as a stream, predictions.
- ``solver/``: stochastic steps, blocks of classes, and the exact end of small problems.
"""
