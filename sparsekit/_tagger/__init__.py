"""SequenceTagger: labels of the positions of sequences.

- ``estimators/``: the tagger, its features, predictions, and streams.
- ``plan.py``: which loss and which minimiser a tagger gets.
- ``solver/``: L-BFGS, OBA in scaled variables, FTRL.
- ``losses/``: chains, their likelihood, the hinge loss, constraints.
"""
