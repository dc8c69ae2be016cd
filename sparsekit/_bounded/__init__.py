"""NQN, L-BFGS for nonsmooth functions on a box, and linear models with bounded coefficients."""
