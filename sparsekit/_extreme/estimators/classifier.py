"""ExtremeSoftmaxSGD: softmax over very many classes, a row and a few classes at a time."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions

from ..._estimator.base import CallbackSupportMixin
from ..._estimator.decorators import PlainParametersMixin, fit_context
from ..._typing import MatrixLike, RandomState, SolverCallback
from ..solver.state import METHODS
from . import calls
from .prediction import ExtremePredictionMixin


class ExtremeSoftmaxSGD(
    CallbackSupportMixin,
    PlainParametersMixin,
    ExtremePredictionMixin,
    ClassifierMixin,
    BaseEstimator,
):
    r"""Softmax regression over very many classes; a step costs one row and a few classes.

    Minimises the mean log-loss of a linear softmax, with a ridge,

    .. math:: \sum_i \omega_i \log \sum_k e^{x_i^T (w_k - w_{y_i})} + \frac{\alpha}{2} \|W - M\|_F^2,

    with weights :math:`\omega` that sum to 1. M is zero, or weighted centroids of the classes (``prior``).
    A stochastic step uses a row and ``n_negatives`` other classes: its cost depends neither on the number of
    rows nor on that of classes. The intercept is a feature of ones. Probabilities sum to 1 for every method;
    the unbiased ones ("implicit", "umax", "sgd") also converge to those of the full softmax.

    Parameters
    ----------
    method : {"auto", "implicit", "umax", "ove", "nce", "is", "sgd"}, default="auto"
        - "auto": steps on the softmax over the label and the sampled classes, all of them where there are at
          most 192, else 192 drawn and weighted ones, in blocks of 16 that share cache lines. Their lengths
          come from sums of squared gradients [5]_: no rate has to be found. Fits to rows in memory that are
          dense, or small, go on after 5 epochs (``tol=0``: all) by Newton's method on all rows and classes.
          That takes at most twice the time of max_iter epochs, or a second. "auto" is "implicit" with
          ``hash_bits`` or on a GPU.
        - "implicit": Implicit SGD on the double sum [1]_, eq. (9). Stays finite at any learning rate.
        - "umax": SGD on the double sum with [1]_, Algorithm 1.
        - "sgd": SGD on the double sum; diverges unless the learning rate is small.
        - "ove": One-vs-Each, a lower bound of the likelihood [2]_; biased.
        - "nce": noise contrastive estimation [3]_; biased. Its intercepts start at log label frequencies.
        - "is": importance sampling, the softmax over the label and the weighted negatives [4]_; biased.
    alpha : float, default=None
        Strength of the ridge, >= 0, in the scale of the mean loss. Every step shrinks the rows of W that it
        samples, by the inverse of their probability (:math:`\beta_k` of [1]_, eq. (6)), as a proximal step.
        None: 1 / (C n_samples) for the adaptive steps of method "auto" (rows of all calls so far in
        `partial_fit`), else 0. C is 10; of a ridge to centroids 1, 3, 10 or 30, by up to 2000 rows set
        aside in the first three epochs.
    fit_intercept : bool, default=True
        Whether to fit intercepts; the ridge holds for them as well.
    learning_rate : float or "auto", default="auto"
        Step length of the first epoch, in the scale of the mean loss. It is a factor of the adaptive steps of
        method "auto": there "auto" is 0.6 where it decays, else 0.3. For the other methods "auto" tries
        powers of ten on a tenth of the rows (at least 500), scored by the log-loss on up to 2000 others. The
        lowest wins, or a smaller rate within 0.001 log(n_classes) of it. This costs about as much as the fit.
    decay : float, default=None
        Factor of the learning rate after each epoch. None: 0.9. The adaptive steps of method "auto" have 0.5.
        They have 0.85 where the optimum is the aim: with a given ``alpha > 0``, or a ridge to zeros and steps
        on all classes. They end when the rate is a hundredth of the first one: by 0.5 after 7 epochs.
    max_iter : int, default=50
        Largest number of epochs.
    batch_size : int, default=1
        Rows a step, whose steps start from one W and are averaged; 1 for "auto" and "implicit".
    n_negatives : int, default=None
        Classes that a step samples in addition to the label. None: for the adaptive steps of method "auto"
        all up to 192, else 192, rounded up to whole blocks of 16, and 5 for the other methods. With as many
        as there are classes all are taken, whatever ``noise`` says. The papers take 1 for the double sums and
        5 for the others; 5 costs two to three times as much.
    noise : {"uniform", "frequency"} or array-like of shape (n_classes,), default=None
        Distribution of the negatives. None: "frequency", that of the labels, for "nce" and "is". For the
        adaptive steps of "auto" it is the mean of that and the uniform one, else "uniform". Negatives are
        weighted by their inverse probability, so any of them leaves the double sum unbiased. An array must be
        positive and sum to 1.
    prior : {"auto", "centroids"} or None, default="auto"
        What the ridge shrinks the weights to.

        - None: zeros.
        - "centroids": a multiple of the weighted sum of each class's rows, with one weight a feature for all
          classes. The weights are fitted by leave-one-out in 80 steps of 200 rows. The fit leaves a row out
          of the sum of its class too where it scores that row, unless rows set aside have a lower log-loss
          without this. Needs method "auto" and all rows in main memory. Newton's method does not follow.
        - "auto": "centroids" in fits of method "auto" by adaptive steps to rows in memory, with
          ``alpha=None``, but for dense rows that Newton's method follows. Else zeros, see ``prior_``.

        `partial_fit` has a ridge to zeros, and none after a `fit` with centroids (with ``alpha=None``).
    hash_bits : int, default=None
        Keep the weights in a table of ``2 ** hash_bits`` numbers, addressed by a signed hash of class and
        feature, for n_classes times n_features beyond memory. Weights that share an entry disturb each other:
        accuracy falls with every halving. Not with ``alpha > 0``.
    label_choice : {"first", "sample"}, default="first"
        For an indicator y: a row's label is its first one, as in the papers, or one of its labels, drawn anew
        in every epoch. The target is then their uniform distribution.
    tol : float, default=1e-4
        A fit stops when the estimated objective moved by less than ``tol * log(n_classes)`` an epoch over
        five epochs, two standard errors included. It also stops when the objective itself is at most 50 times
        that. A ConvergenceWarning says that it still fell by more, two standard errors deducted, after
        ``max_iter`` epochs. This certifies nothing: a rate that decays too fast comes to rest too. A fit that
        chose C gives no warning after all epochs of its decay. 0: all epochs are run, without a warning.
        None: the objective is not estimated either.
    max_time : float, default=None
        Largest time of the epochs in seconds; None: no limit. The choice of a rate is not counted, nor are
        centroids. The choice of C takes at most as much again.
    shuffle : bool, default=True
        Whether each epoch takes the rows in a new order: for X in blocks the blocks in a new order, and the
        rows of each. False: as they stand, for a stream in the order of time.
    n_jobs : int, default=None
        Number of threads, as in joblib. More than one share W without locks, so that results differ from run
        to run, within noise. On a GPU: how many rows (or batches) step at once, from the same W. None and
        negative numbers take as many as the most frequent class bears, 1 makes the steps of one thread. All
        of them give the same result each time, but for a hashed table.
    random_state : int, RandomState instance or None, default=None
        Order of the rows and choice of classes. One thread gives bitwise the same result for the same seed.
    verbose : int, default=0
        1 prints a progress bar with the estimate of the objective and what it falls by in an epoch.
    callback : callable, default=None
        Called as ``callback(intermediate_result)`` after each epoch with a
        :class:`scipy.optimize.OptimizeResult`: nit (epochs), nfev (steps), learning_rate, time (seconds), fun
        and objective_error (the newest estimate and its standard error). A true value or StopIteration stops.
        The epochs that choose C are repeated for each. scikit-learn's own are supported.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or CSR matrix after `sparsify`
        Weights, in the dtype of X. Not with ``hash_bits``.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    table_ : ndarray of shape (2 ** hash_bits,)
        The hashed weights.
    classes_ : ndarray of shape (n_classes,)
        The labels: sorted after `fit`; `partial_fit` appends new ones. For an indicator the column numbers.
    multilabel_ : bool
        Whether y was an indicator.
    alpha_ : float
        The ridge's strength.
    prior_ : {"zeros", "centroids"}
        What the ridge of the last `fit` shrank to.
    learning_rate_ : float
        The learning rate of the first epoch.
    learning_rate_losses_ : dict
        With ``learning_rate="auto"``: held-out log-loss of each rate that was tried, inf where it diverged.
    objective_ : float
        Unbiased estimate of the objective above, from rows that are drawn once for a fit. With centroids a
        row is scored as by the fit, see ``prior``. NaN where that would cost more than a twentieth of the
        fit. `partial_fit` removes it, and the next ones.
    objective_error_ : float
        Standard error of ``objective_``; 0 where all rows were evaluated, as by Newton's method. That of a
        difference between epochs is much smaller, since the rows are the same.
    objective_curve_ : ndarray of shape (``n_iter_``,)
        The estimate after each epoch, with ``max_iter`` of 15 or more after every fifth; NaN after the
        others. Newton steps are none.
    objective_error_curve_ : ndarray of shape (``n_iter_``,)
        Its standard errors.
    n_iter_ : int
        Epochs that were run.
    t_ : int
        Rows that were stepped on, over all calls.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    SoftmaxClassifier : The same model by Newton's method, for up to some thousand classes.
    sparsekit.metrics.precision_at_k : Judges the labels of `predict_topk`.
    sparsekit.datasets.load_xc : Reads data sets of many labels.

    References
    ----------
    .. [1] F. Fagan, G. Iyengar, "Unbiased scalable softmax optimization", 2018.
    .. [2] M. K. Titsias, "One-vs-Each approximation to softmax for scalable estimation of
       probabilities", 2016.
    .. [3] A. Mnih, Y. W. Teh, "A fast and simple algorithm for training neural probabilistic language
       models", 2012.
    .. [4] Y. Bengio, J.-S. Senécal, "Adaptive importance sampling to accelerate training of a neural
       probabilistic language model", 2008.
    .. [5] J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic
       optimization", Journal of Machine Learning Research 12 (2011).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sparsekit import ExtremeSoftmaxSGD
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ExtremeSoftmaxSGD(random_state=0).fit(X / 16, y)
    >>> labels, scores = model.predict_topk(X[:1] / 16, k=3)
    >>> int(labels[0, 0])
    0
    """

    _parameter_constraints: ClassVar[dict] = {
        "method": [StrOptions({"auto", *METHODS})],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "decay": [Interval(Real, 0, 1, closed="right"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_negatives": [Interval(Integral, 1, None, closed="left"), None],
        "noise": [StrOptions({"uniform", "frequency"}), "array-like", None],
        "prior": [StrOptions({"auto", "centroids"}), None],
        "hash_bits": [Interval(Integral, 4, 40, closed="both"), None],
        "label_choice": [StrOptions({"first", "sample"})],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "shuffle": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        method: Literal["auto", "implicit", "umax", "ove", "nce", "is", "sgd"] = "auto",
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        learning_rate: float | Literal["auto"] = "auto",
        decay: float | None = None,
        max_iter: int = 50,
        batch_size: int = 1,
        n_negatives: int | None = None,
        noise: Literal["uniform", "frequency"] | ArrayLike | None = None,
        prior: Literal["auto", "centroids"] | None = "auto",
        hash_bits: int | None = None,
        label_choice: Literal["first", "sample"] = "first",
        tol: float | None = 1e-4,
        max_time: float | None = None,
        shuffle: bool = True,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        callback: SolverCallback | None = None,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.learning_rate = learning_rate
        self.decay = decay
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_negatives = n_negatives
        self.noise = noise
        self.prior = prior
        self.hash_bits = hash_bits
        self.label_choice = label_choice
        self.tol = tol
        self.max_time = max_time
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array, source of blocks} of shape (n_samples, n_features)
            Training data; C-ordered arrays and CSR matrices of float32 or float64 are read in place. Rows of
            similar norms suit one learning rate: the papers divide each by its norm. A CuPy array or CSR
            matrix is fitted on its GPU, where the fitted arrays stay. y and sample_weight must be CuPy's too,
            and labels numbers, or several labels a row a CSR matrix. Blocks of rows, each dense or CSR, come
            from a Dask array or data frame, or from an object with ``shape``, ``n_blocks``, ``block(i)`` and
            ``starts``: the first row of each block, and n_samples at the end. Two blocks are in memory, and
            of each row its labels and one number.
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Class labels of any kind, or an indicator of zeros and ones (rows without a label are left out).
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, not all zero; only their ratios matter.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, X or y hold NaN or infinity, or shapes disagree. If a block
            does not go with the others (the message names it).
        FloatingPointError
            If the steps diverge.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the objective surely still falls by more than ``tol`` an epoch after ``max_iter`` epochs.
        """
        calls.fit(self, X, y, sample_weight)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over more rows, at the learning rate itself, without decay.

        u of the double sums belongs to a row, so each row's u starts anew and is forgotten after the call.
        With uniform negatives it starts from log K, as in the paper's Algorithm 1. That makes later steps
        short; larger rates make up for it. With a noise distribution u starts from the row's own sampled
        classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array, source of blocks} of shape (n_samples, n_features)
            Training data; see `fit` for data in blocks, of which this makes one pass.
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Labels; classes may be absent.
        classes : array-like of shape (n_classes,), default=None
            All labels there are; they are sampled from the start, and others refused. A later call that names
            more adds them. None in every call so far: new labels of y are appended to ``classes_``.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows: factors of their steps' lengths, as they are. `fit` divides them by
            their mean, which a stream does not know.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, X or y hold NaN or infinity, or shapes disagree. If y has
            labels outside of the ``classes`` that were named. For blocks as in `fit`.
        FloatingPointError
            If the steps diverge.
        """
        calls.partial_fit(self, X, y, classes, sample_weight)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
