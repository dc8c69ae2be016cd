"""Which labels may follow each other: schemes of spans, and pairs that a user forbids."""

import numpy as np

from ..._messages import shown
from .chains import Allowed

# prefixes of labels by scheme: (continues the span before, ends a span)
SCHEMES: dict[str, dict[str, tuple[bool, bool | None]]] = {
    "BIO": {"B": (False, None), "I": (True, None)},
    "BIOES": {"B": (False, False), "I": (True, False), "E": (True, True), "S": (False, True)},
    "BILOU": {"B": (False, False), "I": (True, False), "L": (True, True), "U": (False, True)},
}


def split(label):
    """(tag, kind of span): "B-PER" is ("B", "PER"); "O" and all else that is outside is ("O", "")."""
    tag, _, kind = str(label).partition("-")
    return tag, kind


def allowed_by(constraints, classes):
    """`Allowed` of a scheme's name, None, or a list of pairs (previous, next) that are forbidden.

    In a pair None stands for the sequence's end: (None, "I-PER") forbids to begin with it, ("B-PER", None)
    to end.
    """
    K = len(classes)
    follow, begin, end = np.ones((K, K), dtype=bool), np.ones(K, dtype=bool), np.ones(K, dtype=bool)
    if constraints is None or (isinstance(constraints, str) and constraints == "none"):
        return Allowed(follow, begin, end)
    if isinstance(constraints, str):
        rules = SCHEMES[constraints]
        for j, one in enumerate(classes):
            tag, kind = split(one)
            if tag != "O" and tag not in rules:
                raise ValueError(
                    f"constraints={shown(constraints)}: {shown(one)} in y must be O or begin with one of "
                    f"{', '.join(f'{rule}-' for rule in rules)}."
                )
            continues, ends = rules.get(tag, (False, True))
            begin[j] = not continues
            end[j] = ends is not False
            for k, other in enumerate(classes):
                after, its = split(other)
                goes_on = rules.get(after, (False, True))[0]
                open_span = tag != "O" and ends is not True
                if goes_on:
                    follow[j, k] = open_span and its == kind
                elif ends is False:
                    follow[j, k] = False
        return Allowed(follow, begin, end)
    index = {label: j for j, label in enumerate(classes.tolist())}
    for pair in constraints:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or (pair[0] is None and pair[1] is None):
            raise ValueError(f"constraints must be pairs (previous, next) of labels; got {shown(pair)}.")
        for label in pair:
            if label is not None and label not in index:
                raise ValueError(f"constraints: the label {shown(label)} is none of y's.")
        before, after = pair
        if before is None:
            begin[index[after]] = False
        elif after is None:
            end[index[before]] = False
        else:
            follow[index[before], index[after]] = False
    return Allowed(follow, begin, end)


def broken(codes, starts, allowed, classes):
    """What a training sequence does that is forbidden, in words, or None."""
    for i in range(len(starts) - 1):
        y = codes[starts[i] : starts[i + 1]]
        if not len(y):
            continue
        wrong = ~allowed.follow[y[:-1], y[1:]]
        if wrong.any():
            t = int(wrong.argmax())
            return f"y[{i}] has {shown(classes[y[t]])} before {shown(classes[y[t + 1]])} at position {t}"
        if not allowed.begin[y[0]]:
            return f"y[{i}] begins with {shown(classes[y[0]])}"
        if not allowed.end[y[-1]]:
            return f"y[{i}] ends with {shown(classes[y[-1]])}"
    return None
