"""Loaders of the usual formats, data on disk, and generators of the problems of the papers."""

from ._convert_svmlight import convert_svmlight
from ._csr_folder import CSRFolder
from ._generators import make_oba_synthetic, make_spelled_digits
from ._listops import make_listops
from ._parquet import ParquetTable
from ._svmlight import load_svmlight
from ._write_csr import write_csr
from ._xc import load_xc

open_csr, open_parquet = CSRFolder, ParquetTable

__all__ = [
    "CSRFolder",
    "ParquetTable",
    "convert_svmlight",
    "load_svmlight",
    "load_xc",
    "make_listops",
    "make_oba_synthetic",
    "make_spelled_digits",
    "open_csr",
    "open_parquet",
    "write_csr",
]
