"""Where the nodes of a factor graph are drawn."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from sklearn.manifold import smacof

# smallest distance of two nodes' centres
_APART = 0.75


def layout(shapes, members):
    """Positions of the variables (n_variables, 2) and of the factors (n_factors, 2).

    Neighbours are about 1 apart. The same graph gets the same positions.

    Parameters
    ----------
    shapes : list of tuple of int
        Shapes of the graph's variables, as they were made.
    members : list of ndarray of int
        The variables of each factor.
    """
    return _on_grid(shapes, members) or _by_stress(shapes, members)


def _on_grid(shapes, members):
    """A matrix of variables whose factors are about whole rows and columns stays a matrix; else None.

    The factor of a row stands at its left end, a second one at the right; of a column above and below. An
    edge then runs along the row, past no other factor's variables.
    """
    if len(shapes) != 1 or len(shapes[0]) != 2:
        return None
    n_rows, n_columns = shapes[0]
    # a row of a single row, or a column of one column, would be both
    if min(n_rows, n_columns) < 2:
        return None
    rows, columns = np.divmod(np.arange(n_rows * n_columns), n_columns)
    points: list[tuple[float, float]] = []
    taken: dict[tuple[str, int], int] = {}
    for factor in members:
        in_row, in_column = np.unique(rows[factor]), np.unique(columns[factor])
        whole_row = len(in_row) == 1 and len(factor) == n_columns
        whole_column = len(in_column) == 1 and len(factor) == n_rows
        if not (whole_row or whole_column):
            return None
        line = ("row", int(in_row[0])) if whole_row else ("column", int(in_column[0]))
        side = taken[line] = taken.get(line, -1) + 1
        if side > 1:
            return None
        if whole_row:
            points.append((-1.0 if side == 0 else n_columns, -line[1]))
        else:
            points.append((line[1], 1.0 if side == 0 else -n_rows))
    return np.column_stack([columns, -rows]).astype(float), np.array(points, dtype=float).reshape(-1, 2)


def _by_stress(shapes, members):
    """Positions whose distances are as near as can be to the numbers of edges between nodes.

    Majorization of the stress, from the variables on a circle and each factor at the centre of its variables.
    Nodes without a path between them are wanted two steps farther apart than any others.
    """
    n = int(sum(np.prod(shape, dtype=int) for shape in shapes))
    ends = [(v, n + f) for f, factor in enumerate(members) for v in factor]
    total = n + len(members)
    a, b = np.array(ends, dtype=int).reshape(-1, 2).T
    steps = shortest_path(coo_array((np.ones(len(a)), (a, b)), shape=(total, total)), directed=False)
    steps[np.isinf(steps)] = steps[np.isfinite(steps)].max() + 2.0
    X = np.zeros((total, 2))
    angle = 2 * np.pi * np.arange(n) / max(n, 1)
    X[:n] = 0.5 * np.sqrt(n) * np.column_stack([np.sin(angle), np.cos(angle)])
    for f, factor in enumerate(members):
        # a small shift, at a different angle for each: factors over the same variables must not coincide
        turn = 2.4 * f
        X[n + f] = X[factor].mean(axis=0) + 0.05 * np.array([np.cos(turn), np.sin(turn)]) * (len(members) > 1)
    if total > 1:
        X, _ = smacof(steps, init=X, n_init=1, normalized_stress=False)
    X = _pushed_apart(X)
    return X[:n], X[n:]


def _pushed_apart(X):
    """Nodes that are too near each other move away from each other, half the way each."""
    i, j = np.triu_indices(len(X), 1)
    for _ in range(len(X) ** 2):
        apart = X[i] - X[j]
        distance = np.sqrt((apart**2).sum(axis=1))
        near = np.flatnonzero(distance < _APART)
        if not len(near):
            break
        X, size = X.copy(), np.maximum(distance[near], 1e-9)
        move = apart[near] * (0.5 * (_APART * 1.01 - size) / size)[:, None]
        np.add.at(X, i[near], move)
        np.add.at(X, j[near], -move)
    return X
