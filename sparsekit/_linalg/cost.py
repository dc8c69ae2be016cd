"""Cost model: whether a Gram matrix and its factor cost less than the products with X that they save."""

from __future__ import annotations

from dataclasses import dataclass

# Products with X that a model's minimiser asks for where there is no Gram matrix. With 10 instead of 30 text
# of one class takes 0.98 of the time and mnist 1.4 times. With 300 several classes take 1.4 times, up to 4.
PRODUCTS = 30
# Nanoseconds up to which a Gram matrix and its factor always pay. Without it weak penalties on 240 x 300
# numbers take 3.6 times as long. With 5e6 several classes take 1.1 times as long, up to 4.
CHEAP = 2e6

# A model's Gram matrix is summed in single precision from this many rows per column, and multiply-adds. At 0
# of them 25 nearly collinear columns are not certified at weak penalties: gaps of 0.2 to 52 % at C = 1e4.
SINGLE_ROWS_PER_COLUMN = 16
SINGLE_WORK = 3e8


def is_single(n_rows, n_columns):
    """Whether a model's Gram matrix of double-precision data is summed in single precision."""
    return n_rows >= SINGLE_ROWS_PER_COLUMN * n_columns and n_rows * n_columns**2 >= SINGLE_WORK


@dataclass(frozen=True)
class Rates:
    """Nanoseconds of one multiply-add.

    Parameters
    ----------
    pair : float
        Of a Gram matrix that is summed over pairs of a row's entries.
    class_pair : float
        The same where a variable has a class.
    dense : float
        Of a product of dense matrices.
    stream : float
        Of a product of a dense matrix and a vector.
    factor : float
        Of a Cholesky factor.
    entry : float
        Of a product with sparse rows.
    launch : float
        Nanoseconds of a product's calls, however small it is.
    """

    pair: float
    class_pair: float
    dense: float
    stream: float
    factor: float
    entry: float
    launch: float = 0.0

    def gram_pays(self, gram, side, product, products=PRODUCTS):
        """Whether a Gram matrix of this side pays; ``gram`` and ``product`` are nanoseconds."""
        saved = max(products, PRODUCTS) * (self.launch + product)
        return gram + self.factor * side**3 / 3.0 <= max(saved, CHEAP)


# One core of an AMD EPYC, measured.
HOST = Rates(pair=0.46, class_pair=1.5, dense=0.05, stream=0.1, factor=0.1, entry=0.42)
# A data-centre GPU, computed from its bandwidth and peak rates; never measured.
DEVICE = Rates(pair=0.02, class_pair=0.02, dense=1e-4, stream=3e-3, factor=5e-3, entry=0.006, launch=2e4)
