"""Three levels of rounding of sums in double precision, as parts of the value that they round.

Machine epsilon is 2.2e-16. A sum of n rows of one size rounds by up to about n epsilon, and by its root on
average.
"""

# Objectives: sums of nonnegative values, one a row. Smaller differences of two objectives are rounding.
VALUE_ROUNDING = 1e-14
# Duality gaps, dual points and curvatures: differences of such sums, in parts of the larger one.
GAP_ROUNDING = 1e-12
# Gradients that have to be zero, in parts of the sum of their absolute summands, and bounds of gradients.
GRADIENT_ROUNDING = 1e-10
