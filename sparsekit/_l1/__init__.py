"""L1-regularised models by OBA, the orthant-based second-order method."""
