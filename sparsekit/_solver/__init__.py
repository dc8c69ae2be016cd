"""What all iterative solvers of the package share."""
