"""scikit-learn's decorators, with what they return: a method or function of the same signature.

scikit-learn has no type hints; without this a type checker would know nothing of what they decorate.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from sklearn import config_context, get_config
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from .._messages import plain, shown

T = TypeVar("T")

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])

    def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]: ...

    def validate_params(
        constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
    ) -> Callable[[F], F]: ...

    def available_if(check: Callable[[Any], object]) -> Callable[[F], F]: ...

else:
    from sklearn.base import _fit_context as fit_context
    from sklearn.utils.metaestimators import available_if

    def validate_params(constraints, *, prefer_skip_nested_validation):
        """`sklearn.utils._param_validation.validate_params`, whose messages show plain numbers."""

        def decorate(function):
            function._skl_parameter_constraints = constraints
            parameters = inspect.signature(function)

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                skip = get_config()["skip_parameter_validation"]
                if not skip:
                    _refuse_unknown(kwargs, parameters, function.__name__)
                    given = parameters.bind(*args, **kwargs)
                    given.apply_defaults()
                    check_parameters(constraints, given.arguments, function.__qualname__)
                with config_context(skip_parameter_validation=skip or prefer_skip_nested_validation):
                    return function(*args, **kwargs)

            return wrapper

        return decorate


def _refuse_unknown(given: dict[str, Any], signature: inspect.Signature, who: str) -> None:
    """TypeError for a keyword that the function lacks; it names those that are spelled nearly so."""
    known = list(signature.parameters)
    if any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()):
        return
    for name in given:
        if name not in known:
            near = " or ".join(difflib.get_close_matches(name, known, n=2))
            hint = f"; did you mean {near}?" if near else f"; it has {', '.join(known)}."
            raise TypeError(f"{who}() got an unexpected keyword argument {shown(name)}{hint}")


def check_parameters(constraints: dict[str, Any], given: dict[str, Any], who: str) -> None:
    """scikit-learn's check of parameters; its message shows 0.5 where NumPy would write np.float64(0.5)."""
    try:
        validate_parameter_constraints(constraints, given, caller_name=who)
    except InvalidParameterError as error:
        found = error
    else:
        return
    # the same error again, of numbers converted to plain ones
    validate_parameter_constraints(constraints, plain(dict(given)), caller_name=who)
    raise found


@dataclass_transform(eq_default=False, kw_only_default=True)
def declares_parameters(cls: type[T]) -> type[T]:
    """Say that annotated attributes of a base of estimators are their parameters, and keywords only."""
    cls._own_parameters = {  # type: ignore[attr-defined]
        name: found
        for name, found in inspect.get_annotations(cls).items()
        if name in vars(cls) and not name.startswith("_") and not found.startswith("ClassVar")
    }
    return cls


@dataclass_transform(eq_default=False)
def with_parameters(cls: type[T]) -> type[T]:
    """Make ``__init__`` of the parameters that a class and its bases declare, the class's own first.

    It is that of a dataclass. The estimator itself is none: Dask takes the fields of one for all that it
    holds, so that two fits would be the same.
    """
    declares_parameters(cls)
    fields: dict[str, tuple[str, Any, Any]] = {}
    types: dict[str, Any] = {"return": None}
    is_keyword = False
    for name in inspect.get_annotations(cls):
        is_keyword = is_keyword or name == "_"  # KW_ONLY
        if name in vars(cls)["_own_parameters"]:
            default = field(default=vars(cls)[name], kw_only=is_keyword)
            fields[name] = name, vars(cls)["_own_parameters"][name], default
    for base in cls.__mro__:
        if "_own_parameters" in vars(base):
            for name, found in inspect.get_annotations(base, eval_str=True).items():
                types.setdefault(name, found)
            for name, found in vars(base)["_own_parameters"].items():
                fields.setdefault(name, (name, found, field(default=vars(base)[name], kw_only=True)))
    made = make_dataclass(cls.__name__, fields.values(), eq=False, repr=False)
    init: Any = vars(made)["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    init.__signature__ = inspect.signature(init)  # has the types by their names, which are shorter
    init.__annotations__ = {name: types[name] for name in init.__annotations__}
    setattr(cls, "__init__", init)  # noqa: B010, which mypy takes
    return cls


class PlainParametersMixin:
    """An estimator whose parameters are checked by `check_parameters`."""

    _parameter_constraints: ClassVar[dict]
    n_iter_: Any  # of one problem, or of each of several
    tol: Any
    max_iter: Any

    def _validate_params(self) -> None:
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        check_parameters(self._parameter_constraints, given, type(self).__name__)


__all__ = [
    "PlainParametersMixin",
    "available_if",
    "declares_parameters",
    "fit_context",
    "validate_params",
    "with_parameters",
]
