"""Options of the command line."""

from __future__ import annotations

import argparse

# the last two are where a model fits its rows almost without a penalty, and slow solvers become very slow
DEFAULT_RATIOS = (0.1, 0.01, 0.001, 1e-4, 1e-5)
# seconds of fitting for one solver at one C: on the user's own files, and on the small sets without any
MAX_TIME, MAX_TIME_SHIPPED = 10.0, 1.5
# families that peers have as well, with the powers of their variances; the last one has dispersion 1
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
FAMILIES = (*POWERS, "negative-binomial")


def make_parser():
    """The parser of ``sparsekit``'s arguments."""
    from .. import __version__

    parser = argparse.ArgumentParser(
        prog="sparsekit", description="Sparse linear models with certified results."
    )
    parser.add_argument("--version", action="version", version=f"sparsekit {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    commands.add_parser(
        "versions", help="versions, how the kernels were built, threads: for a report of a problem"
    )
    compare = commands.add_parser(
        "compare",
        help="L1 models on your data: this package against LIBLINEAR and other solvers",
        description="Fit L1 logistic regression with L1LogisticOBA, with --lasso least squares with "
        "LassoOBA, or with --family a generalised linear model with GLMOBA. Fit it with every installed peer "
        "as well, and compare the times to come close to the optimum. Without files: two small data sets.",
    )
    add = compare.add_argument
    numbers = compare.add_mutually_exclusive_group()
    numbers.add_argument(
        "--lasso",
        dest="family",
        action="store_const",
        const="gaussian",
        default="binomial",
        help="targets are numbers: compare Lasso solvers",
    )
    numbers.add_argument(
        "--family",
        choices=FAMILIES,
        default="binomial",
        help="targets are counts or amounts: compare generalised linear models with the log link (tweedie: "
        f"power {POWERS['tweedie']:g}; negative-binomial: dispersion 1)",
    )
    add(
        "--l1-ratio",
        type=_ratio,
        default=1.0,
        metavar="R",
        help="with --family: part of the penalty that is L1, from 0 (ridge) to 1 (default: 1)",
    )
    add(
        "files",
        nargs="*",
        metavar="FILE",
        help="svmlight (.svm .libsvm .txt .dat) or CSV (.csv .tsv), also with .gz .bz2 .xz; .npz, .parquet",
    )
    grid = compare.add_mutually_exclusive_group()
    grid.add_argument(
        "--C",
        type=_numbers,
        metavar="C1,C2,...",
        help="values of C = 1/lambda, in scikit-learn's scale, the same for every file",
    )
    grid.add_argument(
        "--alpha",
        type=_numbers,
        metavar="A1,A2,...",
        help="with --lasso or --family: values of alpha, in scikit-learn's scale, the same for every file",
    )
    grid.add_argument(
        "--lambda-ratio",
        type=_numbers,
        metavar="R1,R2,...",
        help="lambda (1/C, or alpha) as shares of the smallest that selects nothing (default: "
        f"{','.join(f'{ratio:g}' for ratio in DEFAULT_RATIOS)})",
    )
    grid.add_argument(
        "--path",
        type=_positive_int,
        metavar="N",
        help="compare whole paths instead, of N shares from 1 (left out) to 0.001: processor time to a "
        "relative excess of 1e-5",
    )
    add(
        "--n-jobs",
        type=_positive_int,
        default=1,
        metavar="N",
        help="threads of the solvers that use several (default: 1)",
    )
    add(
        "--intercept",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="an unpenalised intercept; solvers that have none are left out (default: only with --lasso and "
        "--family)",
    )
    add("--peers", type=_names, metavar="A,B,...", help="only these peers (default: all)")
    add(
        "--max-time",
        type=_positive,
        metavar="S",
        help="seconds of fitting for one solver at one C; the report names solvers that it stopped "
        "(default: "
        f"{MAX_TIME:g}, without files {MAX_TIME_SHIPPED:g}; with --path for all penalties, 60)",
    )
    held_out = compare.add_mutually_exclusive_group()
    held_out.add_argument("--test", metavar="FILE", help="file of held-out rows (with one FILE)")
    held_out.add_argument(
        "--test-size",
        type=_share,
        default=0.25,
        metavar="SHARE",
        help="share of rows to hold out, stratified (default: 0.25; 0: none)",
    )
    add(
        "--target",
        metavar="NAME",
        help="target column of CSV and parquet files, by name or number from 1 (default: the last)",
    )
    add(
        "--drop",
        type=_names,
        default=[],
        metavar="A,B,...",
        help="columns of CSV and parquet files to leave out",
    )
    add(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="columns of standard deviation 1, and of mean 0 where the data is dense (default: only where "
        "the data is dense)",
    )
    add(
        "--positive",
        metavar="LABEL",
        help="label that counts as positive (default: the greater of two, the most frequent of more; to be "
        "named where there are more than 20 numbers)",
    )
    add("--seed", type=int, default=0, help="seed of the split (default: 0)")
    add("--plot", metavar="FILE", help="write the convergence curves (.png, .pdf, .svg)")
    add("--json", metavar="FILE", help="write all numbers")
    return parser


def _number(is_valid, allowed, kind=float):
    """The type of an option: a number that is valid."""

    def read(text):
        try:
            value = kind(text)
        except ValueError:  # argparse would name this function
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {what}, is {text}") from None
        if not is_valid(value):
            raise argparse.ArgumentTypeError(f"must be {allowed}, is {text}")
        return value

    return read


_positive = _number(lambda value: 0 < value < float("inf"), "a positive number")
_share = _number(lambda value: 0 <= value < 1, "in [0, 1)")
_ratio = _number(lambda value: 0 <= value <= 1, "in [0, 1]")
_positive_int = _number(lambda value: value >= 1, "at least 1", int)


def _numbers(text):
    found = [_positive(part) for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError("names no number")
    return found


def _names(text):
    return [part.strip() for part in text.split(",") if part.strip()]
