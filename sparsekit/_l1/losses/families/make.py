"""A family by its name, its link and its parameters."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...._messages import shown
from .binomial import Cloglog, Logit, Probit
from .family import Family
from .identity import Gaussian, Huber
from .log_link import Gamma, NegativeBinomial, Poisson, tweedie

FAMILIES: dict[str, dict[str, Any]] = {
    "poisson": {"log": Poisson},
    "gamma": {"log": Gamma},
    "tweedie": {"auto": tweedie},
    "negative-binomial": {"log": NegativeBinomial},
    "binomial": {"logit": Logit, "probit": Probit, "cloglog": Cloglog},
    "gaussian": {"identity": Gaussian},
    "huber": {"identity": Huber},
}
PARAMETERS = {"tweedie": ("power",), "negative-binomial": ("dispersion",), "huber": ("epsilon",)}


def make_family(name: str, link: str = "auto", **parameters: float) -> Family:
    """The family of this name and link; it uses those of the ``parameters`` that it has.

    Raises
    ------
    ValueError
        If the family does not have the link, or a parameter is out of its range.
    """
    links = FAMILIES[name]
    make = links[next(iter(links))] if link == "auto" else links.get(link)
    if make is None:
        allowed = ", ".join(shown(one) for one in dict.fromkeys(["auto", *links]))
        raise ValueError(f"link must be one of {allowed} for the family {shown(name)}; got {shown(link)}.")
    return partial(make, **{key: parameters[key] for key in PARAMETERS.get(name, ())})()
