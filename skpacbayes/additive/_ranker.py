"""Sparse additive ranking of two classes by a Gibbs posterior."""

import math

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from .._base import fit_context
from .._compat import StrOptions
from ..certificates import Certificate
from ._base import POSITIVE, SCALE
from ._certificates import catoni_terms, ranking_divergence
from ._ranker_chain import Misranked, PairwiseLogistic, RankingChain
from ._two_classes import _TwoClassAdditiveGibbs

TARGETS = {"auc": Misranked, "pairwise_logistic": PairwiseLogistic}
N_PILOT = 300  # draws of the classifier's chain that say how much the loss weighs
N_BURN_IN = 100  # sweeps of a chain of the classifier before they count
ROUNDING = 1e-12  # of a sum of weights


class SparseAdditiveGibbsRanker(_TwoClassAdditiveGibbs):
    """Sparse additive ranking of two classes by a Gibbs posterior.

    A score orders the rows, so that those of the second class come first: a sum of
    functions of a few variables, as in :class:`SparseAdditiveGibbsClassifier`, but the
    loss is what counts, the share of pairs in the wrong order, 1 - AUC. It does not
    care how far apart scores are, so that no row can outweigh the others, and the score
    is no log odds.

    Where a logistic model is right it knows more about the order than the ranks do:
    the classifier is then a little better.

    Parameters
    ----------
    loss : {"auc", "pairwise_logistic"}, default="auc"
        "auc": a pair in the wrong order costs 1, a tie one half. "pairwise_logistic":
        a pair costs the logistic loss of the difference of its scores.
    basis : {"legendre", "cosine", "fourier", "spline"} or transformer, \
            default="legendre"
        Functions of one variable, from smooth to rough: of a model the first ones of
        each variable are used. A transformer of one column may take their place.
    max_order : int, default=8
        Number of functions of a variable.
    feature_range : tuple of two floats or of two array-likes, default=None
        Ends of the range of each feature, mapped to [-1, 1]; None for those of the rows
        of `fit`, at most ten interquartile ranges beyond the quartiles. Beyond its
        range a feature counts as at its end.
    beta : float in (0, 1), default=0.4
        Each function multiplies the prior of a model by beta. Directions, which are all
        that matters to the AUC, cost a further function less than coefficients do:
        where there is little to find, beta is nearly all that keeps functions out.
    slab_scale : float, default=1.0
        Prior standard deviation of the coefficient of a function of variance 1, for
        "pairwise_logistic" and for the pseudo-priors.
    inverse_temperature : {"auto", "pac"} or float, default="auto"
        Weight of the loss. "auto": such that the loss of a logistic pilot, times it, is
        lower than that of constant scores by twice ("auc") or 1.5 times
        ("pairwise_logistic") the pilot's gain in log likelihood. "pac": `gamma` times
        the smaller of the total weights of positive and negative rows, which has a
        `certificate` for "auc".
    gamma : float, default=1.0
        See above.
    n_candidates : int, default=16
        Models that each move weighs, drawn from all that are one step away; None for
        all of them.
    n_iter : int, default=1000
        Moves of each chain that count.
    burn_in : int, default=300
        Moves of each chain before these.
    n_chains : int, default=2
        Number of chains.
    max_active : int, default=None
        Largest number of variables of a model; None for 50.
    prediction : {"mean", "randomized", "map"}, default="mean"
        What predicts: the posterior mean; one draw; or the mean within the model that
        was drawn most often.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int, default=None
        Threads for the chains.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes.
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Probability that each variable is in the model.
    expected_orders_ : ndarray of shape (n_features,)
        Posterior mean of the number of functions of each variable.
    coef_ : ndarray of shape (n_features, max_order)
        Coefficients of the functions, as `prediction` says.
    intercept_ : float
        Minus the score at which rows are called negative or positive.
    models_ : ndarray of shape (n_models, n_features)
        Orders of the variables in each model that was drawn, the most frequent first.
    model_weights_ : ndarray of shape (n_models,)
        How often it was drawn, as a share.
    inverse_temperature_ : float
        Inverse temperature.
    acceptance_rate_ : float
        Share of the moves to other models that were accepted.
    r_hat_ : float
        Largest potential scale reduction of the chains: of the risk, and of what is in
        the model with a probability between .05 and .95.
    feature_ranges_ : ndarray of shape (n_features, 2)
        Range of each feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had some.

    See Also
    --------
    SparseAdditiveGibbsClassifier : Probabilities, not ranks alone.
    sklearn.calibration.CalibratedClassifierCV : Makes probabilities of the scores.

    Notes
    -----
    The posterior is proportional to exp(-lambda R(f)) pi(f), with R the mean loss over
    pairs of a positive and a negative row [2]_. Only as many pairs share no row as
    there are rows of the rarer class: that is the size of the sample. The AUC falls
    linearly from that of constant scores, and is flat at its best: a weight of the loss
    that serves near the best overfits where there is nothing to find. Hence "auto"
    looks at how much there is to find.

    The prior of models is that of the classifier. For the AUC only the direction of the
    coefficients matters: all are equally likely, and the coefficients have length 1.

    The risk is not smooth, so that nothing can be integrated out. The chains are those
    of Algorithm 7 of [1]_: a move gives each of its candidates, models with a variable
    more or less, another order, or a variable swapped, coefficients from a
    pseudo-prior, draws one by its weight, and accepts by a ratio of sums of weights;
    that printed there, of weights, is wrong. The pseudo-priors are Laplace's
    approximations to the logistic posterior of each model, one Newton step from a
    pilot's scores, their spread chosen once by the effective number of the weights. The
    pilot is a variational approximation to the classifier. A candidate costs n log n
    (for "auc"), or the number of pairs, each of them a logarithm where every row has
    another weight.

    `certificate` bounds 1 - AUC of a score drawn from the posterior by Catoni's theorem
    on pairs, by Hoeffding's decomposition. Chains, not exact draws, stand behind the
    observed risk in it, and Monte Carlo weights behind the divergence.

    A pair weighs the product of its rows' weights: a row of weight two is a row
    repeated, with the same random numbers.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet (2015). On some
       recent advances on high dimensional Bayesian statistics. ESAIM: Proceedings and
       Surveys, Section 5.
    .. [2] B. Guedj and S. Robbiano (2018). PAC-Bayesian high dimensional bipartite
       ranking. Journal of Statistical Planning and Inference 196.

    Examples
    --------
    One of ten variables orders the rows, and not monotonically:

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
        **_TwoClassAdditiveGibbs._parameter_constraints,
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
        beta=1 / 3,
        slab_scale=1.0,
        inverse_temperature="auto",
        gamma=1.0,
        n_iter=1000,
        burn_in=200,
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
            Rows.
        y : array-like of shape (n_samples,)
            Labels, of two classes: rows of the second should come first.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row: a row of weight 2 counts as two, one of weight 0 is
            absent. A pair has the product of its rows' weights.

        Returns
        -------
        self : SparseAdditiveGibbsRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            If there are not two classes, or X or a weight is not valid.
        """
        rows = self._two_classes(X, y, sample_weight)
        problem = self._problem(rows)
        rng = self._generator()
        target = TARGETS[self.loss](
            rows.positive, rows.weights, self._variance_of_slab()
        )
        pilot = self._chain(problem, rows.weights, target.variance, rng)
        matched = matched_temperature(pilot, target)
        temperature = self._temperature(matched, rows)
        exponents = rows.weights * (temperature / matched)
        chains = []
        for seed in rng.spawn(self.n_chains):
            proposal = self._chain(problem, exponents, target.variance, seed)
            proposal.advance(N_BURN_IN, keep=False)
            chains.append(RankingChain(proposal, target, temperature))
        self._run(chains)
        most = chains[0].prior.most
        self._threshold = 0.0
        self._computed = self._fitted(problem, most, chains, temperature, rng)
        scores = self._log_odds(rows.X)
        self._threshold = balanced_threshold(scores, rows.positive, rows.weights)
        self._risk = None
        equal = np.ptp(rows.weights) == 0
        if self.inverse_temperature == "pac" and self.loss == "auc" and equal:
            self._risk = self._certified_risk(problem, target, chains, exponents)
        self._warn_of(self._computed)
        return self

    def decision_function(self, X):
        """Score rows: larger values favour the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores, positive for as many rows of `fit` as were of the second class. With
            `prediction="mean"` the log odds of a mean over the draws: each draw gives
            a probability, by a logistic function of its score.
        """
        check_is_fitted(self)
        return self._log_odds(self._rows(X)) - self._threshold

    def score(self, X, y, sample_weight=None):
        """Area under the ROC curve.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        auc : float
            Share of the pairs of a positive and a negative row that are in order.
        """
        scores = self.decision_function(X)
        return roc_auc_score(y, scores, sample_weight=sample_weight)

    def certificate(self, X=None, y=None, *, confidence=0.95):
        """Bound the AUC's shortfall on new rows, under `inverse_temperature="pac"`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows on which the shortfall is observed; None for the rows of the fit.
        y : array-like of shape (n_samples,), default=None
            Their labels.
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
            With another inverse temperature, or another loss than "auc", or if rows
            have different weights.
        """
        check_is_fitted(self)
        if self._risk is None:
            raise NotImplementedError(
                "certificate needs loss='auc', inverse_temperature='pac' and rows of "
                f"equal weights, got loss={self.loss!r} and "
                f"inverse_temperature={self.inverse_temperature!r}."
            )
        terms = catoni_terms(
            **self._risk,
            inverse_temperature=self.inverse_temperature_,
            largest=1.0,
            confidence=confidence,
        )
        observed = terms["observed"]
        if X is not None:
            observed = self._shortfall(*self._labelled(X, y))
        return Certificate(
            theorem="Theorem 1.2.6 of Catoni (2007), for pairs of rows",
            observed=observed,
            bound=sum(terms.values()),
            terms=terms,
            assumptions={
                "loss of a pair within [0, 1]": True,
                "ranges of the features known before the rows": (
                    self.feature_range is not None
                ),
                "rows independent, of one distribution in each class": None,
            },
        )

    def _variance_of_slab(self):
        """Prior variance of a coefficient; to the AUC only directions matter."""
        return 1.0 if self.loss == "auc" else self.slab_scale**2

    def _temperature(self, matched, rows):
        """Inverse temperature, given the one that matches the classifier."""
        if self.inverse_temperature == "auto":
            return matched
        if self.inverse_temperature == "pac":
            positive, weights = rows.positive, rows.weights
            return self.gamma * min(weights @ positive, weights @ ~positive)
        return float(self.inverse_temperature)

    def _shortfall(self, X, positive):
        """Mean over the draws of 1 - AUC at rows."""
        if positive.all() or not positive.any():
            raise ValueError("y must have rows of both classes.")
        scores = [scores for _, scores in self._scores_of_draws(X)]
        target = Misranked(positive, np.ones(len(X)), 1.0)
        return float(target.risk(np.concatenate(scores, axis=1)).mean())

    def _certified_risk(self, problem, target, chains, exponents):
        """Return what the certificate reads of the rows of the fit."""
        found = self._answer()
        risk = float(np.mean([draw.loss for chain in chains for draw in chain.kept]))
        n_positive = int(problem.positive.sum())
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
            "count": min(n_positive, len(problem.positive) - n_positive),
        }


def matched_temperature(chain, target):
    """Weight of a risk at which its posterior is closest to the classifier's.

    The slope of the log likelihood on minus the risk, over draws of the classifier's
    posterior, by least squares: it minimises the variance of the log ratio of the two
    densities. The square root of the weight of the rows where no draw ranks better
    than another.

    Parameters
    ----------
    chain : LogisticChain
        A chain of the classifier, at its start.
    target : RankingTarget
        Gives the risk.
    """
    exponents = chain.weights
    chain.advance(N_BURN_IN, keep=False)
    logs, risks = np.empty((2, N_PILOT))
    for number in range(N_PILOT):
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
    """Threshold above which as much weight has its scores as the positives have.

    Halfway between two scores where their weights allow it, but for rounding.
    """
    order = np.argsort(scores)
    sums = np.cumsum(weights[order])
    below = (weights @ ~positive) * np.array([1 - ROUNDING, 1 + ROUNDING])
    ends = np.minimum(sums.searchsorted(below), len(scores) - 1)
    return scores[order[ends]].mean()
