"""scikit-learn's decorators, with what they return: a method or function of the same signature.

scikit-learn has no type hints; without this a type checker would know nothing of what they decorate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])

    def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]: ...

    def validate_params(
        constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
    ) -> Callable[[F], F]: ...

    def available_if(check: Callable[[Any], object]) -> Callable[[F], F]: ...

else:
    from sklearn.base import _fit_context as fit_context
    from sklearn.utils._param_validation import validate_params
    from sklearn.utils.metaestimators import available_if

__all__ = ["available_if", "fit_context", "validate_params"]
