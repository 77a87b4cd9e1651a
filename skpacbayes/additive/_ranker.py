"""Sparse additive ranking of two classes by a Gibbs posterior."""

import math
from numbers import Integral

import numpy as np
from scipy.special import log_expit, xlog1py, xlogy
from sklearn.metrics import roc_auc_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._base import fit_context
from ..certificates import Certificate
from ._base import POSITIVE, SCALE
from ._binary import _BinaryAdditiveGibbs
from ._bound import catoni_terms, log_prior_mass
from ._chain import log_binomial
from ._pilot import logistic_pilot
from ._ranking import Misranked, PairwiseLogistic, RankingChain
from ._walk import Neighbourhoods

LAWS = {"auc": Misranked, "pairwise_logistic": PairwiseLogistic}
# "auto": how much the tempered loss gains by the pilot's scores, in units of what the
# log likelihood does. The AUC is flatter near its best than the likelihood.
GAINS = {"auc": 2.0, "pairwise_logistic": 1.5}
LEAST_LIKELIHOOD, LEAST_GAIN = 0.5, 0.05  # where the pilot has found nothing
MOST_MODELS = 50  # whose evidence goes into the certificate
N_EVIDENCE = 400  # draws for each
ROUNDING = 1e-12  # of a sum of weights


class SparseAdditiveGibbsRanker(_BinaryAdditiveGibbs):
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
        "loss": [StrOptions(set(LAWS))],
        **_BinaryAdditiveGibbs._parameter_constraints,
        "slab_scale": [SCALE],
        "inverse_temperature": [StrOptions({"auto", "pac"}), SCALE],
        "gamma": [POSITIVE],
        "n_candidates": [None, Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        loss="auc",
        *,
        basis="legendre",
        max_order=8,
        feature_range=None,
        beta=0.4,
        slab_scale=1.0,
        inverse_temperature="auto",
        gamma=1.0,
        n_candidates=16,
        n_iter=1000,
        burn_in=300,
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
        self.n_candidates = n_candidates
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
        with self._all_or_nothing(keep=lambda value: value):
            rows, positive = self._two_classes(X, y, sample_weight)
            problem = self._problem(rows, positive)
            ranks = problem.functions.orders
            prior = self._prior(ranks, self.slab_scale**2)
            rng = self._generator()
            law, model = self._law(problem, prior, rng)
            neighbourhoods = Neighbourhoods(ranks, prior.most, self.n_candidates)
            chains = [
                RankingChain(law, neighbourhoods, model, seed)
                for seed in rng.spawn(self.n_chains)
            ]
            drawn = self._advanced(chains, self.burn_in, self.n_iter)
            temperature = law.inverse_temperature
            found = self._published(problem, prior, drawn, temperature, rng)
            self._result = found
            scores = self._decision(rows.X)
            threshold = balanced_threshold(scores, positive, rows.weights)
            self._result = found._replace(intercept=found.intercept - threshold)
            self._risk = None
            if self.inverse_temperature == "pac" and self.loss == "auc":
                self._risk = self._certified_risk(law, problem, prior, drawn, rng)
            self._warn_of(self._result)
        return self

    def decision_function(self, X):
        """Score rows: the higher, the rather of the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Posterior mean of the score with `prediction="mean"`. Only their order was
            learnt; their zero is such that it calls as many rows of `fit` positive as
            there were.
        """
        check_is_fitted(self)
        return self._decision(self._rows(X))

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

    def certificate(self, confidence=0.95):
        """Bound the AUC's shortfall on new rows, under `inverse_temperature="pac"`.

        Parameters
        ----------
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
                'A certificate exists for loss="auc", inverse_temperature="pac" and '
                "rows of equal weights."
            )
        terms = catoni_terms(
            **self._risk,
            inverse_temperature=self.inverse_temperature_,
            largest=1.0,
            confidence=confidence,
        )
        return Certificate(
            theorem="Theorem 1.2.6 of Catoni (2007), for pairs of rows",
            observed=terms["observed"],
            bound=sum(terms.values()),
            terms=terms,
            assumptions={
                "loss of a pair within [0, 1]": True,
                "ranges of the features known before the rows": (
                    self.feature_range is not None
                ),
                "rows independent, of one law in each class": None,
            },
        )

    def _law(self, problem, prior, rng):
        """Return the target, with its pseudo-priors, and a model to start from."""
        positive, ranks = problem.positive, problem.functions.orders
        variance = self.slab_scale**2
        scores, orders = logistic_pilot(problem, prior)
        inside = np.flatnonzero(orders)
        model = tuple(zip(inside.tolist(), orders[inside].tolist(), strict=True))
        n_usable = np.count_nonzero(ranks)
        log_beta = math.log(self.beta)
        log_sizes = -log_binomial(n_usable, np.arange(prior.most + 1.0))
        law = LAWS[self.loss](
            problem.values,
            positive,
            problem.weights,
            log_prior=lambda size, total: log_sizes[size] + total * log_beta,
            variance=variance,
            scores=scores,
        )
        law.inverse_temperature = float(self._temperature(law, scores, problem))
        if model:
            law.choose_spread(model, rng)
        return law, model

    def _temperature(self, law, scores, problem):
        """Inverse temperature, given scores that a logistic model finds."""
        positive, weights = problem.positive, problem.weights
        total = weights.sum()
        if self.inverse_temperature == "pac":
            return self.gamma * min(weights @ positive, weights @ ~positive)
        if self.inverse_temperature != "auto":
            return self.inverse_temperature
        share = weights @ positive / total
        log_likelihood = weights @ log_expit(np.where(positive, scores, -scores))
        log_likelihood -= total * (xlogy(share, share) + xlog1py(1 - share, -share))
        gain = law.risk(np.zeros((1, len(scores)))) - law.risk(
            law.ordered(scores)[None]
        )
        gained = GAINS[self.loss] * max(log_likelihood, LEAST_LIKELIHOOD)
        return gained / max(float(gain[0]), LEAST_GAIN)

    def _certified_risk(self, law, problem, prior, chains, rng):
        """Return what the certificate takes from the rows; None if they have weights.

        The evidence of the models visited most, each the mean of its weights under its
        pseudo-prior, bounds the divergence from above, as in the classifier.
        """
        if np.ptp(problem.weights) > 0:
            return None
        posterior = self._result.posterior
        models, group = np.unique(posterior.orders(), axis=0, return_inverse=True)
        visits = np.bincount(group.ravel(), weights=posterior.weights)
        log_evidence = -math.inf
        for orders in models[np.argsort(-visits, kind="stable")[:MOST_MODELS]]:
            inside = np.flatnonzero(orders)
            model = tuple(zip(inside.tolist(), orders[inside].tolist(), strict=True))
            _, log_weights = law.weigh([model] * N_EVIDENCE, rng)
            largest = log_weights.max()
            log_mean = largest + math.log(np.exp(log_weights - largest).mean())
            log_evidence = np.logaddexp(log_evidence, log_mean)
        log_evidence -= log_prior_mass(problem.functions.orders, self.beta, prior.most)
        risk = float(np.mean([chain.losses for chain in chains]))
        n_positive = int(problem.positive.sum())
        return {
            "observed": risk,
            "divergence": float(-log_evidence - law.inverse_temperature * risk),
            "count": min(n_positive, len(problem.positive) - n_positive),
        }


def balanced_threshold(scores, positive, weights):
    """Threshold above which as much weight has its scores as the positives have.

    Halfway between two scores where their weights allow it, but for rounding.
    """
    order = np.argsort(scores)
    sums = np.cumsum(weights[order])
    below = (weights @ ~positive) * np.array([1 - ROUNDING, 1 + ROUNDING])
    ends = np.minimum(sums.searchsorted(below), len(scores) - 1)
    return scores[order[ends]].mean()
