"""The ranker's sampler: the classifier's chain proposes, and a ratio corrects.

Given the scores, the classifier's chain draws the rates; given the rates, its moves of
models and coefficients are reversible. With the rates added to another target, with the
same distribution given the scores, each such move is a proposal, accepted with
probability

    min(1, g' / g),   g = density of the target / density of the classifier's posterior,

before and after the move [1]_. A sweep draws the rates once. It proposes new
coefficients of all variables and then, if few proposals are accepted, of blocks of
variables given the others. Every other sweep uses a tempered posterior, whose
likelihood has half the exponent, to reach models far from the classifier's. The target
is the ranker's posterior of models and coefficients, and of the quantities that a
ranking does not determine: the intercept and, for the AUC, the norm of the
coefficients. These have the normal distribution that approximates their logistic
posterior given the rest, so that they hardly change g.

For the AUC, a sweep moves in the marginal posterior of models and directions, too, and
the classifier proposes in every other sweep only: if nearly all pairs are in order, its
posterior prefers larger models than the ranker's. Coefficients move by elliptical slice
sampling [2]_; variables are added with coefficients of one of several scales, deleted,
and exchanged for others, correlated ones above all. Then norm and intercept are drawn.

References
----------
.. [1] J. S. Liu (2001). Monte Carlo Strategies in Scientific Computing, Section 9.4.3.
.. [2] I. Murray, R. P. Adams and D. J. C. MacKay (2010). Elliptical slice sampling.
   AISTATS.
"""

import math

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtri_exp

from .._kernels import ranking as kernels
from ._rated_chain import INTERCEPT_VARIANCE, Draw, DrawnChain

HOT, PERIOD = 0.5, 2  # of tempered proposals: factor of the exponents; period
# Number of proposals in the burn-in after which blocks are halved if the acceptance
# rate is below LOW, and merged if it is above HIGH.
N_JUDGED, LOW, HIGH = 20, 0.3, 0.7
N_MOVES = 40  # moves between models per proposal
N_SLICES = 4  # of coefficients per sweep without the classifier
# Scales of the coefficients of an added variable, over that of their prior.
SCALES = np.array([1.0, 0.3, 0.1, 0.03])
SMALLEST_ANGLE = 1e-12  # below which elliptical slice sampling does not move
LEAST_LENGTH = 1e-150  # its square is above 0
LARGEST = 700.0  # its exponential does not overflow
LOG_2_PI = math.log(2 * math.pi)


class RankingTarget:
    """Gibbs posterior of a ranking risk, relative to the classifier's posterior.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_samples,)
        Whether rows should have larger scores.
    weights : ndarray of shape (n_samples,)
        Weights of the rows; the weight of a pair is their product.
    variance : float
        Prior variance of a coefficient.

    A subclass defines `_risk`, the risks of scores of positive and of negative rows.

    Attributes
    ----------
    of_direction : bool
        Whether the risk depends only on the direction of the coefficients.
    period : int
        Number of sweeps per sweep by proposals of the classifier.
    """

    of_direction, period = False, 1

    def __init__(self, positive, weights, variance):
        self.positive, self.variance = positive, variance
        # Positives first, sorted by weight, as the kernel groups equal weights.
        self._order = order = np.lexsort((weights, ~positive))
        self._n_positive = n_positive = int(positive.sum())
        parts = np.split(weights[order], [n_positive])
        self._weights, self._total = None, float(n_positive * (~positive).sum())
        if any(np.ptp(part) > 0 for part in parts):
            self._weights = tuple(part / part.max() for part in parts)
            self._total = float(self._weights[0].sum() * self._weights[1].sum())

    def risk(self, scores):
        """Return the risks of several scores of the rows, (n_scorings, n_samples)."""
        scores = np.ascontiguousarray(scores[:, self._order])
        return self._risk(scores[:, : self._n_positive], scores[:, self._n_positive :])

    def log_evidence(self, draw, effects, exponents):
        """Return the log marginal likelihood of the ranking of a draw.

        This is the logistic likelihood with the given `exponents` of the rows, with the
        quantities that a ranking does not determine integrated out by Laplace's
        approximation, up to a constant.
        """
        mode = self._mode(draw, effects, exponents)
        return mode[5] - 0.5 * self._log_determinant(draw, mode)

    def log_density(self, draw, effects, exponents, inverse_temperature):
        """Return the log density of the target, without the prior.

        Returns
        -------
        log_density, risk : float
            The log density, up to a constant, and the risk.
        """
        risk = float(self.risk(effects[None])[0])
        log_open = self._log_open(draw, self._mode(draw, effects, exponents))
        return log_open - inverse_temperature * risk, risk

    def _n_open(self, draw):
        """Return the number of coefficients whose norm the risk does not determine."""
        return len(draw.coefficients) if self.of_direction else 0

    def _mode(self, draw, effects, exponents):
        """Return the mode of the intercept and, given the direction, of the norm."""
        count = self._n_open(draw)
        length = (_length(draw) if count else 0.0) or 1.0
        out = np.array([length, draw.intercept, 0.0, 0.0, 0.0, 0.0])
        kernels.logistic_mode(
            effects / length,
            self.positive,
            exponents,
            count,
            self.variance,
            INTERCEPT_VARIANCE,
            out,
        )
        if count:  # normalised density of the norm
            out[5] -= (count / 2 - 1) * math.log(2) + gammaln(count / 2)
            out[5] -= count / 2 * math.log(self.variance)
        return out

    def _log_determinant(self, draw, mode):
        """Return log det of minus the Hessian, over that without functions."""
        if not self._n_open(draw):
            return math.log(mode[4])
        return math.log(mode[2] * mode[4] - mode[3] ** 2) - LOG_2_PI

    def _log_open(self, draw, mode):
        """Return the log density of norm and intercept, over the prior of the norm."""
        slope, intercept, h_rr, h_rb, h_bb, _ = mode
        b, count = draw.intercept - intercept, self._n_open(draw)
        if count == 0:
            return 0.5 * math.log(h_bb) - 0.5 * h_bb * b**2
        length = _length(draw)
        r, determinant = length - slope, h_rr * h_bb - h_rb**2
        log_density = 0.5 * math.log(determinant) - 0.5 * LOG_2_PI
        log_density -= 0.5 * (h_rr * r**2 + 2 * h_rb * r * b + h_bb * b**2)
        log_density -= log_ndtr(slope * math.sqrt(determinant / h_bb))  # length > 0
        log_prior = (count - 1) * math.log(length) - 0.5 * length**2 / self.variance
        log_prior -= (count / 2 - 1) * math.log(2) + gammaln(count / 2)
        log_prior -= count / 2 * math.log(self.variance)
        return log_density - log_prior


class Misranked(RankingTarget):
    """The share of pairs in the wrong order, 1 - AUC.

    Only the direction of the coefficients matters, which is uniform under their prior.
    """

    of_direction, period = True, 2

    def _risk(self, positive, negative):
        risks, weights = np.empty(len(positive)), None
        if self._weights is None:  # faster than the order
            positive, negative = np.sort(positive, axis=1), np.sort(negative, axis=1)
        else:
            positive, own = _in_order(positive, self._weights[0])
            negative, others = _in_order(negative, self._weights[1])
            sums = np.zeros((len(positive), others.shape[1] + 1))
            np.cumsum(others, axis=1, out=sums[:, 1:])
            weights = own, sums
        kernels.misranked(positive, negative, weights, self._total, risks)
        return risks

    def complete(self, draw, effects, exponents, rng):
        """Return a draw and effects, with norm and intercept drawn given all else."""
        length = _length(draw) or 1.0
        mode = self._mode(draw, effects, exponents)
        slope, intercept, h_rr, h_rb, h_bb, _ = mode
        if len(draw.coefficients):
            deviation = math.sqrt(h_bb / (h_rr * h_bb - h_rb**2))
            tail = math.log1p(-rng.random()) + log_ndtr(slope / deviation)
            drawn = max(slope - deviation * ndtri_exp(tail), LEAST_LENGTH)
            intercept -= h_rb / h_bb * (drawn - slope)
            draw = draw._replace(coefficients=drawn / length * draw.coefficients)
            effects = drawn / length * effects
        intercept += rng.standard_normal() / math.sqrt(h_bb)
        return draw._replace(intercept=intercept), effects


class PairwiseLogistic(RankingTarget):
    """The mean over pairs of the logistic loss of the difference of their scores."""

    def _risk(self, positive, negative):
        middle = 0.5 * (
            np.maximum(positive.max(axis=1), negative.max(axis=1))
            + np.minimum(positive.min(axis=1), negative.min(axis=1))
        )
        positive, negative = positive - middle[:, None], negative - middle[:, None]
        risks = np.empty(len(positive))
        largest = max(abs(positive).max(), abs(negative).max())
        if 2 * largest > LARGEST:
            pairs = None if self._weights is None else np.outer(*self._weights)
            for t in range(len(risks)):
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


def _length(draw):
    return math.sqrt(draw.coefficients @ draw.coefficients)


def _in_order(scores, weights):
    """Return sorted scores, with their weights."""
    order = np.argsort(scores, axis=1)
    return scores[np.arange(len(scores))[:, None], order], weights[order]


class Directions:
    """Moves between models and directions of the coefficients.

    The coefficients have their normal prior, of which the risk does not depend on the
    norm. The norm, which the current draw determines otherwise, is drawn first.

    Parameters
    ----------
    chain : LogisticChain
        Has the current draw, which is not changed.
    target : RankingTarget
        The posterior.
    inverse_temperature : float
        Weight of the risk.
    risk : float
        Risk of the current draw.

    Attributes
    ----------
    draw : Draw
        Model and coefficients.
    effects : ndarray of shape (n_samples,)
        Sums of the effects at the rows.
    """

    def __init__(self, chain, target, inverse_temperature, risk):
        self._chain, self._target, self._rng = chain, target, chain.rng
        self._inverse_temperature, self._risk = inverse_temperature, risk
        self._width = chain.values.shape[1]
        self._flat = chain.values.reshape(-1, chain.values.shape[2])
        draw = chain.draw
        if len(draw.columns):
            square = (
                2 * target.variance * self._rng.standard_gamma(len(draw.columns) / 2)
            )
            factor = math.sqrt(square) / _length(draw)
            draw = draw._replace(coefficients=factor * draw.coefficients)
        self.draw, self.effects = draw, self._effects(draw.columns, draw.coefficients)
        self._enter_model()

    def _enter_model(self):
        """Note the variables of the current model, and the others."""
        usable = self._chain.usable
        self._features = features = np.unique(self.draw.columns // self._width)
        self._others = np.setdiff1d(usable, features, assume_unique=True)
        self._log_prior = self._chain.log_prior(self.draw)

    def slice_coefficients(self):
        """Make one step of elliptical slice sampling, given the model."""
        draw, effects, rng = self.draw, self.effects, self._rng
        deviation = math.sqrt(self._target.variance)
        other = deviation * rng.standard_normal(len(draw.columns))
        others = self._effects(draw.columns, other)
        highest = self._risk + rng.standard_exponential() / self._inverse_temperature
        angle = 2 * math.pi * rng.random()
        low, high = angle - 2 * math.pi, angle
        while abs(angle) > SMALLEST_ANGLE:
            cosine, sine = math.cos(angle), math.sin(angle)
            moved = cosine * effects + sine * others
            risk = float(self._target.risk(moved[None])[0])
            if risk < highest:
                coefficients = cosine * draw.coefficients + sine * other
                self.draw = draw._replace(coefficients=coefficients)
                self.effects, self._risk = moved, risk
                self._log_prior = self._chain.log_prior(self.draw)
                return
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * rng.random()

    def change_model(self):
        """Propose to add, delete or exchange a variable; return if accepted."""
        draw, rng, features = self.draw, self._rng, self._features
        size, n_others = len(features), len(self._others)
        comes, goes = ((True, False), (False, True), (True, True))[rng.integers(3)]
        if (goes and size == 0) or (comes and n_others == 0):
            return False
        columns, coefficients = draw.columns, draw.coefficients
        new, log_ratio = columns[:0], 0.0
        if comes:
            others = self._others.copy()
            number = rng.integers(n_others)
        if goes:
            goner = features[rng.integers(size)]
            moving = columns // self._width == goner
            old, values = columns[moving], coefficients[moving]
            columns, coefficients = columns[~moving], coefficients[~moving]
            if not comes:
                log_ratio += math.log(size / (n_others + 1))
                log_ratio += self._log_new(values, self._chain.ranks[goner])
        if comes and goes:
            shares = self._shares(goner, others)
            number = min(shares.cumsum().searchsorted(rng.random()), n_others - 1)
            log_ratio -= math.log(shares[number])
        if comes:
            feature = others[number]
            rank = self._chain.ranks[feature]
        if comes and goes:
            if len(old) > rank:
                return False
            others[number] = goner
            log_ratio += math.log(self._shares(feature, others)[number])
            new = feature * self._width + np.arange(len(old))
            products = np.einsum("ij,ij->i", self._flat[old], self._flat[new])
            values = np.where(products < 0, -values, values)
        elif comes:
            length = min(rng.geometric(1 - self._chain.space.beta), rank)
            new = feature * self._width + np.arange(length)
            scale = SCALES[rng.integers(len(SCALES))]
            values = scale * math.sqrt(self._target.variance)
            values = values * rng.standard_normal(length)
            log_ratio += math.log(n_others / (size + 1)) - self._log_new(values, rank)
        if comes:
            columns = np.concatenate([columns, new])
            coefficients = np.concatenate([coefficients, values])
        proposed = Draw.of(columns, coefficients, draw.intercept)
        # Not by differences, whose rounding errors would break ties.
        effects = self._effects(proposed.columns, proposed.coefficients)
        risk = float(self._target.risk(effects[None])[0])
        log_ratio -= self._inverse_temperature * (risk - self._risk)
        log_ratio += self._chain.log_prior(proposed) - self._log_prior
        if not math.log1p(-rng.random()) < log_ratio:
            return False
        self.draw, self.effects, self._risk = proposed, effects, risk
        self._enter_model()
        return True

    def _shares(self, feature, others):
        """Return probabilities of the exchange of a variable for others.

        Half of it is proportional to the squares of correlations of first functions.
        """
        firsts = self._flat[:: self._width]
        squares = (firsts[others] @ firsts[feature]) ** 2
        shares = np.full(len(others), 1 / len(others))
        total = squares.sum()
        return 0.5 * (shares + squares / total) if total > 0 else shares

    def _effects(self, columns, coefficients):
        return coefficients @ self._flat[columns]

    def _log_new(self, values, rank):
        """Return the log density of the number and the coefficients of functions."""
        beta, count = self._chain.space.beta, len(values)
        scales = SCALES * math.sqrt(self._target.variance)
        logs = -0.5 * (values @ values) / scales**2
        logs -= count * (np.log(scales) + 0.5 * LOG_2_PI)
        log_order = (count - 1) * math.log(beta)
        log_order += math.log(1 - beta) if count < rank else 0.0
        return np.logaddexp.reduce(logs) - math.log(len(scales)) + log_order


class RankingChain(DrawnChain):
    """One chain of the ranker.

    Parameters
    ----------
    proposal : LogisticChain
        The classifier's chain, which makes the proposals.
    target : RankingTarget
        The ranker's posterior.
    inverse_temperature : float
        Weight of the risk.

    Attributes
    ----------
    n_blocks : int
        Number of blocks of variables that a sweep updates separately.
    """

    def __init__(self, proposal, target, inverse_temperature):
        super().__init__()
        self.proposal, self.target = proposal, target
        self.inverse_temperature = inverse_temperature
        self._exponents = proposal.weights
        self._log_density, self._risk = self._density()
        self._log_likelihood = proposal.log_likelihood()
        self._tried = self._accepted = 0
        self.n_blocks = 1
        self._n_sweeps, self._recent = 0, []

    @property
    def prior(self):
        """Prior of the models."""
        return self.proposal.prior

    @property
    def moves(self):
        """Number of proposed and of accepted moves."""
        return self._tried, self._accepted

    def sweep(self):
        """Move by proposals of the classifier; for the AUC, first without them.

        These moves are cheaper: every other sweep has no others.
        """
        self._n_sweeps += 1
        if self.target.of_direction:
            self._sweep_of_directions()
        if self._n_sweeps % self.target.period == 0:
            self._sweep_by_classifier(self._n_sweeps // self.target.period)

    def _sweep_of_directions(self):
        """Move in the marginal posterior of models and directions."""
        proposal, target = self.proposal, self.target
        proposal.temper(self._exponents)
        found = Directions(proposal, target, self.inverse_temperature, self._risk)
        for number in range(N_MOVES):
            if number % (N_MOVES // N_SLICES) == 0:
                found.slice_coefficients()
            self._accepted += found.change_model()
        self._tried += N_MOVES
        proposal.draw, proposal.effects = target.complete(
            found.draw, found.effects, self._exponents, proposal.rng
        )
        self._log_density, self._risk = self._density()
        self._log_likelihood = proposal.log_likelihood()

    def _sweep_by_classifier(self, number):
        """Draw the norm and the rates, then all else, jointly and in blocks."""
        proposal = self.proposal
        hot = number % PERIOD == 1
        self._heat = HOT if hot else 1.0
        proposal.temper(self._exponents * self._heat)
        if not hot:
            self._propose(proposal.draw_length)
        rates = proposal.draw_rates()
        for n_blocks in sorted({1, self.n_blocks}):
            taken = [
                self._propose(proposal.move_among, block, rates, N_MOVES)
                for block in proposal.blocks(n_blocks)
            ]
            self._tried += len(taken)
            self._accepted += sum(taken)
        self._recent += taken

    def _propose(self, move, *arguments):
        """Make a move of the classifier's chain, and undo it if it is rejected."""
        proposal = self.proposal
        before = proposal.draw, proposal.effects
        log_ratio = self._log_proposing(self._log_likelihood) - self._log_density
        move(*arguments)
        log_density, risk = self._density()
        log_likelihood = proposal.log_likelihood() / self._heat
        log_ratio += log_density - self._log_proposing(log_likelihood)
        accepted = math.log1p(-proposal.rng.random()) < log_ratio
        if accepted:
            self._log_density, self._risk = log_density, risk
            self._log_likelihood = log_likelihood
        else:
            proposal.draw, proposal.effects = before
        return accepted

    def _log_proposing(self, log_likelihood):
        """Return the log density of the proposal's target, over the prior of models."""
        log_prior = -0.5 * self.proposal.draw.intercept**2 / INTERCEPT_VARIANCE
        return self._heat * log_likelihood + log_prior

    def _record(self):
        return self.proposal.draw._replace(loss=self._risk)

    def _adapt(self):
        """Adapt the number of blocks to the acceptance rate."""
        if len(self._recent) < N_JUDGED:
            return
        rate = np.mean(self._recent)
        if rate < LOW and 2 * self.n_blocks <= self.proposal.n_chosen:
            self.n_blocks *= 2
        elif rate > HIGH and self.n_blocks > 1:
            self.n_blocks //= 2
        self._recent = []

    def _density(self):
        return self.target.log_density(
            self.proposal.draw,
            self.proposal.effects,
            self._exponents,
            self.inverse_temperature,
        )
