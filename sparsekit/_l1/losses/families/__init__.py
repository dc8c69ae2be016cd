"""Families of generalised linear models, each a convex loss of the linear predictor.

``family.py`` says what a family has; the solvers know no more. ``make.py`` makes one by its name.
"""
