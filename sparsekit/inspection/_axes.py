"""Axes to draw on, and looks that all displays share.

Matplotlib is imported here and in the displays' methods, when something is drawn, and nowhere else.
"""

_NEEDED = "matplotlib is needed for plotting; install it, or sparsekit[plot]."

# told apart by people who do not tell red from green (Okabe and Ito, 2002)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
DASHES = ("-", "--", "-.", ":")


def get_axes(ax):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax


def line_style(number):
    """Colour and dashes of a line; dashes let an equal line under it be seen."""
    return dict(color=COLORS[number % len(COLORS)], linestyle=DASHES[number % len(DASHES)])


def check_names(names, count, default, argument="names"):
    """``count`` different labels, as str; None: ``default(k)`` of each number.

    Raises
    ------
    ValueError
        If there are more or fewer, or two are equal.
    """
    if names is None:
        return [default(k) for k in range(count)]
    names = [str(name) for name in names]
    if len(names) != count or len(set(names)) < count:
        raise ValueError(f"{argument} must be {count} different labels; got {names}.")
    return names
