"""Which cases run by default: covering arrays of parameters, and a part of what takes seconds.

A test with three or more independent parameters runs on a covering array: each pair of values occurs.
scikit-learn's contract runs once a class. ``@pytest.mark.thorough`` leaves
a test to the thorough runs, ``thorough(keep=2)`` all but two of its cases, and
``pytestmark = pytest.mark.thorough`` a file.

``pytest --thorough=all`` runs every case, ``--thorough=only`` those that are left out. A case that is
named on the command line always runs.
"""

from itertools import combinations


def add_option(parser):
    """Add ``--thorough`` to pytest's options."""
    parser.addoption(
        "--thorough",
        choices=("no", "only", "all"),
        default="no",
        help="cases that are left out by default: leave them out, run them alone, or run all (default: no)",
    )


def independent_axes(cases):
    """Groups of parameters that vary together, of dicts ``{parameter: value}``, one a case.

    Returns one tuple a case, with the number of the value of each group that has several.
    """
    columns = set()
    for name in cases[0]:
        seen: dict = {}
        # a value that several cases share is one object, or a plain one
        keys = [
            v if isinstance(v, (str, int, float, type(None))) else id(v) for v in (c[name] for c in cases)
        ]
        columns.add(tuple(seen.setdefault((type(key), key), len(seen)) for key in keys))
    return list(zip(*sorted(column for column in columns if any(column)))) or [()] * len(cases)


def covering_array(cases):
    """Positions of cases, tuples of one length, that hold each pair of values that any of them holds.

    Greedy: the case with most new pairs comes first, of equal ones the earlier.
    """
    pairs = [set(combinations(enumerate(case), 2)) for case in cases]
    missing, chosen = set().union(*pairs), []
    while missing:
        best = max(range(len(cases)), key=lambda k: len(pairs[k] & missing))
        chosen.append(best)
        missing -= pairs[best]
    return sorted(chosen)


def _by_function(items):
    found = {}
    for item in items:
        found.setdefault((item.path, getattr(item, "originalname", item.name), item.cls), []).append(item)
    return found.values()


def _first_of_each_class(items):
    first: dict = {}
    models = [item.callspec.params["estimator"] for item in items]
    return [item for item, m in zip(items, models) if repr(m) == first.setdefault(type(m), repr(m))]


def _default_cases(items):
    """Cases of one test function that run by default."""
    mark = items[0].get_closest_marker("thorough")
    if mark is not None:
        keep = mark.kwargs.get("keep", 0)
        return [items[k * len(items) // keep] for k in range(min(keep, len(items)))]
    if not all(hasattr(item, "callspec") for item in items):
        return items
    if items[0].callspec.params.keys() == {"estimator", "check"}:
        return _first_of_each_class(items)
    cases = independent_axes([item.callspec.params for item in items])
    return [items[k] for k in covering_array(cases)] if len(cases[0]) >= 3 else items


def select(config, items):
    """Leave out of ``items`` what ``--thorough`` does not ask for."""
    how = config.option.thorough
    if how == "all" or all("::" in argument for argument in config.args):
        return
    default = {id(item) for group in _by_function(items) for item in _default_cases(group)}
    kept = [item for item in items if (id(item) in default) == (how == "no")]
    left_out = [item for item in items if (id(item) in default) != (how == "no")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def header(config):
    """Line of pytest's header."""
    said = {"no": "covering arrays (--thorough=all: every case)", "only": "cases left out by default"}
    return f"cases: {said.get(config.option.thorough, 'all')}"


def register(config):
    """Register the marker with pytest."""
    config.addinivalue_line("markers", "thorough(keep=0): run all but ``keep`` cases only with --thorough")
