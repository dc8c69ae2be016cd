"""Blocks of rows that lie in memory, as a source of `LocalBlocks`."""

import numpy as np


class ListOfBlocks:
    """Matrices, one a block."""

    def __init__(self, matrices):
        self.matrices = list(matrices)
        self.starts = np.append(0, np.cumsum([matrix.shape[0] for matrix in self.matrices]))
        self.n_blocks = len(self.matrices)
        self.shape = int(self.starts[-1]), self.matrices[0].shape[1]

    def block(self, i):
        return self.matrices[i]
