"""Sparse additive logistic classification by a Gibbs posterior."""

import math
from numbers import Real

import numpy as np
from scipy.special import expit, log_expit, logsumexp
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._base import fit_context
from ..certificates import Certificate
from ._base import POSITIVE
from ._binary import _BinaryAdditiveGibbs
from ._bound import catoni_terms, log_logistic_evidence, log_prior_mass
from ._logistic import INTERCEPT_VARIANCE, MOVES, LogisticChain

MOST_MODELS = 100  # whose evidence goes into the certificate


class SparseAdditiveGibbsClassifier(_BinaryAdditiveGibbs):
    """XXX."""

    _parameter_constraints: dict = {
        **_BinaryAdditiveGibbs._parameter_constraints,
        "slab_scale": [POSITIVE],
        "inverse_temperature": [StrOptions({"likelihood", "pac"}), POSITIVE],
        "gamma": [POSITIVE],
        "score_bound": [Interval(Real, 0, 100, closed="right")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        basis="legendre",
        *,
        max_order=8,
        feature_range=None,
        beta=0.5,
        slab_scale=1.0,
        inverse_temperature="likelihood",
        gamma=1.0,
        score_bound=3.0,
        class_weight=None,
        n_iter=3000,
        burn_in=1000,
        n_chains=2,
        max_active=None,
        prediction="mean",
        random_state=None,
        n_jobs=None,
    ):
        self.basis = basis
        self.max_order = max_order
        self.feature_range = feature_range
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
            Labels, of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's loss: a row of weight 2 counts as two, one of weight 0
            is absent.

        Returns
        -------
        self : SparseAdditiveGibbsClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If there are not two classes, or X or a weight is not valid.
        """
        with self._all_or_nothing(keep=lambda value: value):
            rows, positive = self._two_classes(X, y, sample_weight, self.class_weight)
            problem = self._problem(rows, positive)
            weights = problem.weights
            temperature = self._temperature(weights.sum())
            prior = self._prior(problem.functions.orders, self.slab_scale**2)
            rng = self._generator()
            chains = [
                LogisticChain(
                    problem.values,
                    positive,
                    weights * (temperature / weights.sum()),
                    problem.functions.orders,
                    prior,
                    self.score_bound,
                    seed,
                )
                for seed in rng.spawn(self.n_chains)
            ]
            n_burn_in, n_kept = (-(-n // MOVES) for n in (self.burn_in, self.n_iter))
            drawn = self._advanced(chains, n_burn_in, n_kept)
            self._result = self._published(problem, prior, drawn, temperature, rng)
            self._risk = None
            if self.inverse_temperature == "pac":
                self._risk = self._certified_risk(problem, prior, drawn)
            self._warn_of(self._result)
        return self

    def decision_function(self, X):
        """Log odds of the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_odds : ndarray of shape (n_samples,)
            Log odds of the probabilities of `predict_proba`.
        """
        check_is_fitted(self)
        X = self._rows(X)
        if self.prediction != "mean":
            return self._bounded(self._decision(X))
        log_odds = np.empty(len(X))
        for rows, scores in self._scores_of_draws(X):
            scores = self._bounded(scores)
            positive = logsumexp(log_expit(scores), axis=0)
            log_odds[rows] = positive - logsumexp(log_expit(-scores), axis=0)
        return log_odds

    def predict_proba(self, X):
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            With `prediction="mean"` the logistic function of the score, averaged over
            the posterior; else that of one function.
        """
        log_odds = self.decision_function(X)
        return expit(np.column_stack([-log_odds, log_odds]))

    def certificate(self, confidence=0.95):
        """Bound the log loss of new rows, under `inverse_temperature="pac"`.

        Parameters
        ----------
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
            With another inverse temperature, or if rows have different weights.
        """
        check_is_fitted(self)
        if self._risk is None:
            raise NotImplementedError(
                'A certificate exists for inverse_temperature="pac" and rows of equal '
                "weights."
            )
        largest = math.log1p(math.exp(self.score_bound))
        terms = catoni_terms(
            **self._risk,
            inverse_temperature=self.inverse_temperature_,
            largest=largest,
            confidence=confidence,
        )
        return Certificate(
            theorem="Theorem 1.2.6 of Catoni (2007)",
            observed=terms["observed"],
            bound=sum(terms.values()),
            terms=terms,
            assumptions={
                f"log loss at most {largest:.4g}, scores clipped": True,
                "ranges of the features known before the rows": (
                    self.feature_range is not None
                ),
                "rows independent, of one law": None,
            },
        )

    def _temperature(self, total):
        """Inverse temperature, for rows of this total weight."""
        if self.inverse_temperature == "likelihood":
            return float(total)
        if self.inverse_temperature == "pac":
            return self.gamma * total / math.log1p(math.exp(self.score_bound))
        return float(self.inverse_temperature)

    def _bounded(self, scores):
        """Clip scores, where the guarantee asks for it."""
        if self.inverse_temperature != "pac":
            return scores
        return scores.clip(-self.score_bound, self.score_bound)

    def _certified_risk(self, problem, prior, chains):
        """What the certificate takes from the rows; None if they have weights.

        The Gibbs posterior has the least sum of expected loss and divergence over
        lambda: minus the log evidence over lambda. A lower bound on the evidence, of
        the models visited most, gives an upper bound on the divergence.
        """
        weights = problem.weights
        if np.ptp(weights) > 0:
            return None
        found = self._result
        models, visits = found.posterior.orders(), found.posterior.weights
        models, group = np.unique(models, axis=0, return_inverse=True)
        visits = np.bincount(group.ravel(), weights=visits)
        models = models[np.argsort(-visits, kind="stable")[:MOST_MODELS]]
        temperature = found.inverse_temperature
        exponents = np.full(len(weights), temperature / len(weights))
        places = np.arange(problem.values.shape[1])
        log_evidence = -math.inf
        for orders in models:
            inside = problem.values[places < orders[:, None]]
            variances = np.full(len(inside) + 1, 1 / prior.ridge)
            variances[0] = INTERCEPT_VARIANCE
            design = np.vstack([np.ones(len(weights)), inside])
            log_evidence = np.logaddexp(
                log_evidence,
                prior.log_size[np.count_nonzero(orders)]
                + orders.sum() * math.log(self.beta)
                + log_logistic_evidence(design, problem.positive, exponents, variances),
            )
        log_evidence -= log_prior_mass(
            problem.functions.orders, self.beta, prior.most
        )
        loss = np.mean([chain.losses for chain in chains])
        return {
            "observed": float(np.mean([chain.bounded for chain in chains])),
            "divergence": float(-log_evidence - temperature * loss),
            "count": len(weights),
        }
