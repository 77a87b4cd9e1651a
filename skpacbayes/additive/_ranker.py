"""Sparse additive ranking of two classes by a Gibbs posterior."""

import math
from numbers import Integral

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._base import fit_context
from ..certificates import Certificate
from ._base import POSITIVE
from ._binary import _BinaryAdditiveGibbs
from ._bound import catoni_terms, log_prior_mass
from ._chain import Prior, log_binomial
from ._logistic import Drawn, LogisticChain
from ._ranking import Misranked, PairwiseLogistic
from ._walk import Neighbourhoods, State, step

LAWS = {"auc": Misranked, "pairwise_logistic": PairwiseLogistic}
# Inverse temperature for each pair of rows, a positive and a negative one, that share
# no row with another pair: there are min(n_positive, n_negative).
TEMPERATURES = {"auc": 4.0, "pairwise_logistic": 2.0}
PILOT_SWEEPS = 40  # of the logistic chain whose scores make the pseudo-priors
PILOT_BETA = 0.5
N_WANDER = 2  # moves of the coefficients within a model, after each move
RATE = 0.3  # of acceptance, at which their step aims
MOST_MODELS = 50  # whose evidence goes into the certificate
N_EVIDENCE = 400  # draws for each


class RankingChain:
    """One walk over models and coefficients.

    Parameters
    ----------
    law : RankingLaw
        The target, and the pseudo-priors.
    neighbourhoods : Neighbourhoods
        The moves.
    model : tuple of pairs
        The first model.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, law, neighbourhoods, model, rng):
        self.law, self.neighbourhoods, self.rng = law, neighbourhoods, rng
        draws, log_weights = law.weigh([model], rng)
        self.state = State(model, draws[0], float(log_weights[0]))
        self.draws = []
        self._step = 0.2
        self._tried = self._accepted = 0

    def advance(self, n_steps, *, recorded=True):
        """Move; while nothing is recorded, adapt the step within models."""
        for _ in range(n_steps):
            self.state, kind, accepted = step(
                self.state, self.neighbourhoods, self.law.weigh, self.rng
            )
            if kind != "stay":
                self._tried += 1
                self._accepted += accepted
            if self.state.model:
                self._wander(adapt=not recorded)
            if recorded:
                model, draw, _ = self.state
                columns = np.array(self.law.columns(model), dtype=np.int64)
                self.draws.append((columns, draw.coefficients, 0.0, draw.risk))

    def drawn(self):
        """What was recorded."""
        columns, coefficients, intercepts, losses = map(
            list, zip(*self.draws, strict=True)
        )
        return Drawn(
            columns,
            coefficients,
            intercepts,
            losses,
            losses,
            self._tried,
            self._accepted,
        )

    def _wander(self, adapt):
        """Move the coefficients within the model."""
        model, draw, log_weight = self.state
        for _ in range(N_WANDER):
            draw, accepted = self.law.wander(model, draw, self._step, self.rng)
            if accepted:
                log_weight = self.law.log_weight(model, draw)
            if adapt:
                self._step *= math.exp(0.1 * (accepted - RATE))
                self._step = min(max(self._step, 0.01), 0.95)
        self.state = State(model, draw, log_weight)


class SparseAdditiveGibbsRanker(_BinaryAdditiveGibbs):
    """XXX."""

    _parameter_constraints: dict = {
        "loss": [StrOptions(set(LAWS))],
        **_BinaryAdditiveGibbs._parameter_constraints,
        "slab_scale": [POSITIVE],
        "inverse_temperature": [StrOptions({"auto", "pac"}), POSITIVE],
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
        beta=0.05,
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
    def fit(self, X, y):
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels, of two classes: rows of the second should come first.

        Returns
        -------
        self : SparseAdditiveGibbsRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            If there are not two classes, or X is not valid.
        """
        with self._all_or_nothing(keep=lambda value: value):
            rows, positive = self._two_classes(X, y)
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
            # A row is called positive as often as rows are.
            scores = np.sort(self._decision(rows.X))
            place = len(scores) - int(positive.sum())
            threshold = 0.5 * (scores[place - 1] + scores[place])
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
            With another inverse temperature, or another loss than "auc".
        """
        check_is_fitted(self)
        if self._risk is None:
            raise NotImplementedError(
                'A certificate exists for loss="auc" and inverse_temperature="pac".'
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
        n_pairs = min(positive.sum(), len(positive) - positive.sum())
        if self.inverse_temperature == "auto":
            temperature = TEMPERATURES[self.loss] * n_pairs
        elif self.inverse_temperature == "pac":
            temperature = self.gamma * n_pairs
        else:
            temperature = self.inverse_temperature
        variance = self.slab_scale**2
        pilot = LogisticChain(
            problem.values,
            positive,
            problem.weights,
            ranks,
            Prior.of(ranks, PILOT_BETA, prior.most, variance=variance),
            np.inf,
            rng,
        )
        pilot.advance(PILOT_SWEEPS // 2, recorded=False)
        scores = np.zeros(len(positive))
        for _ in range(PILOT_SWEEPS // 2):
            pilot.sweep()
            scores += pilot.scores / (PILOT_SWEEPS // 2)
        model = tuple(sorted(zip(*(part.tolist() for part in pilot.model), strict=True)))
        n_usable = np.count_nonzero(ranks)
        log_beta = math.log(self.beta)
        log_sizes = -log_binomial(n_usable, np.arange(prior.most + 1.0))
        law = LAWS[self.loss](
            problem.values,
            positive,
            log_prior=lambda size, total: log_sizes[size] + total * log_beta,
            variance=variance,
            inverse_temperature=float(temperature),
            scores=scores,
        )
        if model:
            law.choose_spread(model, rng)
        return law, model

    def _certified_risk(self, law, problem, prior, chains, rng):
        """What the certificate takes from the rows.

        The evidence of the models visited most, each the mean of its weights under its
        pseudo-prior, bounds the divergence from above, as in the classifier.
        """
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
