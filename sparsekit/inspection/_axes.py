"""Axes to draw on. Matplotlib is imported here, when a display is drawn, and nowhere else."""

_NEEDED = "matplotlib is needed for plotting; install it, or sparsekit[plot]."


def get_axes(ax):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax
