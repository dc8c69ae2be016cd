"""How many rows step at once on a GPU."""

import numpy as np

# rows of a round that a class is expected to be in, at most: their steps know nothing of each other
MEETINGS = 3.0
# more rows than fill a device gain nothing
MOST = 4096


def rows_at_once(counts, n_negatives, noise, batch_size):
    """Batches of rows that may start from the same weights without getting in each other's way.

    All of a round's changes are added up. A class that many of the round's rows have, as label or negative,
    moves by as many steps at once, of which each was meant to be the only one. So there are no more rows in a
    round than leave the most frequent class a few of them: with eight fits may diverge, with thirty they do.
    Where every row has every class as a negative, each moves it by the class's probability only, which is on
    average the share of its label.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
    n_negatives : int
    noise : Noise or None
    batch_size : int
        Rows of a batch, whose steps are a mean.
    """
    K = len(counts)
    label = counts / counts.sum()
    if n_negatives >= K - 1:
        negative = label
    else:
        negative = n_negatives * (np.full(K, 1.0 / (K - 1)) if noise is None else noise.p)
    share = np.minimum(1.0, label + negative).max()
    return int(max(1, min(MOST // batch_size, MEETINGS / share)))
