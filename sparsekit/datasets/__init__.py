"""Loaders of the usual formats, data that stays on disk, and generators of the problems that the papers use."""

from ._arff import load_arff
from ._convert_svmlight import convert_svmlight
from ._csr_folder import CSRFolder, open_csr
from ._generators import make_oba_synthetic, make_spelled_digits
from ._listops import make_listops
from ._svmlight import load_svmlight
from ._write_csr import write_csr
from ._xc import load_xc

__all__ = [
    "CSRFolder",
    "convert_svmlight",
    "load_arff",
    "load_svmlight",
    "load_xc",
    "make_listops",
    "make_oba_synthetic",
    "make_spelled_digits",
    "open_csr",
    "write_csr",
]
