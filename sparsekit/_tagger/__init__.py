"""Sequence tagger: linear chains of labels.

- estimators/: `SequenceTagger`, its batches and predictions; sequences as matrices.
- solver/: L-BFGS, OBA in scaled variables, smoothing of the hinge loss, the perceptron, batches by FTRL.
- losses/: chains, their likelihood and hinge loss, pairs with coefficients, allowed labellings.
"""
