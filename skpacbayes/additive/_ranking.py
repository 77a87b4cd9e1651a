"""What a walk over models needs to rank: risks, pseudo-priors, weights."""

import math
from itertools import chain
from typing import NamedTuple

import numpy as np

from .._kernels import ranking as kernels
from ._logistic import Drawn
from ._walk import State, step

N_WANDER = 2  # moves of the coefficients within a model, after each move
RATE = 0.3  # of acceptance, at which their step aims
GRAM_BYTES = 2**24  # a larger Gram matrix is not kept: its entries are summed as needed
LARGEST = 700.0  # the exponential of such a number does not overflow


class Draw(NamedTuple):
    """Coefficients of a model, and what is known of them.

    `factor` and `center` describe the model's pseudo-prior, a normal law of precision
    LL' and mean m: the factor L, the log of its determinant, and L'm.
    """

    coefficients: np.ndarray
    risk: float
    factor: np.ndarray
    log_volume: float
    center: np.ndarray


class Draws:
    """Draws of several models, cut to the numbers of their functions when asked for."""

    def __init__(self, totals, *parts):
        self._totals, self._parts = totals, parts

    def __getitem__(self, i):
        q = self._totals[i]
        coefficients, risks, factors, log_volumes, centers = self._parts
        return Draw(
            coefficients[i, :q],
            risks[i],
            factors[i, :q, :q],
            log_volumes[i],
            centers[i, :q],
        )


class RankingLaw:
    """Gibbs posterior of a risk of scores, as weights against a pseudo-prior.

    The pseudo-prior of a model's coefficients is Laplace's approximation to the
    logistic posterior of that model, one Newton step away from scores that are the same
    for all models: a weighted least squares problem.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    positive : ndarray of bool of shape (n_samples,)
        Which rows should come first.
    weights : ndarray of shape (n_samples,)
        Weights of the rows; a pair has the product of two.
    log_prior : callable
        `log_prior(n_variables, n_functions)` of models, two arrays.
    variance : float
        Prior variance of a coefficient.
    scores : ndarray of shape (n_samples,)
        Log odds about which the logistic loss is expanded.
    inverse_temperature : float, default=1.0
        Weight of the risk.
    """

    unit = False  # whether coefficients have length 1

    def __init__(
        self,
        values,
        positive,
        weights,
        *,
        log_prior,
        variance,
        scores,
        inverse_temperature=1.0,
    ):
        _, self.max_order, n_samples = values.shape
        # Positives first; equal weights side by side: a kernel takes them together.
        self._order = order = np.lexsort((weights, ~positive))
        self._n_positive = n_positive = int(positive.sum())
        self._weights, self._total = None, float(n_positive * (~positive).sum())
        parts = np.split(weights[order], [n_positive])
        if any(np.ptp(part) > 0 for part in parts):
            self._weights = tuple(part / part.max() for part in parts)
            self._total = float(self._weights[0].sum() * self._weights[1].sum())
        self.log_prior, self.variance = log_prior, variance
        self.inverse_temperature = inverse_temperature
        probability = 0.5 + 0.5 * np.tanh(0.5 * scores)
        curvatures = weights * np.maximum(probability * (1 - probability), 1e-6)
        targets = curvatures * scores + weights * (positive - probability)
        flat = values.reshape(-1, n_samples)
        # Scores are known up to a constant; this one is the best for the pseudo-prior.
        flat = flat - (flat @ curvatures / curvatures.sum())[:, None]
        self._linear = flat @ targets
        self._flat = np.ascontiguousarray(flat[:, order])
        self._curvatures = curvatures[order]
        self._gram = np.empty((0, 0))
        if 8 * len(flat) ** 2 <= GRAM_BYTES:
            self._gram = (self._flat * self._curvatures) @ self._flat.T
        self.spread = 1.0

    def ordered(self, scores):
        """Scores of the rows in the order of the law: positives first."""
        return scores[self._order]

    def columns(self, model):
        """Numbers of a model's functions, variable by variable."""
        width = self.max_order
        numbers = [j * width + k for j, order in model for k in range(order)]
        return np.array(numbers, dtype=np.int64)

    def values(self, model):
        """Values of a model's functions, positives first."""
        return self._flat[self.columns(model)]

    def weigh(self, models, rng):
        """Draw coefficients for each model from its pseudo-prior, and weigh them.

        Returns
        -------
        draws : Draws
            The coefficients.
        log_weights : ndarray of shape (n_models,)
            Log of target over pseudo-prior.
        """
        count = len(models)
        sizes = np.fromiter(map(len, models), np.int64, count)
        numbers = chain.from_iterable(chain.from_iterable(models))
        pairs = np.fromiter(numbers, np.int64).reshape(-1, 2)
        owners = np.repeat(np.arange(count), sizes)
        totals = np.bincount(owners, pairs[:, 1], count).astype(np.int64)
        largest = totals.max()
        drawn = np.zeros((3, count, largest))
        drawn[2] = rng.standard_normal((count, largest))
        factors = np.zeros((count, largest, largest))
        log_volumes = np.empty(count)
        scores = np.zeros((count, self._flat.shape[1]))
        kernels.propose(
            (sizes, pairs, np.empty(largest, dtype=np.int64)),
            (self._gram, self._curvatures, self._linear),
            self._flat,
            (self.max_order, 1 / self.variance, self.spread, self.unit),
            drawn,
            factors,
            log_volumes,
            scores,
        )
        risks = self.risk(scores)
        draws = Draws(totals, drawn[0], risks, factors, log_volumes, drawn[1])
        return draws, self._log_weights(sizes, totals, risks, *drawn, log_volumes)

    def log_weight(self, model, draw):
        """Log of target over pseudo-prior, at a draw."""
        whitened = draw.factor.T @ draw.coefficients
        return self._log_weights(
            np.array([len(model)]),
            np.array([len(whitened)]),
            draw.risk,
            draw.coefficients[None],
            draw.center[None],
            whitened[None],
            np.array([draw.log_volume]),
        )[0]

    def choose_spread(self, model, rng, candidates=(0.5, 1.0, 2.0, 4.0, 8.0), size=200):
        """Take the factor of the pseudo-prior's variance that serves a model best.

        Best is where the weights have the largest effective number.
        """
        best = -math.inf
        for spread in candidates:
            self.spread, before = spread, self.spread
            _, log_weights = self.weigh([model] * size, rng)
            weights = np.exp(log_weights - log_weights.max())
            effective = weights.sum() ** 2 / (weights**2).sum()
            if effective > best:
                best = effective
            else:
                self.spread = before
        return best / size

    def _log_weights(self, sizes, totals, risks, *normal):
        return (
            self.log_prior(sizes, totals)
            - self.inverse_temperature * risks
            + self._log_prior_over_pseudo(totals, *normal)
        )

    def _split(self, scores):
        """Scores of the positives and of the negatives."""
        return scores[:, : self._n_positive], scores[:, self._n_positive :]


class Misranked(RankingLaw):
    """The share of pairs ranked wrongly: 1 - AUC. Only directions matter.

    The normal prior of the coefficients makes all directions equally likely; their
    length does not change the ranking, and is left out: coefficients have length 1.
    """

    unit = True

    def risk(self, scores):
        """Risks of several scorings of the rows, positives first."""
        positive, negative = self._split(scores)
        risks = np.empty(len(scores))
        weights = None
        if self._weights is None:  # quicker than the order
            positive, negative = np.sort(positive, axis=1), np.sort(negative, axis=1)
        else:
            positive, own = _in_order(positive, self._weights[0])
            negative, others = _in_order(negative, self._weights[1])
            sums = np.zeros((len(scores), others.shape[1] + 1))
            np.cumsum(others, axis=1, out=sums[:, 1:])
            weights = own, sums
        kernels.misranked(positive, negative, weights, self._total, risks)
        return risks

    def wander(self, model, values, draw, step, rng):
        """Move the direction: an autoregressive step that leaves the prior as it is."""
        q = len(draw.coefficients)
        length = math.sqrt(rng.chisquare(q))
        moved = math.sqrt(1 - step**2) * length * draw.coefficients
        moved += step * rng.standard_normal(q)
        moved /= math.sqrt(moved @ moved)
        risk = self.risk((moved @ values)[None])[0]
        gain = self.inverse_temperature * (draw.risk - risk)
        if math.log1p(-rng.random()) < gain:
            return draw._replace(coefficients=moved, risk=risk), True
        return draw, False

    def _log_prior_over_pseudo(self, totals, drawn, centers, whitened, log_volumes):
        """Log density of a uniform direction over that of a normal's direction."""
        logs = np.empty(len(totals))
        kernels.directions(totals, centers, whitened, log_volumes, logs)
        return logs


class PairwiseLogistic(RankingLaw):
    """The mean over pairs of the logistic loss of the difference of their scores."""

    def risk(self, scores):
        """Risks of several scorings of the rows, positives first."""
        scores = scores - 0.5 * (scores.max(axis=1) + scores.min(axis=1))[:, None]
        positive, negative = self._split(scores)
        risks = np.empty(len(scores))
        largest = np.abs(scores).max()
        if 2 * largest > LARGEST:
            pairs = None if self._weights is None else np.outer(*self._weights)
            for t in range(len(scores)):
                differences = negative[t] - positive[t, :, None]
                risks[t] = np.average(np.logaddexp(0.0, differences), weights=pairs)
            return risks
        n_factors = int(LARGEST / (2 * largest + math.log(2)))
        kernels.pairwise_logistic(
            np.exp(-positive),
            np.exp(negative),
            self._weights,
            self._total,
            max(n_factors, 1),
            np.empty(negative.shape[1]),
            risks,
        )
        return risks

    def wander(self, model, values, draw, step, rng):
        """Move by an autoregressive step that leaves the pseudo-prior as it is."""
        q = len(draw.coefficients)
        whitened = draw.factor.T @ draw.coefficients - draw.center
        whitened = math.sqrt(1 - step**2) * whitened + step * rng.standard_normal(q)
        moved = np.linalg.solve(draw.factor.T, draw.center + whitened)
        risk = self.risk((moved @ values)[None])[0]
        proposal = draw._replace(coefficients=moved, risk=risk)
        gain = self.log_weight(model, proposal) - self.log_weight(model, draw)
        if math.log1p(-rng.random()) < gain:
            return proposal, True
        return draw, False

    def _log_prior_over_pseudo(self, totals, drawn, centers, whitened, log_volumes):
        """Log of the ratio of two normal densities."""
        log_prior = -0.5 * (drawn**2).sum(axis=1) / self.variance
        log_prior -= 0.5 * totals * math.log(self.variance)
        return log_prior - log_volumes + 0.5 * ((whitened - centers) ** 2).sum(axis=1)


def _in_order(scores, weights):
    """Scores in increasing order, scoring by scoring, and their weights."""
    order = np.argsort(scores, axis=1)
    return np.take_along_axis(scores, order, axis=1), weights[order]


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
                columns = self.law.columns(model)
                self.draws.append((columns, draw.coefficients, 0.0, draw.risk))

    @property
    def n_recorded(self):
        """Number of draws recorded."""
        return len(self.draws)

    def drawn(self):
        """Return what was recorded."""
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
        values, moved = self.law.values(model), False
        for _ in range(N_WANDER):
            draw, accepted = self.law.wander(model, values, draw, self._step, self.rng)
            moved |= accepted
            if adapt:
                self._step *= math.exp(0.1 * (accepted - RATE))
                self._step = min(max(self._step, 0.01), 0.95)
        if moved:
            log_weight = self.law.log_weight(model, draw)
        self.state = State(model, draw, log_weight)
