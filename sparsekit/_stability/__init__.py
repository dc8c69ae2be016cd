"""Stability selection: which features are selected again and again in halves of the data."""
