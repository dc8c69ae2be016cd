"""Sequence tagger: linear chains of labels.

- estimators/: `SequenceTagger`, its batches and predictions; sequences as matrices.
- plan.py: which loss and which minimiser a model gets.
- solver/: L-BFGS, OBA in scaled variables, smoothing of the hinge loss, the perceptron, batches by FTRL.
- losses/: chains, their likelihood and hinge loss, pairs with coefficients, allowed labellings.
"""
