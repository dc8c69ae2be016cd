"""Types of the public signatures. Every layer may import them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, ForwardRef, Literal, Protocol, TypeAlias, TypedDict, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from cupy import ndarray as DeviceArray
    from cupyx.scipy.sparse import spmatrix as DeviceMatrix
    from pandas import DataFrame
    from scipy.optimize import OptimizeResult
    from scipy.sparse import sparray, spmatrix
if not TYPE_CHECKING:  # a signature is no reason to import them; who asks for their types has them
    DeviceArray = ForwardRef("ndarray", module="cupy")
    DeviceMatrix = ForwardRef("spmatrix", module="cupyx.scipy.sparse")
    DataFrame = ForwardRef("DataFrame", module="pandas")
    OptimizeResult = ForwardRef("OptimizeResult", module="scipy.optimize")
    sparray, spmatrix = (ForwardRef(name, module="scipy.sparse") for name in ("sparray", "spmatrix"))

SparseMatrix: TypeAlias = Union[spmatrix, sparray]  # noqa: UP007  (such references know no "|")
MatrixLike: TypeAlias = ArrayLike | SparseMatrix
Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
# arrays of either side, and training data X
EitherArray: TypeAlias = Union[Array, DeviceArray]  # noqa: UP007
EitherMatrix: TypeAlias = Union[EitherArray, SparseMatrix, DeviceMatrix]  # noqa: UP007
# (indptr, indices, values) on a GPU
CompressedParts: TypeAlias = tuple[DeviceArray, DeviceArray, DeviceArray]
FileName: TypeAlias = str | PathLike[str]

# parameters of the estimators, by their names
RandomState: TypeAlias = int | np.random.RandomState | None
ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None
SolverCallback: TypeAlias = Callable[[OptimizeResult], object]
ActiveSet: TypeAlias = Literal["gradient", "subgradient", "corrected", "corrected-subgradient"]
Transform: TypeAlias = Literal["sparsemax", "softmax"]
Hessian: TypeAlias = Literal["exact", "lbfgs"]
CrossValidation: TypeAlias = int | Iterable[Any] | Any
Scoring: TypeAlias = str | Callable[..., float] | None
PenaltyWeights: TypeAlias = ArrayLike | dict[Any, float] | None
Offset: TypeAlias = ArrayLike | None
Side: TypeAlias = ArrayLike | None
CoefficientBounds: TypeAlias = tuple[Side, Side] | list[Side] | dict[Any, Any]


class SmoothLoss(Protocol):
    """What `minimize_oba` needs of a loss; `hessian_product` as well where ``hessian="exact"``."""

    @property
    def n_variables(self) -> int:
        """The length of x."""

    def value(self, x: Array, /) -> float:
        """f(x)."""

    def gradient(self, x: Array, /) -> Array:
        """Its gradient, (n_variables,)."""


class SolveOptions(TypedDict, total=False):
    """Keywords of `FactorGraph.solve`."""

    max_iter: int
    step_size: float
    adaptive: bool
    relaxation: float
    tol_primal: float
    tol_dual: float
    inner_iter: int
    max_time: float | None
    exact: bool
