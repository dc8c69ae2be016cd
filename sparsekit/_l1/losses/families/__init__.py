"""Families of generalised linear models, each a convex loss of the linear predictor.

``family.py`` says what a family has; the solvers use nothing else. ``make.py`` makes one by its name.
"""
