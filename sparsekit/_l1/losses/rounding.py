"""Rounding of objectives, sums of nonnegative values, one a row.

Machine epsilon is 2.2e-16. A sum of n rows of one size rounds by up to about n epsilon, and by its root on
average.
"""

# Smaller relative differences of two objectives are rounding.
VALUE_ROUNDING = 1e-14
