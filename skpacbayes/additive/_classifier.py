"""Sparse additive logistic classification by a Gibbs posterior."""

import math
from copy import deepcopy
from numbers import Real

import numpy as np
from scipy.special import expit, log_expit, log_softmax, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._base import LogProbabilitiesMixin, as_fitted, fit_context
from .._chains import R_HAT_LIMIT, run_chains
from .._compat import HasMethods, Interval, StrOptions
from .._stream import CheckedScoreMixin
from .._validation import validate_data
from ..certificates.additive import certify_classifier, divergence_of, logistic_normal
from ._base import POSITIVE, SCALE, Rows, _DrawnAdditiveGibbs, check_total
from ._basis import NAMED
from ._doubts import warn_of_fit
from ._logistic_chains import LogisticChain, SoftmaxChain, most_probable_slab
from ._missing_effects import pooled_copies
from ._rated_chain import INTERCEPT_VARIANCE
from ._residuals import are_smaller, left_out_log_losses
from ._selection import DETECT, NO_STRUCTURE, PartsOfFit, _Interactions

SMALLEST = 1e-290  # least sum of probabilities with an accurate logarithm
SMOOTH, ROUGH = "legendre", "cosine"  # bases that "auto" compares
TIMES_ROUGH = 4  # as many functions of the rough basis
MOST_ROUGH = 2**24  # values of these functions at the rows, which are kept in memory
PILOT_SWEEPS = 150  # of the short run that finds the slab's scale, at most `n_iter`


class _AdditiveGibbsClassifier(CheckedScoreMixin, ClassifierMixin, _DrawnAdditiveGibbs):
    """Base class of classifiers by the sign of a score, or by the largest score."""

    def _classes(self, X, y, sample_weight=None, class_weight=None, several=False):
        """Validate rows and labels; return the rows of positive weight."""
        X, y = self._validated(X, y)
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary" and not (several and kind == "multiclass"):
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}."
            )
        X, y, weights = Rows.of(X, y, sample_weight)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class"
            )
        if class_weight is not None:
            factors = compute_class_weight(
                class_weight, classes=classes, y=y, sample_weight=weights
            )
            weights = weights * factors[classes.searchsorted(y)]
            if not (factors > 0).all():
                raise ValueError(
                    f"class_weight must be positive, got {class_weight!r}."
                )
        check_total(weights)
        self.classes_ = classes
        positive = y == classes[1] if len(classes) == 2 else y == classes[:, None]
        return Rows(X, positive, weights)

    def _labelled(self, X, y):
        """Validate new rows and labels, for a certificate."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", reset=False)
        self._refuse_unknown(y)
        return X, y == self.classes_[1]

    def _refuse_unknown(self, y):
        """Raise ValueError if a label is not among the classes."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y must be of the classes {self.classes_}, got {unknown}."
            )

    def _chain(self, problem, exponents, variance, rng):
        """Return a chain of the logistic likelihood with exponents of the rows."""
        several = problem.targets.ndim == 2
        kind = SoftmaxChain if several else LogisticChain
        return self._chain_of(kind, problem, exponents, variance, rng)

    @as_fitted
    def _log_odds(self, X):
        """Return log odds of the mean probability of the draws, or of one function."""
        if self.prediction != "mean":
            return self._bounded(self._decision(X))
        return self._mean_log_odds(X)

    def _mean_log_odds(self, X):
        """Return log odds of the mean probability of the draws."""
        log_odds = np.empty(len(X))
        for rows, scores in self._answer().scores_of_draws(X):
            log_odds[rows] = log_odds_of_mean(self._bounded(scores))
        return log_odds

    def _bounded(self, scores):
        """Return the scores; a subclass may clip them."""
        return scores


class SparseAdditiveGibbsClassifier(
    LogProbabilitiesMixin, _Interactions, _AdditiveGibbsClassifier
):
    """Additive classification that selects its variables, by a Gibbs posterior.

    The log odds of the second of two classes are a sum of functions of a few variables.
    Markov chains draw the variables, the order of each function and its coefficients
    from their posterior. Predictions are averages over these draws, and each variable
    has a probability of being in the model.

    With more than two classes, each class has a score, a sum of functions of its own
    variables, and the softmax of the scores gives the probabilities.

    Parameters
    ----------
    basis : {"auto", "legendre", "cosine", "fourier", "spline"} or transformer, \
            default="auto"
        Functions of one variable, from smooth to rough. A model of order k in a
        variable uses its first k functions. Legendre polynomials fit smooth effects
        best, cosines rough ones. A transformer of one column may be given instead.
        "auto": Legendre polynomials, or four times as many cosines as `max_order`. The
        cosines are tried if residuals of a fit with polynomials have structure, as for
        `interactions`, and kept if they predict rows that are left out of the fit
        better by two standard errors. They are not tried with a single variable, with
        more than 2^24 values of functions at the rows, and with a given
        `inverse_temperature` or `slab_scale` (but 1).
    max_order : int, default=8
        Largest number of functions of each variable, or of its categories; with
        `basis="auto"`, a quarter of that beside cosines.
    feature_range : tuple of two floats or of two array-likes, default=None
        Ends of the range of each feature, mapped to [-1, 1]; None: those of the rows of
        `fit`, at most ten interquartile ranges beyond the quartiles. Outside of the
        range, effects are lines as far as half of the range, and then constant;
        functions of "fourier" and of transformers are constant.
    categorical_features : array-like of int, str or bool, default=None
        Columns or names of categorical features, or a mask; the values are codes of
        categories. Each of the `max_order` most frequent categories has its own effect,
        and all others share one; categories not seen in `fit` count as missing.
    beta : float in (0, 1), default=0.5
        Each function multiplies the prior of a model by beta. At 1/2 all numbers of
        variables are about equally probable; at 1/3 each further variable halves the
        prior probability, so that fewer are selected.
    slab_scale : "auto" or float, default="auto"
        Prior standard deviation of a coefficient, in log odds; the k-th function of a
        variable has standard deviation 1 / k. "auto": for two classes it is the most
        probable value, on a log scale, in a short run, with the density 1 / s^2 on s >=
        1; for more classes it is drawn by the chains, with the density 2 / s^3 on s >=
        1, of mean 2. Under "pac" it is 1, as the prior must not depend on the rows.
    inverse_temperature : {"likelihood", "pac"} or float, default="likelihood"
        lambda, the weight of the mean log loss. "likelihood": the total weight of the
        rows, which gives the posterior of logistic regression. "pac", for two classes:
        `gamma` times the total weight over the largest loss, log(1 +
        exp(`score_bound`)); it has a `certificate`.
    gamma : float, default=1.0
        Factor of "pac"; see `inverse_temperature`.
    score_bound : float in (0, 100], default=3.0
        Under "pac", scores are clipped to [-score_bound, score_bound].
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows of each class, as in scikit-learn. They
        change the predicted probabilities.
    n_iter : int, default=500
        Number of iterations of each chain that are kept. Each makes twenty moves
        between models, and then draws coefficients.
    burn_in : int, default=100
        Number of iterations of each chain that are dropped before `n_iter` are kept.
    n_chains : int, default=2
        Number of chains, each with its own start.
    max_active : int, default=None
        Largest number of variables in a model, including pairs. None: 50.
    interactions : "detect", "auto", None or list of pairs of int or str, \
            default="detect"
        Pairs of variables whose joint effect may differ from the sum of their own, by
        column or name. A pair is in a model only if both variables are. "auto": all
        pairs of up to 20 variables; with more variables, the pairs of the 20 most
        probable ones in a run without interactions. "detect": the same, if residuals of
        a fit without interactions depend on two variables jointly, or if a random
        forest predicts them in rows that its trees have not seen; otherwise none. All
        chains start at the pairs with the largest gains. "detect" finds no pairs with a
        given `inverse_temperature` or `slab_scale` (but 1), and where chains disagree.
    prediction : {"mean", "randomized", "map"}, default="mean"
        Predict by the posterior mean, by one draw from the posterior, or by the mean
        within the model that was drawn most often.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Probability that each variable is in the model; with more than two classes, that
        it is in the score of at least one of them.
    class_inclusion_probabilities_ : ndarray of shape (n_classes, n_features)
        Probability that each variable is in the score of each class. With two classes,
        which have one score, the shape is (1, n_features).
    feature_importances_ : ndarray of shape (n_features,)
        Equal to `inclusion_probabilities_`; used by `SelectFromModel`.
    inclusion_errors_ : ndarray of shape (n_features,)
        Monte Carlo standard errors of these probabilities.
    expected_orders_ : ndarray of shape (n_features,)
        Posterior mean of the number of functions of each variable; with more than two
        classes, the largest among the scores.
    coefficients_ : ndarray of shape (n_features, n_functions)
        Coefficients of the functions, as `prediction` says. The k-th function of a
        variable has standard deviation 1 / k over the rows. With more than two classes
        the shape is (n_classes, n_features, n_functions). With `interactions`, those of
        `pairs_` are in further rows.
    intercept_ : float
        Log odds where all effects are 0, as `prediction` says. With more than two
        classes, the scores there: an ndarray of shape (n_classes,), of mean zero.
    models_ : ndarray of shape (n_models, n_features)
        Order (number of functions) of each variable in each model that was drawn, the
        most frequent model first; with more than two classes, the largest order among
        the scores; with `interactions`, those of `pairs_` in further columns.
    model_weights_ : ndarray of shape (n_models,)
        Relative frequency of each model among the draws.
    pairs_ : ndarray of int of shape (n_pairs, 2)
        Pairs of variables that may interact; empty if there are none.
    pair_probabilities_ : ndarray of shape (n_pairs,)
        Probability that each of `pairs_` is in the model; with more than two classes,
        that it is in the score of at least one of them.
    basis_ : str or transformer
        The basis used.
    inverse_temperature_ : float
        Inverse temperature.
    slab_scale_ : float
        Prior standard deviation of a coefficient: given, found in a short run, or, with
        more than two classes, the mean of the draws.
    acceptance_rate_ : float
        Share of the moves to other models that were accepted.
    r_hat_ : float
        Largest R-hat of the chains: of the risk, and of the presence of each term whose
        inclusion probability is between 0.05 and 0.95.
    feature_ranges_ : ndarray of shape (n_features, 2)
        Range of each feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    SparseAdditiveGibbsRegressor : The same for numbers.
    SparseAdditiveGibbsRanker : The same for the order of the rows alone.

    Notes
    -----
    The posterior is proportional to exp(-lambda R(f)) pi(f), with R the weighted mean
    of log(1 + exp(-y f(x))) and pi(m) proportional to beta^functions / binomial(d,
    variables) on models m [1]_. The functions are orthogonal over the rows. The k-th
    function of a variable has standard deviation 1 / k, so that the prior favours
    smooth effects. The coefficients are N(0, v), with v the square of the slab scale
    (in the paper they are uniform on an l1 ball), and the intercept is N(0, 100).

    With more than two classes, R is the mean negative log softmax of the scores. Each
    class has its own model and coefficients, with the same prior. Given the other
    scores, the score of a class has a logistic likelihood [2]_: each iteration updates
    the classes in turn. A function that is added to all scores changes no probability,
    and is identified by the prior only: compare effects between classes. Without
    `interactions`, an iteration therefore also proposes to move effects, with the
    opposite sign, to the classes without them. The slab scale is common to all classes;
    it is drawn given the coefficients, and again jointly with them.

    exp(-lambda R) is a product of logistic likelihoods to a power b, and so a mixture
    of Gaussian ones over Pólya-Gamma rates of shape b [2]_: a chain draws the rates
    given the scores, then moves between models with coefficients and intercept
    integrated out, as in regression, then draws these. Where classes are nearly
    separable, the coefficients mix slowly given the rates: the norm of all of them is
    updated without the rates before, and the coefficients along random lines after,
    both by slice sampling. The draws of the rates are exact for integer b, as at
    "likelihood" without weights, and otherwise have negligible error.

    `certificate` bounds the log loss by Catoni's theorem [3]_. Its observed risk is
    estimated by the chains, not by exact draws; its divergence is an upper bound.

    Each weight multiplies a row's loss: rows repeated have the same posterior as rows
    of weight two, though not the same random numbers.

    The functions of a pair are the first `max_order` products of the functions of its
    variables, minus their projections on functions of one of the two; the product of
    the a-th and the b-th has standard deviation 1 / (a b). The prior of a model with s
    variables and t pairs of them has a further factor binom(s (s - 1) / 2, t)^-1, and
    beta for each function. At new rows a function of a pair is clipped to the range of
    its values at the rows of `fit`.

    A variable with missing values (NaN) has one more function, its first: the indicator
    that it is missing.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet (2015). On some
       recent advances on high dimensional Bayesian statistics. ESAIM: Proceedings and
       Surveys, Section 5.
    .. [2] N. G. Polson, J. G. Scott and J. Windle (2013). Bayesian inference for
       logistic models using Pólya-Gamma latent variables. JASA 108.
    .. [3] O. Catoni (2007). PAC-Bayesian supervised classification. IMS Lecture Notes,
       Theorem 1.2.6.

    Examples
    --------
    Two of twenty variables matter, one of them only through its absolute value:

    >>> import numpy as np
    >>> from skpacbayes.additive import SparseAdditiveGibbsClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 20))
    >>> log_odds = 3 * X[:, 0] + 6 * X[:, 1] ** 2 - 2
    >>> y = rng.random(300) < 1 / (1 + np.exp(-log_odds))
    >>> classifier = SparseAdditiveGibbsClassifier(random_state=0).fit(X, y)
    >>> classifier.get_support(indices=True)
    array([0, 1])
    >>> rows = np.zeros((3, 20))
    >>> rows[:, 1] = [-0.9, 0, 0.9]  # log odds 2.9, -2, 2.9
    >>> classifier.predict(rows)
    array([ True, False,  True])
    """

    _parameter_constraints: dict = {
        **_AdditiveGibbsClassifier._parameter_constraints,
        **_Interactions._parameter_constraints,
        "basis": [StrOptions({"auto", *NAMED}), HasMethods(["fit", "transform"])],
        "slab_scale": [StrOptions({"auto"}), SCALE],
        "inverse_temperature": [StrOptions({"likelihood", "pac"}), SCALE],
        "gamma": [POSITIVE],
        "score_bound": [Interval(Real, 0, 100, closed="right")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        basis="auto",
        *,
        max_order=8,
        feature_range=None,
        categorical_features=None,
        beta=0.5,
        slab_scale="auto",
        inverse_temperature="likelihood",
        gamma=1.0,
        score_bound=3.0,
        class_weight=None,
        n_iter=500,
        burn_in=100,
        n_chains=2,
        max_active=None,
        interactions=DETECT,
        prediction="mean",
        random_state=None,
        n_jobs=None,
    ):
        self.basis = basis
        self.max_order = max_order
        self.feature_range = feature_range
        self.categorical_features = categorical_features
        self.beta = beta
        self.slab_scale = slab_scale
        self.inverse_temperature = inverse_temperature
        self.gamma = gamma
        self.score_bound = score_bound
        self.class_weight = class_weight
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.max_active = max_active
        self.interactions = interactions
        self.prediction = prediction
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows. None: 1 each.

        Returns
        -------
        self : SparseAdditiveGibbsClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If y has one class only, if X or a weight is not valid, or if
            `inverse_temperature` is "pac" and there are more than two classes, or
            `interactions` is "auto" or a list.
        """
        rows = self._classes(X, y, sample_weight, self.class_weight, several=True)
        self._check_temperature(rows)
        problem, rng = self._problem(rows), self._generator()
        seeds = rng.spawn(self.n_chains)
        problem = self._with_given_pairs(problem, rows, rng)
        parts = PartsOfFit(self._parts, self._detects or self._chooses_basis)
        chains = self._learn(problem, rows, seeds, rng, parts)
        usual = self._as_usual and self.class_weight is None
        told, left = usual and self.slab_scale == "auto", NO_STRUCTURE
        if parts.has_another():
            problem, chains, left = self._tried(problem, chains, rows, rng)
        elif told:
            left = self._left(rows)
        parts.end()
        self._risk = None
        if self.inverse_temperature == "pac" and np.ptp(rows.weights) == 0:
            self._risk = self._certified_risk(rows, problem, chains[0].prior)
        warn_of_fit(
            self,
            rows,
            sample_weight,
            problem.among,
            self._targets_predicted if usual else None,
            bernoulli_variances,
            left=left if told else None,
        )
        return self

    def predict(self, X):
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The second class where its probability is larger than one half; with more
            than two classes, the most probable class.
        """
        scores = self.decision_function(X)
        codes = scores.argmax(axis=1) if self._several else scores > 0
        return self.classes_[codes.astype(int)]

    def decision_function(self, X):
        """Return the log odds of the second class, or log probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log odds of the probabilities of `predict_proba`; with more than two
            classes, their logarithms.
        """
        X = self._rows_to_predict(X)
        return self._log_probabilities(X) if self._several else self._log_odds(X)

    def predict_proba(self, X):
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Logistic function of the score, or softmax of the scores. With
            `prediction="mean"` these are averaged over the posterior.
        """
        return self._probabilities(self._rows_to_predict(X))

    @as_fitted
    def certificate(self, X=None, y=None, *, confidence=0.95):
        """Bound the log loss of new rows, under `inverse_temperature="pac"`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows on which the loss is computed. None: the rows of the fit.
        y : array-like of shape (n_samples,), default=None
            Labels of the new rows.
        confidence : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        certificate : Certificate
            Theorem 1.2.6 of Catoni (2007) for the mean log loss of `predict_proba`
            with `prediction="mean"`, and of a function drawn from the posterior, the
            scores clipped to `score_bound`.

        Raises
        ------
        NotImplementedError
            Unless `inverse_temperature="pac"` and all rows have equal weights.
        """
        check_is_fitted(self)
        check_share("confidence", confidence)
        if self._risk is None:
            raise NotImplementedError(
                "certificate needs inverse_temperature='pac' and rows of equal weights,"
                f" got inverse_temperature={self.inverse_temperature!r}."
            )
        observed = None
        if X is not None:
            observed = self._loss(*self._labelled(X, y), bound=self.score_bound)
        largest = math.log1p(math.exp(self.score_bound))
        risk = (
            "Theorem 1.2.6 of Catoni (2007)",
            "mean log loss",
            f"log loss at most {largest:.4g}, scores clipped",
            "rows independent, of one distribution",
        )
        return certify_classifier(self, risk, largest, confidence, observed)

    @property
    def intercept_(self):
        """Log odds where all effects are 0; with several classes, their scores."""
        intercept = self._answer().intercept
        return intercept.copy() if self._several else float(intercept)

    @property
    def basis_(self):
        """The basis used."""
        return self._answer().dictionary.basis

    @property
    def class_inclusion_probabilities_(self):
        """Probability that each variable is in the score of each class."""
        parts = [part.posterior.inclusion()[:, 0] for part in self._answer().scores]
        return np.array([self._of_variables(part) for part in parts])

    @property
    def slab_scale_(self):
        """Prior standard deviation of a coefficient, given or drawn."""
        return float(self._answer().slab_scale)

    @property
    def _as_usual(self):
        """Whether no given temperature or scale leaves structure in the residuals."""
        usual = self.inverse_temperature == "likelihood"
        return usual and self.slab_scale in ("auto", 1.0)

    @property
    def _several(self):
        """Whether there are more than two classes."""
        return bool(self._answer().classes)

    def _rows_to_predict(self, X):
        return self._new_rows(X)

    def _probabilities(self, X):
        """Return the probability of each class, at validated rows."""
        if self._several:
            return np.exp(self._log_probabilities(X))
        log_odds = self._log_odds(X)
        return expit(np.column_stack([-log_odds, log_odds]))

    def _targets_predicted(self, X):
        """Return the probability of the second class, or those of several classes."""
        probabilities = self._probabilities(X)
        return probabilities if self._several else probabilities[:, 1]

    @as_fitted
    def _log_probabilities(self, X):
        """Return log probabilities: of the mean over the draws, or of one function."""
        if not self._several:
            log_odds = self._log_odds(X)
            return log_expit(np.column_stack([-log_odds, log_odds]))
        if self.prediction != "mean":
            return log_softmax(self._decision(X), axis=1)
        return self._mean_log_probabilities(X)

    def _mean_log_probabilities(self, X):
        """Return log probabilities of several classes: of the mean over the draws."""
        result = np.empty((len(X), len(self.classes_)))
        for rows, scores in self._answer().scores_of_draws(X):
            sums = logsumexp(log_softmax(scores, axis=0), axis=1)
            result[rows] = (sums - math.log(scores.shape[1])).T
        return result

    def _has_all_draws(self):
        """Return whether the chains were not stopped by a callback."""
        return len(self._answer().scores[0].intercepts) == self.n_chains * self.n_iter

    def _learn(self, problem, rows, seeds, rng, parts=None):
        """Run chains for a problem, whose answer becomes that of the estimator."""
        chains, temperature = self._new_chains(problem, rows, seeds, rng)
        self._run(chains, parts)
        self._computed = self._fitted(problem, chains, temperature, rng)
        return chains

    def _learn_if_better(self, problem, rows, rng, losses):
        """Run chains for a problem; return None if left-out rows do not lose less.

        A quarter of the draws may show this. `losses` : (n_rows,), of another problem.
        """
        seeds, n_first = rng.spawn(self.n_chains), max(1, self.n_iter // 4)
        chains, temperature = self._new_chains(problem, rows, seeds, rng)
        how = {"tasks": None, "n_jobs": self.n_jobs}
        run_chains(chains, burn_in=self.burn_in, n_iter=n_first, **how)
        self._computed = self._fitted(problem, chains, temperature, deepcopy(rng))
        if not self._left_out_losses(rows).sum() < losses.sum():
            return None
        run_chains(chains, burn_in=0, n_iter=self.n_iter - n_first, **how)
        self._computed = self._fitted(problem, chains, temperature, rng)
        return chains if are_smaller(self._left_out_losses(rows), losses) else None

    def _new_chains(self, problem, rows, seeds, rng):
        """Return chains before their first sweep, and the inverse temperature."""
        temperature, exponents = self._likelihood(rows)
        variance = self._slab_variance(problem, exponents, rng)
        chains = [self._chain(problem, exponents, variance, seed) for seed in seeds]
        return chains, temperature

    def _with_given_pairs(self, problem, rows, rng):
        """Return the problem with given pairs, or those that a short run suggests."""

        def first(problem):
            _, exponents = self._likelihood(rows)
            variance = self._slab_variance(problem, exponents, rng)
            return self._chain(problem, exponents, variance, rng.spawn(1)[0])

        return self._paired(problem, first)

    def _tried(self, problem, chains, rows, rng):
        """Try pairs and rough functions, where the residuals of a fit have structure.

        Returns the problem and the chains of the fit that is kept, and what it leaves.
        """
        may_be_rough = self._may_be_rough(rows)
        left = self._left(rows, unmixed=may_be_rough)
        rough = may_be_rough and left.suggests_rough
        if not self._computed.r_hat <= R_HAT_LIMIT:
            left = NO_STRUCTURE
        smooth = self._with_detected_pairs(problem, chains, left, rows, rng)
        if not rough:
            return smooth
        computed, losses = self._computed, self._left_out_losses(rows)
        problem = self._problem(rows, ROUGH, TIMES_ROUGH * self.max_order)
        problem = self._with_given_pairs(problem, rows, rng)
        chains = self._learn_if_better(problem, rows, rng, losses)
        if chains is None:
            self._computed = computed
            return smooth
        return self._with_detected_pairs(problem, chains, self._left(rows), rows, rng)

    def _with_detected_pairs(self, problem, chains, left, rows, rng):
        """Run chains with pairs, if these are detected in what the fit has left."""
        if not (self._detects and left.suggests_pairs):
            return problem, chains, left
        problem = self._with_candidates(problem, lambda: self._ranking(left))
        chains = self._learn(problem, rows, rng.spawn(self.n_chains), rng)
        return problem, chains, self._left(rows)

    def _left(self, rows, *, unmixed=False):
        """Return what effects leave in the residuals; nothing if the run was stopped.

        Nothing, too, where a given scale or temperature leaves structure by itself, or,
        unless `unmixed`, where chains disagree.
        """
        if not (self._as_usual and self._has_all_draws()):
            return NO_STRUCTURE

        def predict(X):
            if self._several:
                return np.exp(self._mean_log_probabilities(X))
            return expit(self._mean_log_odds(X))

        return self._structure_left(rows, predict, unmixed=unmixed)

    @property
    def _chooses_basis(self):
        """Whether the basis depends on the rows."""
        return isinstance(self.basis, str) and self.basis == "auto"

    def _may_be_rough(self, rows):
        """Return whether functions of the rough basis may be tried."""
        size = rows.X.size * TIMES_ROUGH * self.max_order
        return self._chooses_basis and size <= MOST_ROUGH

    def _dictionary(self, rows, basis=None, max_order=None):
        if self._chooses_basis:
            basis = basis or SMOOTH
        return super()._dictionary(rows, basis, max_order)

    def _left_out_losses(self, rows):
        """Return weights times log losses of rows, each left out with its copies."""
        labels = np.atleast_2d(rows.targets).T
        kept, weights = pooled_copies(rows.X, labels, rows.weights)
        losses = np.empty(len(kept))
        for some, scores in self._computed.scores_of_draws(rows.X[kept]):
            targets = rows.targets[..., kept[some]]
            if self._several:
                own = targets.argmax(axis=0)[None, None]
                logs = np.take_along_axis(log_softmax(scores, axis=0), own, 0)[0]
            else:
                logs = log_expit(np.where(targets, scores, -scores))
            losses[some] = left_out_log_losses(logs, weights[some])
        return weights * losses

    def _projected(self, X):
        return expit(self._log_odds(X)), True

    def _check_temperature(self, rows):
        """Raise ValueError where "pac" has no certificate."""
        if self.inverse_temperature != "pac":
            return
        if rows.targets.ndim == 2:
            raise ValueError(
                "inverse_temperature='pac' needs two classes, got "
                f"{len(rows.targets)}: use 'likelihood', or OneVsRestClassifier."
            )
        if self._has_given_pairs:
            raise ValueError(
                "interactions needs inverse_temperature='likelihood' or a number, got "
                "'pac', under which the prior must not depend on the rows."
            )

    def _slab_variance(self, problem, exponents, rng):
        """Return the prior variance of a coefficient; None if the chains draw it."""
        if self.slab_scale != "auto":
            return self.slab_scale**2
        if problem.targets.ndim == 2:
            return None
        if self.inverse_temperature == "pac":
            return 1.0
        pilot = self._chain(problem, exponents, 1.0, rng.spawn(1)[0])
        return most_probable_slab(pilot, min(PILOT_SWEEPS, self.n_iter)) ** 2

    def _likelihood(self, rows):
        """Return the inverse temperature, and the exponents of the rows."""
        total = rows.weights.sum()
        temperature = self._temperature(total)
        return temperature, rows.weights * (temperature / total)

    def _temperature(self, total):
        """Return the inverse temperature for a total weight of the rows."""
        if self.inverse_temperature == "likelihood":
            return float(total)
        if self.inverse_temperature == "pac":
            return self.gamma * total / math.log1p(math.exp(self.score_bound))
        return float(self.inverse_temperature)

    def _bounded(self, scores):
        """Clip scores under "pac"."""
        if self.inverse_temperature != "pac":
            return scores
        return scores.clip(-self.score_bound, self.score_bound)

    def _loss(self, X, positive, bound=np.inf):
        """Return the mean log loss of the draws, with scores clipped to a bound."""
        total = 0.0
        for rows, scores in self._answer().scores_of_draws(X):
            margins = np.where(positive[rows], scores, -scores).clip(-bound, bound)
            total += np.logaddexp(0.0, -margins).mean(axis=0).sum()
        return float(total / len(X))

    def _certified_risk(self, rows, problem, prior):
        """Return the terms of the certificate that depend on the rows of the fit."""
        found = self._answer()
        loss = self._loss(rows.X, rows.targets)
        exponents = np.full(len(rows.X), found.inverse_temperature / len(rows.X))

        def log_evidence(design):
            return logistic_normal_of(problem, design, 1 / prior.ridge, exponents)[0]

        return {
            "observed": self._loss(rows.X, rows.targets, bound=self.score_bound),
            "divergence": divergence_of(
                problem,
                found.posterior,
                prior,
                self.beta,
                found.inverse_temperature,
                loss,
                log_evidence,
            ),
            "count": len(rows.X),
        }


def bernoulli_variances(means):
    """Return the variances of indicators of given means."""
    return means * (1 - means)


def logistic_normal_of(problem, design, variance, exponents):
    """Return the normal approximation of a logistic posterior, given its design."""
    variances = np.full(len(design), variance)
    variances[0] = INTERCEPT_VARIANCE
    return logistic_normal(design, problem.targets, exponents, variances)


def log_odds_of_mean(scores):
    """Return the log odds of the mean over draws of the logistic function of scores."""
    tails = np.exp(-np.abs(scores))
    near, far = 1 / (1 + tails), tails / (1 + tails)
    positive = np.where(scores > 0, near, far).sum(axis=0)
    negative = np.where(scores > 0, far, near).sum(axis=0)
    extreme = np.minimum(positive, negative) < SMALLEST
    with np.errstate(divide="ignore"):
        log_odds = np.log(positive) - np.log(negative)
    if extreme.any():
        log_expits = log_expit(scores[:, extreme]), log_expit(-scores[:, extreme])
        positive, negative = (logsumexp(each, axis=0) for each in log_expits)
        log_odds[extreme] = positive - negative
    return log_odds
