"""LP-SparseMAP: sparse inference in factor graphs, and the multi-label classifier on top."""
