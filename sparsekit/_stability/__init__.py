"""Stability selection: which features are selected again and again in halves of the data.

- ``estimators/``: StabilitySelection, and the fits of halves (``sources.py``), also on a GPU.
- ``solver/``: complementary halves of the rows, and bounds of the number of false selections.
"""
