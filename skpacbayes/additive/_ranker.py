"""Sparse additive ranking of two classes by a Gibbs posterior."""

import math

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._base import as_fitted, fit_context
from .._compat import StrOptions
from .._stream import checked_weights
from .._validation import refuse_missing_labels
from ..certificates.additive import certify_classifier, divergence_of
from ._base import POSITIVE, SCALE
from ._classifier import _AdditiveGibbsClassifier, logistic_normal_of
from ._doubts import warn_of_fit
from ._ranker_chain import Misranked, PairwiseLogistic, RankingChain

TARGETS = {"auc": Misranked, "pairwise_logistic": PairwiseLogistic}
# Largest numbers of draws of the classifier's chains that estimate the inverse
# temperature, and of burn-in sweeps: at most those of the ranker.
N_MATCHED, N_BURN_IN = 300, 100
ROUNDING = 1e-12  # of a sum of weights
# Of the certificate: models whose evidence is summed; draws of their coefficients.
MOST_MODELS, N_DRAWS = 50, 400


class SparseAdditiveGibbsRanker(_AdditiveGibbsClassifier):
    """Additive ranking of two classes, with few variables, by a Gibbs posterior.

    A score ranks the rows of the second class above those of the first. As in
    :class:`SparseAdditiveGibbsClassifier` it is a sum of functions of a few variables,
    but the loss is that of pairs of a row of each class: 1 - AUC, or its logistic
    surrogate. Neither depends on the class frequencies.

    Parameters
    ----------
    loss : {"auc", "pairwise_logistic"}, default="pairwise_logistic"
        Loss of a pair. "pairwise_logistic": the logistic loss of the difference of its
        scores. "auc": 1 if the pair is in the wrong order, 1/2 for a tie; the chains
        mix slowly if nearly all pairs are in order, and there is a `certificate`.
    basis : {"legendre", "cosine", "fourier", "spline"} or transformer, \
            default="legendre"
        Functions of one variable, from smooth to rough. A model of order k in a
        variable uses its first k functions. A transformer of one column may be given
        instead.
    max_order : int, default=8
        Largest number of functions of each variable.
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
        Each function multiplies the prior of a model by beta: a smaller value selects
        fewer variables.
    slab_scale : float, default=1.0
        Prior standard deviation of a coefficient under "pairwise_logistic"; the k-th
        function of a variable has standard deviation 1 / k. Not used under "auc", where
        only the direction of the coefficients matters.
    inverse_temperature : {"auto", "pac"} or float, default="auto"
        lambda, the weight of the mean loss. "auto": the value at which the posterior is
        closest to that of the classifier (see Notes). "pac": `gamma` times the smaller
        of the total weights of positive and negative rows; it has a `certificate` for
        "auc".
    gamma : float, default=1.0
        Factor of "pac"; see `inverse_temperature`.
    n_iter : int, default=500
        Number of iterations of each chain that are kept. Each proposes forty moves
        between models, and new coefficients.
    burn_in : int, default=100
        Number of iterations of each chain that are dropped before `n_iter` are kept.
    n_chains : int, default=2
        Number of chains, each with its own start.
    max_active : int, default=None
        Largest number of variables in a model. None: 50.
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
    classes_ : ndarray of shape (2,)
        The classes.
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Probability that each variable is in the model.
    feature_importances_ : ndarray of shape (n_features,)
        Equal to `inclusion_probabilities_`; used by `SelectFromModel`.
    inclusion_errors_ : ndarray of shape (n_features,)
        Monte Carlo standard errors of these probabilities.
    expected_orders_ : ndarray of shape (n_features,)
        Posterior mean of the number of functions of each variable.
    coefficients_ : ndarray of shape (n_features, n_functions)
        Coefficients of the functions, as `prediction` says. The k-th function of a
        variable has standard deviation 1 / k over the rows.
    intercept_ : float
        Score where all effects are 0, as `prediction` says.
    models_ : ndarray of shape (n_models, n_features)
        Order (number of functions) of each variable in each model that was drawn, the
        most frequent model first.
    model_weights_ : ndarray of shape (n_models,)
        Relative frequency of each model among the draws.
    inverse_temperature_ : float
        Inverse temperature.
    acceptance_rate_ : float
        Share of the proposals that were accepted.
    r_hat_ : float
        Largest R-hat of the chains: of the risk, and of the presence of each variable
        whose inclusion probability is between 0.05 and 0.95.
    feature_ranges_ : ndarray of shape (n_features, 2)
        Range of each feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    SparseAdditiveGibbsClassifier : Also predicts probabilities.
    sklearn.calibration.CalibratedClassifierCV : Converts scores to probabilities.

    Notes
    -----
    The posterior is proportional to exp(-lambda R(f)) pi(f), with R the mean loss over
    pairs of a positive and a negative row [2]_. The prior of models and of coefficients
    is that of the classifier; for the AUC only the direction of the coefficients
    matters, and all directions are equally likely.

    The proposals are moves of the classifier's chain; each is accepted or rejected, so
    that the chain samples the ranker's posterior [3]_. If few are accepted, variables
    are updated in blocks, whose number is chosen during the burn-in. A ranking does not
    determine the intercept and, for the AUC, the norm of the coefficients; these have
    the normal distribution that approximates their logistic posterior given the rest.
    So each draw is a logistic model, and predictions average the probabilities of the
    draws.

    "auto" estimates the inverse temperature from 300 draws of the classifier: it is the
    least-squares slope of the log-likelihood on minus the risk. At this value the
    variance of the log ratio of the two posteriors is least, and most moves are
    accepted. With another value the likelihood of the proposals is tempered by the
    ratio of the two values.

    Under "auc" the two posteriors differ more. There, an iteration also moves between
    models and directions without the classifier, by elliptical slice sampling [4]_ and
    by adding, deleting and exchanging variables; the classifier proposes in every other
    iteration only. On halves of the breast cancer data `r_hat_` is 1.03 to 1.07 (`fit`
    warns above 1.1). If few variables order nearly all pairs, "auc" selects these
    alone: 4 pixels instead of 16 to 21 for digits 3 and 8. In four splits into
    halves, AUC on the other half is 0.998 to 1.000, and the classifier's is 0.9996 to
    1.000. The time of an iteration is proportional to the number of pairs under the
    logistic loss, and to n log n under "auc".

    `certificate` bounds 1 - AUC of a score drawn from the posterior, by Catoni's
    theorem for pairs (Hoeffding's decomposition). Its observed risk is estimated by the
    chains, not by exact draws, and its divergence by Monte Carlo weights.

    The weight of a pair is the product of its rows' weights: repeated rows have the
    same posterior as rows of weight two, though not the same random numbers.

    A variable with missing values (NaN) has one more function, its first: the indicator
    that it is missing.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet (2015). On some
       recent advances on high dimensional Bayesian statistics. ESAIM: Proceedings and
       Surveys, Section 5.
    .. [2] B. Guedj and S. Robbiano (2018). PAC-Bayesian high dimensional bipartite
       ranking. Journal of Statistical Planning and Inference 196.
    .. [3] J. S. Liu (2001). Monte Carlo Strategies in Scientific Computing, Section
       9.4.3.
    .. [4] I. Murray, R. P. Adams and D. J. C. MacKay (2010). Elliptical slice sampling.
       AISTATS.

    Examples
    --------
    One of ten variables ranks the rows, with a non-monotone effect:

    >>> import numpy as np
    >>> from skpacbayes.additive import SparseAdditiveGibbsRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 10))
    >>> y = rng.random(200) < np.where(np.abs(X[:, 3]) < 0.5, 0.1, 0.7)
    >>> ranker = SparseAdditiveGibbsRanker(random_state=0).fit(X, y)
    >>> ranker.get_support(indices=True)
    array([3])
    >>> print(f"{ranker.score(X, y):.2f}")
    0.8...
    """

    _parameter_constraints: dict = {
        "loss": [StrOptions(set(TARGETS))],
        **_AdditiveGibbsClassifier._parameter_constraints,
        "slab_scale": [SCALE],
        "inverse_temperature": [StrOptions({"auto", "pac"}), SCALE],
        "gamma": [POSITIVE],
    }

    def __init__(
        self,
        loss="pairwise_logistic",
        *,
        basis="legendre",
        max_order=8,
        feature_range=None,
        categorical_features=None,
        beta=0.5,
        slab_scale=1.0,
        inverse_temperature="auto",
        gamma=1.0,
        n_iter=500,
        burn_in=100,
        n_chains=2,
        max_active=None,
        prediction="mean",
        random_state=None,
        n_jobs=None,
    ):
        self.loss = loss
        self.basis = basis
        self.max_order = max_order
        self.feature_range = feature_range
        self.categorical_features = categorical_features
        self.beta = beta
        self.slab_scale = slab_scale
        self.inverse_temperature = inverse_temperature
        self.gamma = gamma
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.max_active = max_active
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
            Labels of two classes; rows of the second class should have larger scores.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows. The weight of a
            pair is the product of its rows' weights. None: 1 each.

        Returns
        -------
        self : SparseAdditiveGibbsRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            If y does not have two classes, or X or a weight is not valid.
        """
        rows = self._classes(X, y, sample_weight)
        problem = self._problem(rows)
        rng = self._generator()
        target = TARGETS[self.loss](
            rows.targets, rows.weights, self._variance_of_slab()
        )
        proposals = [
            self._chain(problem, rows.weights, target.variance, seed)
            for seed in rng.spawn(self.n_chains)
        ]
        for proposal in proposals:
            proposal.advance(min(N_BURN_IN, self.burn_in), keep=False)
        matched = matched_temperature(proposals, target, min(N_MATCHED, self.n_iter))
        temperature = self._temperature(matched, rows)
        exponents = rows.weights * (temperature / matched)
        chains = []
        for proposal in proposals:
            proposal.temper(exponents)
            chains.append(RankingChain(proposal, target, temperature))
        self._run(chains, self._parts)
        found = self._computed = self._fitted(problem, chains, temperature, rng)
        scores = self._log_odds(rows.X)
        threshold = balanced_threshold(scores, rows.targets, rows.weights)
        self._computed = found._replace(
            intercept=found.intercept - threshold, threshold=threshold
        )
        self._risk = None
        equal = np.ptp(rows.weights) == 0
        if self.inverse_temperature == "pac" and self.loss == "auc" and equal:
            self._risk = self._certified_risk(problem, target, chains, exponents)
        warn_of_fit(self, rows, sample_weight, problem.among)
        return self

    @as_fitted
    def decision_function(self, X):
        """Return the scores of rows; larger values favour the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores, shifted so that as many rows of `fit` have positive scores as are of
            the second class. With `prediction="mean"` the score is the log odds of the
            mean over draws of the logistic function of their scores.
        """
        scores = self._log_odds(self._new_rows(X))
        if self.prediction == "mean":
            return scores - self._answer().threshold
        return scores  # the intercept of the one function has it

    def predict(self, X):
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The second class where `decision_function` is positive.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def score(self, X, y, sample_weight=None):
        """Return the area under the ROC curve.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        auc : float
            Share of the pairs of a positive and a negative row in the right order.

        Raises
        ------
        ValueError
            If X is not valid, or a label is missing or not among the classes.
        """
        scores = self.decision_function(X)
        refuse_missing_labels("y", y)
        self._refuse_unknown(
            y
        )  # the AUC would take their order for that of the classes
        weights = checked_weights(sample_weight, scores, some=True)
        return roc_auc_score(y, scores, sample_weight=weights)

    @as_fitted
    def certificate(self, X=None, y=None, *, confidence=0.95):
        """Bound 1 - AUC on new rows, under `inverse_temperature="pac"`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows on which 1 - AUC is computed. None: the rows of the fit.
        y : array-like of shape (n_samples,), default=None
            Labels of the new rows.
        confidence : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        certificate : Certificate
            Theorem 1.2.6 of Catoni (2007), on pairs by Hoeffding's decomposition, for
            1 - AUC of a score drawn from the posterior, in expectation.

        Raises
        ------
        NotImplementedError
            Unless `inverse_temperature="pac"`, `loss="auc"` and all rows have equal
            weights.
        """
        check_is_fitted(self)
        check_share("confidence", confidence)
        if self._risk is None:
            raise NotImplementedError(
                "certificate needs loss='auc', inverse_temperature='pac' and rows of "
                f"equal weights, got loss={self.loss!r} and "
                f"inverse_temperature={self.inverse_temperature!r}."
            )
        observed = None
        if X is not None:
            observed = self._shortfall(*self._labelled(X, y))
        risk = (
            "Theorem 1.2.6 of Catoni (2007), for pairs of rows",
            "mean of 1 - AUC",
            "loss of a pair within [0, 1]",
            "rows independent, of one distribution in each class",
        )
        return certify_classifier(self, risk, 1.0, confidence, observed)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _variance_of_slab(self):
        """Return the prior variance of a coefficient, which the AUC does not use."""
        return 1.0 if self.loss == "auc" else self.slab_scale**2

    def _temperature(self, matched, rows):
        """Return the inverse temperature, given the one that matches the classifier."""
        if self.inverse_temperature == "auto":
            return matched
        if self.inverse_temperature == "pac":
            positive, weights = rows.targets, rows.weights
            return self.gamma * min(weights @ positive, weights @ ~positive)
        return float(self.inverse_temperature)

    def _shortfall(self, X, positive):
        """Return the mean over draws of 1 - AUC at rows."""
        if positive.all() or not positive.any():
            raise ValueError("y must have rows of both classes.")
        scores = [scores for _, scores in self._answer().scores_of_draws(X)]
        target = Misranked(positive, np.ones(len(X)), 1.0)
        return float(target.risk(np.concatenate(scores, axis=1)).mean())

    def _certified_risk(self, problem, target, chains, exponents):
        """Return the terms of the certificate that depend on the rows of the fit."""
        found = self._answer()
        risk = float(np.mean([draw.loss for chain in chains for draw in chain.kept]))
        n_positive = int(problem.targets.sum())
        return {
            "observed": risk,
            "divergence": ranking_divergence(
                problem,
                found.posterior,
                chains[0].prior,
                self.beta,
                found.inverse_temperature,
                risk,
                target,
                exponents,
            ),
            "count": min(n_positive, len(problem.targets) - n_positive),
        }


def ranking_divergence(
    problem, posterior, prior, beta, inverse_temperature, risk, target, exponents
):
    """Return an upper bound on the divergence of the posterior.

    The evidence of a model is the mean of the weights of draws from a normal
    approximation to its logistic posterior.

    Parameters
    ----------
    problem, posterior, prior, beta, inverse_temperature, risk
        See :func:`divergence_of`.
    target : RankingTarget
        Computes the risks.
    exponents : ndarray of shape (n_samples,)
        Exponents of the rows in the logistic likelihood.
    """
    rng = np.random.default_rng(0)

    def log_evidence(design):
        _, mean, factor = logistic_normal_of(
            problem, design, target.variance, exponents
        )
        # Of the coefficients alone: the intercept, in the first row, is integrated out.
        design, mean, factor = design[1:], mean[1:], factor[1:, 1:]
        normal = rng.standard_normal((len(mean), N_DRAWS))
        drawn = mean[:, None] + solve_triangular(factor, normal, lower=True, trans=1)
        log_weights = -inverse_temperature * target.risk(drawn.T @ design)
        log_weights += 0.5 * (normal**2).sum(axis=0) - np.log(np.diag(factor)).sum()
        log_weights -= 0.5 * (drawn**2).sum(axis=0) / target.variance
        log_weights -= 0.5 * len(mean) * math.log(target.variance)
        return np.logaddexp.reduce(log_weights) - math.log(N_DRAWS)

    return divergence_of(
        problem,
        posterior,
        prior,
        beta,
        inverse_temperature,
        risk,
        log_evidence,
        most_models=MOST_MODELS,
    )


def matched_temperature(chains, target, n_draws):
    """Return the weight of a risk whose posterior is closest to the classifier's.

    It is the least-squares slope of the log-likelihood on minus the risk, over draws of
    the classifier's posterior, which minimises the variance of the log ratio of the two
    densities. If all draws have the same risk, it is the square root of the total
    weight.

    Parameters
    ----------
    chains : list of LogisticChain
        Chains of the classifier.
    target : RankingTarget
        Computes the risk.
    n_draws : int
        Total number of draws of all chains.
    """
    exponents = chains[0].weights
    logs, risks = np.empty((2, n_draws))
    for number in range(n_draws):
        chain = chains[number % len(chains)]
        chain.sweep()
        logs[number] = target.log_evidence(chain.draw, chain.effects, exponents)
        risks[number] = target.risk(chain.effects[None])[0]
    risks -= risks.mean()
    if risks @ risks > 0:
        slope = -float(risks @ logs / (risks @ risks))
        if slope > 0:
            return slope
    return math.sqrt(exponents.sum())


def balanced_threshold(scores, positive, weights):
    """Return the threshold exceeded by as much weight as the positives have.

    It is halfway between two scores if their weights allow it, up to rounding.
    """
    order = np.argsort(scores)
    sums = np.cumsum(weights[order])
    below = (weights @ ~positive) * np.array([1 - ROUNDING, 1 + ROUNDING])
    ends = np.minimum(sums.searchsorted(below), len(scores) - 1)
    return scores[order[ends]].mean()
