"""What a walk over models needs to rank: risks, pseudo-priors, weights."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr

from .._kernels import ranking as kernels
from ._logistic import Drawn
from ._walk import State, step

N_NODES = 129  # of a trapezoidal rule whose error is then below rounding
N_WANDER = 2  # moves of the coefficients within a model, after each move
RATE = 0.3  # of acceptance, at which their step aims


class Draw(NamedTuple):
    """Coefficients of a model, and what is known of them.

    `factor` and `center` describe the model's pseudo-prior, a normal law of precision
    LL' and mean m: the factor L, and L'm.
    """

    coefficients: np.ndarray
    risk: float
    factor: np.ndarray
    center: np.ndarray


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
    log_prior : callable
        `log_prior(n_variables, n_functions)` of a model.
    variance : float
        Prior variance of a coefficient.
    scores : ndarray of shape (n_samples,)
        Log odds about which the logistic loss is expanded.
    inverse_temperature : float, default=1.0
        Weight of the risk.
    """

    def __init__(
        self,
        values,
        positive,
        *,
        log_prior,
        variance,
        scores,
        inverse_temperature=1.0,
    ):
        p, self.max_order, n_samples = values.shape
        self._order = order = np.argsort(~positive, kind="stable")
        self._n_positive = int(positive.sum())
        self.log_prior, self.variance = log_prior, variance
        self.inverse_temperature = inverse_temperature
        probability = 0.5 + 0.5 * np.tanh(0.5 * scores)
        weights = np.maximum(probability * (1 - probability), 1e-6)
        targets = weights * scores + positive - probability
        # The last row, of zeros, fills up models that have fewer functions than others.
        flat = np.zeros((p * self.max_order + 1, n_samples))
        flat[:-1] = values.reshape(-1, n_samples)
        # Scores are known up to a constant; this one is the best for the pseudo-prior.
        flat[:-1] -= (flat[:-1] @ weights / weights.sum())[:, None]
        self._linear = flat @ targets
        self._flat = np.ascontiguousarray(flat[:, order])
        self._weights = weights[order]
        self.spread = 1.0

    def ordered(self, scores):
        """Scores of the rows in the order of the law: positives first."""
        return scores[self._order]

    def columns(self, model):
        """Numbers of a model's functions, variable by variable."""
        width = self.max_order
        return [j * width + k for j, order in model for k in range(order)]

    def weigh(self, models, rng):
        """Draw coefficients for each model from its pseudo-prior, and weigh them.

        Returns
        -------
        draws : list of Draw
            The coefficients.
        log_weights : ndarray of shape (n_models,)
            Log of target over pseudo-prior.
        """
        sizes, values, factors, centers = self._pseudo_priors(models)
        noise = rng.standard_normal(centers.shape)
        noise[np.arange(noise.shape[1]) >= sizes[:, None]] = 0.0
        whitened = centers + noise
        drawn = np.linalg.solve(factors.transpose(0, 2, 1), whitened[..., None])[..., 0]
        drawn, whitened = self._represent(drawn, whitened)
        risks = self.risk(np.matmul(drawn[:, None], values)[:, 0])
        log_weights = self._log_weights(
            models, sizes, drawn, risks, whitened, centers, factors
        )
        draws = [
            Draw(drawn[i, :q], risks[i], factors[i, :q, :q], centers[i, :q])
            for i, q in enumerate(sizes)
        ]
        return draws, log_weights

    def log_weight(self, model, draw):
        """Log of target over pseudo-prior, at a draw."""
        whitened = draw.factor.T @ draw.coefficients
        return self._log_weights(
            [model],
            np.array([len(whitened)]),
            *(a[None] for a in (draw.coefficients, np.asarray(draw.risk), whitened)),
            draw.center[None],
            draw.factor[None],
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

    def _pseudo_priors(self, models):
        """Sizes of models, their functions, and the pseudo-priors' factors, centers."""
        columns = [self.columns(model) for model in models]
        sizes = np.array([len(found) for found in columns])
        width = max(1, sizes.max())
        filled = np.full((len(models), width), len(self._flat) - 1)
        for row, found in zip(filled, columns, strict=True):
            row[: len(found)] = found
        values = self._flat[filled]
        precisions = np.matmul(values * self._weights, values.transpose(0, 2, 1))
        place = np.arange(width)
        precisions[:, place, place] += np.where(
            place < sizes[:, None], 1 / self.variance, self.spread
        )
        factors = np.linalg.cholesky(precisions / self.spread)
        linear = self._linear[filled] / self.spread
        centers = np.linalg.solve(factors, linear[..., None])[..., 0]
        return sizes, values, factors, centers

    def _log_weights(self, models, sizes, drawn, risks, whitened, centers, factors):
        log_priors = np.array(
            [self.log_prior(len(m), q) for m, q in zip(models, sizes, strict=True)]
        )
        log_volumes = np.log(np.einsum("kii->ki", factors)).sum(axis=1)
        against = self._log_prior_over_pseudo(
            sizes, drawn, whitened, centers, log_volumes
        )
        return (
            log_priors
            - self.inverse_temperature * risks
            + np.where(sizes > 0, against, 0.0)
        )

    def _split(self, scores):
        """Scores of the positives and of the negatives."""
        return scores[:, : self._n_positive], scores[:, self._n_positive :]


class Misranked(RankingLaw):
    """The share of pairs ranked wrongly: 1 - AUC. Only directions matter.

    The normal prior of the coefficients makes all directions equally likely; their
    length does not change the ranking, and is left out: coefficients have length 1.
    """

    def risk(self, scores):
        """Risks of several scorings of the rows, positives first."""
        positive, negative = self._split(scores)
        risks = np.empty(len(scores))
        kernels.misranked(np.sort(positive, axis=1), np.sort(negative, axis=1), risks)
        return risks

    def wander(self, model, draw, step, rng):
        """Move the direction: an autoregressive step that leaves the prior as it is."""
        q = len(draw.coefficients)
        length = math.sqrt(rng.chisquare(q))
        moved = math.sqrt(1 - step**2) * length * draw.coefficients
        moved += step * rng.standard_normal(q)
        moved /= math.sqrt(moved @ moved)
        risk = self.risk((moved @ self._flat[self.columns(model)])[None])[0]
        gain = self.inverse_temperature * (draw.risk - risk)
        if math.log1p(-rng.random()) < gain:
            return draw._replace(coefficients=moved, risk=risk), True
        return draw, False

    def _represent(self, drawn, whitened):
        lengths = np.sqrt((drawn**2).sum(axis=1))[:, None]
        lengths[lengths == 0] = 1.0  # the empty model
        return drawn / lengths, whitened / lengths

    def _log_prior_over_pseudo(self, sizes, drawn, whitened, centers, log_volumes):
        """Log density of a uniform direction over that of a normal's direction."""
        q = np.maximum(sizes, 1).astype(float)
        squares = np.maximum((whitened**2).sum(axis=1), 1e-300)
        along = (whitened * centers).sum(axis=1) / np.sqrt(squares)
        log_normal = log_volumes - 0.5 * q * math.log(2 * math.pi)
        log_normal -= 0.5 * (centers**2).sum(axis=1) + 0.5 * q * np.log(squares)
        log_normal += log_radial_moment(q, along)
        return gammaln(q / 2) - math.log(2) - 0.5 * q * math.log(math.pi) - log_normal


class PairwiseLogistic(RankingLaw):
    """The mean over pairs of the logistic loss of the difference of their scores."""

    def risk(self, scores):
        """Risks of several scorings of the rows, positives first."""
        middle = 0.5 * (scores.max(axis=1) + scores.min(axis=1))[:, None]
        positive, negative = self._split(scores - middle)
        risks = np.empty(len(scores))
        with np.errstate(over="ignore"):
            largest = np.exp(abs(scores - middle)).max()
            if largest < kernels.LARGEST:
                arguments = np.exp(-positive), np.exp(negative)
                kernels.pairwise_logistic(*arguments, risks)
                return risks
        for t in range(len(scores)):
            differences = negative[t, :, None] - positive[t]
            risks[t] = np.logaddexp(0.0, differences).mean()
        return risks

    def wander(self, model, draw, step, rng):
        """Move by an autoregressive step that leaves the pseudo-prior as it is."""
        q = len(draw.coefficients)
        whitened = draw.factor.T @ draw.coefficients - draw.center
        whitened = math.sqrt(1 - step**2) * whitened + step * rng.standard_normal(q)
        moved = np.linalg.solve(draw.factor.T, draw.center + whitened)
        risk = self.risk((moved @ self._flat[self.columns(model)])[None])[0]
        proposal = draw._replace(coefficients=moved, risk=risk)
        gain = self.log_weight(model, proposal) - self.log_weight(model, draw)
        if math.log1p(-rng.random()) < gain:
            return proposal, True
        return draw, False

    def _represent(self, drawn, whitened):
        return drawn, whitened

    def _log_prior_over_pseudo(self, sizes, drawn, whitened, centers, log_volumes):
        """Log of the ratio of two normal densities."""
        log_prior = -0.5 * (drawn**2).sum(axis=1) / self.variance
        log_prior -= 0.5 * sizes * math.log(self.variance)
        return log_prior - log_volumes + 0.5 * ((whitened - centers) ** 2).sum(axis=1)


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
        for _ in range(N_WANDER):
            draw, accepted = self.law.wander(model, draw, self._step, self.rng)
            if accepted:
                log_weight = self.law.log_weight(model, draw)
            if adapt:
                self._step *= math.exp(0.1 * (accepted - RATE))
                self._step = min(max(self._step, 0.01), 0.95)
        self.state = State(model, draw, log_weight)


def log_radial_moment(q, t):
    """Log of the integral over r > 0 of r^(q - 1) exp(t r - r^2 / 2).

    In x = log r the integrand is smooth; the trapezoidal rule is then exact but for
    rounding. For q = 1 it is a normal distribution function.
    """
    peak = 0.5 * (t + np.sqrt(t * t + 4 * q))
    # How far from the peak, in x, until the integrand has fallen by exp(-36).
    share = t * peak
    before = np.where(t > 0, np.maximum(2, (36 - 0.37 * share) / q + 0.5), 36 / q + 1)
    root = np.sqrt(72 / np.maximum(share, 1e-3))
    after = np.minimum(8.5 / np.sqrt(q), np.log1p(root))
    before = np.where(share > 80, -np.log1p(-np.minimum(root, 0.95)), before)
    spacing = (before + after) / (N_NODES - 1)
    x = np.log(peak)[:, None] - before[:, None]
    x = x + spacing[:, None] * np.arange(N_NODES)
    radius = np.exp(x)
    log_values = q[:, None] * x + radius * (t[:, None] - 0.5 * radius)
    highest = log_values.max(axis=1)
    integrals = np.exp(log_values - highest[:, None]).sum(axis=1) * spacing
    one = 0.5 * t**2 + log_ndtr(t) + 0.5 * math.log(2 * math.pi)
    return np.where(q == 1, one, highest + np.log(integrals))
