"""The parameters of families, as estimators and paths declare them."""

from numbers import Real
from typing import Literal

from sklearn.utils._param_validation import Interval, StrOptions

from ..losses.families.make import FAMILIES

FamilyName = Literal["poisson", "gamma", "tweedie", "negative-binomial", "binomial", "gaussian", "huber"]
Link = Literal["auto", "log", "logit", "probit", "cloglog", "identity"]

FAMILY_CONSTRAINTS: dict = {
    "family": [StrOptions(set(FAMILIES))],
    "link": [StrOptions({"auto", *(link for links in FAMILIES.values() for link in links)})],
    "power": [Interval(Real, None, None, closed="neither")],
    "dispersion": [Interval(Real, 0, None, closed="neither")],
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "positive": ["boolean"],
}
