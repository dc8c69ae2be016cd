"""A function on a curve between two of its minimisers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._docstrings import shares_entries
from .._messages import shown
from ._axes import Display, draws, with_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch import Tensor
    from torch.nn import Module


@shares_entries(Display)
@dataclass(eq=False, repr=False)
class ParametricPlotDisplay(Display):
    r"""Loss and accuracy on a line or an arc through two solutions.

    Section 4.2.2.1 of [1]_: the function at

    .. math:: \alpha x_2 + (1 - \alpha) x_1 \quad \text{(line)}, \qquad
              \sin(\tfrac{\alpha \pi}{2})\, x_2 + \cos(\tfrac{\alpha \pi}{2})\, x_1 \quad \text{(arc)}.

    A sharp minimum is a narrow valley at its end of the curve, a flat one a wide valley. Make one with
    `from_modules` or `from_function`, not directly.

    Parameters
    ----------
    alphas : ndarray of shape (n_points,)
        Positions; 0 is the first solution, 1 the second.
    loss : ndarray of shape (n_points,)
        The function there.
    test_loss, score, test_score : ndarray of shape (n_points,), default=None
        The function on test data; accuracy on training and test data.
    curve : {"line", "arc"}, default="line"

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where the losses were drawn.
    score_ax_ : matplotlib axes or None
        The axes of the scores, which share the horizontal one.
    lines_ : dict of str to matplotlib line
        By "loss", "test_loss", "score" and "test_score".

    See Also
    --------
    sharpness : One number for how narrow a valley is, in all directions.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 4.

    Examples
    --------
    >>> from sparsekit.inspection import ParametricPlotDisplay
    >>> def double_well(x):  # minima at -1, flat, and at 1, sharp
    ...     return min((x[0] + 1) ** 2, 50 * (x[0] - 1) ** 2)
    >>> display = ParametricPlotDisplay.from_function(double_well, [-1.0], [1.0], alphas=[0, 0.25, 0.75, 1])
    >>> display.loss
    array([0.  , 0.25, 2.25, 0.  ])
    """

    alphas: ArrayLike
    loss: ArrayLike
    _: KW_ONLY
    test_loss: ArrayLike | None = None
    score: ArrayLike | None = None
    test_score: ArrayLike | None = None
    curve: Literal["line", "arc"] = "line"

    @classmethod
    def from_function(
        cls,
        fun: Callable[[np.ndarray], ArrayLike | tuple[Any, ...]],
        first: ArrayLike,
        second: ArrayLike,
        *,
        test_fun: Callable[[np.ndarray], ArrayLike | tuple[Any, ...]] | None = None,
        curve: Literal["line", "arc"] = "line",
        alphas: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> ParametricPlotDisplay:
        """Evaluate and draw a function of a vector.

        Parameters
        ----------
        fun : callable
            ``fun(x)`` returns f, a number; or a tuple that begins with it.
        first, second : array-like of shape (n,)
            The solutions.
        test_fun : callable, default=None
            The function on test data, likewise.
        curve : {"line", "arc"}, default="line"
        alphas : array-like of shape (n_points,), default=None
            Positions; None: 25 from -1 to 2.
        {ax, **plot_options}

        Returns
        -------
        ParametricPlotDisplay

        Raises
        ------
        ValueError
            If the two are not of one shape (n,), or an argument is out of its range.
        """
        points, alphas = _curve(np.asarray(first, float), np.asarray(second, float), curve, alphas)

        def values(fun: Callable[[np.ndarray], ArrayLike | tuple[Any, ...]]) -> np.ndarray:
            found = []
            for x in points:
                value = fun(x.copy())
                value = value[0] if isinstance(value, (tuple, list)) else value
                if np.size(value) != 1:
                    raise ValueError(f"A function must return one number; got the shape {np.shape(value)}.")
                found.append(float(np.asarray(value).item()))
            return np.array(found)

        test_loss = None if test_fun is None else values(test_fun)
        return cls(alphas, values(fun), test_loss=test_loss, curve=curve).plot(ax, **plot_options)

    @classmethod
    def from_modules(
        cls,
        first: Module,
        second: Module,
        X: ArrayLike | Tensor,
        y: ArrayLike | Tensor,
        *,
        loss: Callable[..., Any],
        X_test: ArrayLike | Tensor | None = None,
        y_test: ArrayLike | Tensor | None = None,
        batch_size: int | None = None,
        curve: Literal["line", "arc"] = "line",
        alphas: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> ParametricPlotDisplay:
        """Evaluate and draw what two trained PyTorch modules of one shape minimised.

        Parameters
        ----------
        first, second : torch.nn.Module
            The solutions, of the same class and shape. Batch normalisation gets its averages anew at every
            point, from the rows X.
        X, y : array-like or tensor of shape (n_samples, ...)
            Training data.
        loss : callable
            ``loss(output, y)`` returns the mean loss of the rows, or one number a row.
        X_test, y_test : array-like or tensor, default=None
            Test data.
        batch_size : int, default=None
            Rows that go through a module at once; None: 8192.
        curve : {"line", "arc"}, default="line"
        {alphas, ax, **plot_options}

        Returns
        -------
        ParametricPlotDisplay

        Raises
        ------
        TypeError
            If the modules are not of one class.
        ValueError
            If their parameters differ in shape, or an argument is out of its range.
        """
        from ._torch import ModuleFunction, check_alike

        if type(first) is not type(second):
            raise TypeError(
                f"Both must be of one class; got {type(first).__name__} and {type(second).__name__}."
            )
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test go together.")
        one, other = (ModuleFunction(module, X, y, loss, batch_size) for module in (first, second))
        points, alphas = _curve(one.x, other.x, curve, alphas)
        check_alike(first, second)
        data = [one.data]
        if X_test is not None and y_test is not None:
            data.append(one.as_data(X_test, y_test))
        measured = np.full((len(data), 2, len(points)), np.nan)
        for k, x in enumerate(points):
            one.renormalize(x)
            for part, values in zip(data, measured):
                values[:, k] = one.measure(x, part)
        losses, scores = measured[:, 0], [None if np.isnan(part).all() else part for part in measured[:, 1]]
        display = cls(alphas, losses[0], score=scores[0], curve=curve)
        if len(data) > 1:
            display.test_loss, display.test_score = losses[1], scores[1]
        return display.plot(ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        log: bool = True,
        names: tuple[str, str] = ("first", "second"),
        **line_options: Any,
    ) -> ParametricPlotDisplay:
        """Draw the losses, and the scores on an axis of their own to the right.

        Parameters
        ----------
        {ax}
        log : bool, default=True
            Whether the axis of the loss is logarithmic; it is not where a loss is zero or less.
        names : pair of str, default=("first", "second")
            What the solutions are called.
        {**line_options}

        Returns
        -------
        ParametricPlotDisplay
        """
        ax = self.ax_
        if len(names) != 2:
            raise ValueError(f"names must be those of the two solutions; got {shown(names)}.")
        self.lines_: dict = {}

        def draw(where, name, color, style, label):
            values = getattr(self, name)
            if values is not None:
                options = with_options(dict(color=color, ls=style, lw=1.8, label=label), line_options)
                (self.lines_[name],) = where.plot(self.alphas, values, **options)

        draw(ax, "loss", "C0", "-", "training loss")
        draw(ax, "test_loss", "C0", "--", "test loss")
        losses = np.concatenate([np.ravel(part) for part in (self.loss, self.test_loss) if part is not None])
        if log and (losses[np.isfinite(losses)] > 0).all():
            ax.set_yscale("log")
        ax.set_xlabel(rf"position $\alpha$ on the {self.curve}")
        ax.set_ylabel("loss", color="C0")
        ax.tick_params(axis="y", colors="C0")
        self.score_ax_ = None
        if self.score is not None or self.test_score is not None:
            self.score_ax_ = ax.twinx()
            draw(self.score_ax_, "score", "C1", "-", "training accuracy")
            draw(self.score_ax_, "test_score", "C1", "--", "test accuracy")
            self.score_ax_.set_ylabel("accuracy", color="C1")
            self.score_ax_.tick_params(axis="y", colors="C1")
        for position, name in enumerate(names):
            ax.axvline(position, color="0.7", lw=0.8, zorder=0)
            ax.annotate(
                name, (position, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3),
                textcoords="offset points", ha="center", va="bottom",
            )  # fmt: skip
        lines = list(self.lines_.values())
        ax.legend(
            lines, [line.get_label() for line in lines], frameon=False, fontsize="small", ncols=2,
            loc="upper center", bbox_to_anchor=(0.5, -0.16),
        )  # fmt: skip
        return self


def _curve(first, second, curve, alphas):
    """Points on the curve, one by one, and their positions."""
    if curve not in ("line", "arc"):
        raise ValueError(f"curve must be 'line' or 'arc'; got {shown(curve)}.")
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"The two solutions must have one shape (n,); theirs are {first.shape} and {second.shape}."
        )
    # the range of the thesis: the segment, and its length on either side
    alphas = np.linspace(-1.0, 2.0, 25) if alphas is None else np.asarray(alphas, dtype=np.float64)
    if alphas.ndim != 1 or not alphas.size or not np.isfinite(alphas).all():
        raise ValueError(f"alphas must be finite numbers, of shape (n_points,); got {shown(alphas)}.")
    angle = 0.5 * np.pi * alphas
    weights = zip(*((1.0 - alphas, alphas) if curve == "line" else (np.cos(angle), np.sin(angle))))
    return [a * first + b * second for a, b in weights], alphas
