"""The Gibbs quasi-posterior over centres, and the chains that sample it."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln
from scipy.stats import f as fisher

from .._kernels import paco as kernels

# Below this share of the Student distribution in the ball, the distribution in the
# ball is uniform to all digits.
_LEAST_SHARE = 1e-300

# Log density of a centre where the Student prior underflows.
_LEAST_LOG = -1e300
# Approximate number of random numbers that a chain draws at a time.
_BLOCK = 2**17


def log_ball(radius, n_features):
    """Log of the volume of a ball."""
    return (
        n_features / 2 * math.log(math.pi)
        - math.lgamma(n_features / 2 + 1)
        + n_features * math.log(radius)
    )


def kernel_points(points, weights, spreads, forecasts=None):
    """Return points for the kernels, without the constant of the variance term."""
    linear, quadratic = weights, np.zeros(len(points))
    if forecasts is not None and len(forecasts):
        linear, quadratic = weights - forecasts[:, 1], 0.5 * forecasts[:, 0]
    return np.ascontiguousarray(np.vstack([points.T, spreads, linear, quadratic]))


def _merged(points):
    """Return True if some point is a mean of several rows, else None."""
    return True if points[-3].any() else None


def work_space(points, n_clusters, n_states=1):
    """Allocate work arrays of `cumulative_loss`: gaps, losses, owners, slopes."""
    n_points = points.shape[1]
    return (
        np.empty((n_states, n_clusters, n_points)),
        np.empty((3, n_points)),
        np.empty((2, n_points), dtype=np.int64),
        np.empty((n_clusters, n_clusters)),
    )


def loss_and_owners(points, centers, manhattan):
    """Return the loss of `centers` (n_clusters, n_features), and how many own a point.

    `points`: as `kernel_points` returns them.
    """
    work = work_space(points, len(centers))
    states = np.ascontiguousarray(centers[None])
    return loss_at(points, states, len(centers), manhattan, _merged(points), work)


def loss_at(points, states, n_clusters, manhattan, merged, work):
    """Return the loss of the first centres of `states[0]`, and how many own a point."""
    return kernels.cumulative_loss(
        points, states, 0, n_clusters, 0, n_clusters, manhattan or None, merged, *work
    )


@dataclass(frozen=True)
class CenterPrior:
    """Quasi-prior: q(k) on the number of centres, and a distribution for each centre.

    Parameters
    ----------
    log_sizes : ndarray of shape (max_clusters,)
        log q(k), up to a constant.
    radius : float
        Radius of the ball about the origin that contains all centres (2R in the paper).
    scale : float
        tau_0 of the Student distribution (eq. 22), infinity for the uniform one.
    """

    log_sizes: np.ndarray
    radius: float
    scale: float = math.inf

    @staticmethod
    def log_sizes_of(max_clusters, cluster_penalty, *, ordered):
        """Return log q(k): exp(-penalty k) on tuples (eq. 6), over k! on sets."""
        sizes = np.arange(1.0, max_clusters + 1)
        with np.errstate(over="ignore"):  # an infinite penalty is allowed
            log_sizes = -cluster_penalty * (sizes - 1)
        return log_sizes - (0 if ordered else gammaln(sizes + 1))

    def log_constant(self, n_features):
        """Log density of one centre: at any place (uniform), at 0 (Student)."""
        uniform = -log_ball(self.radius, n_features)
        if math.isinf(self.scale):
            return uniform
        inside = self._share_in_ball(n_features)
        whole = (
            math.lgamma((3 + n_features) / 2)
            - math.lgamma(1.5)
            - n_features * (math.log(6 * math.pi) / 2 + math.log(self.scale))
        )
        return whole - math.log(inside) if inside > _LEAST_SHARE else uniform

    def log_density(self, centers):
        """Log density of an ordered tuple of centres, -inf off its support."""
        n_clusters, n_features = centers.shape
        squares = (centers**2).sum(axis=1)
        if not (squares <= self.radius * self.radius).all():
            return -math.inf
        return (
            self.log_sizes[n_clusters - 1]
            + n_clusters * self.log_constant(n_features)
            + self.log_tails(centers).sum()
        )

    def log_tails(self, centers):
        """Log density of each centre, over that of a centre at 0."""
        squares = (centers**2).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_tails = np.log(1 + squares / (6 * np.square(self.scale)))
        return -0.5 * (3 + centers.shape[-1]) * log_tails

    def target(self, temperature, n_features):
        """Return this prior and the `temperature` as `run_chain` takes them."""
        sizes = np.arange(1, len(self.log_sizes) + 1)
        return kernels.Target(
            float(temperature),
            sizes * self.log_constant(n_features) + self.log_sizes,
            float(self.radius),
            float(self.scale),
            log_ball(self.radius, n_features),
        )

    def draw(self, n_clusters, n_features, rng):
        """Draw `n_clusters` centres (n_clusters, n_features)."""
        directions = rng.standard_normal((n_clusters, n_features))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        shares = rng.random((n_clusters, 1))
        inside = self._share_in_ball(n_features)
        if inside > _LEAST_SHARE:  # a squared norm over its scale is F(d, 3)
            squares = fisher.ppf(shares * inside, n_features, 3)
            norms = self.scale * np.sqrt(2 * n_features * squares)
        else:
            norms = self.radius * shares ** (1 / n_features)
        return directions * np.minimum(norms, self.radius)

    def _share_in_ball(self, n_features):
        """Probability of the ball under the Student distribution, 0 if uniform."""
        if math.isinf(self.scale):
            return 0.0
        ratio = self.radius / self.scale
        return fisher.cdf(ratio * ratio / (2 * n_features), n_features, 3)


def center_variances(cell_weights, deviations, temperature, few_rows=2 / math.pi):
    """Return the quasi-posterior variance per feature of the centre of each cell.

    `deviations`: None for the squared loss, for which the posterior of a centre is
    normal; the mean absolute deviations in the cells for the Manhattan loss, for which
    it is normal for many rows and Laplace for one, of variance 2 / (temperature
    weight)^2; with the default `few_rows` it has the volume of that Laplace
    distribution instead.
    """
    heat = temperature * cell_weights
    if deviations is None:
        return 0.5 / heat
    with np.errstate(over="ignore"):  # beside a row at 1e300
        return deviations / heat + few_rows / heat**2


@dataclass(frozen=True)
class Proposal:
    """Distribution of the chain's independence move, and probabilities of the moves.

    `slots` (max_clusters, max_clusters, n_features) and `scales` (max_clusters,
    max_clusters): for each number of clusters k, k Student distributions with `dof`
    degrees of freedom. `symmetric`: the density is summed over all labellings of the
    slots. `moves`:
    probabilities of the independence move and of the walk; the rest are births and
    deaths.
    """

    slots: np.ndarray
    scales: np.ndarray
    dof: float
    symmetric: bool
    moves: tuple

    @classmethod
    def matched(cls, path, cell_weights, deviations, temperature, radius):
        """Return distributions as wide as the quasi-posterior about k-means centres.

        `cell_weights`, `deviations` (max_clusters, max_clusters): weight of each
        cell, and None or the mean absolute deviation in it (Manhattan loss).
        """
        n_features = path.shape[2]
        with np.errstate(divide="ignore", invalid="ignore"):
            scales = np.sqrt(
                center_variances(cell_weights, deviations, temperature, few_rows=2.0)
            )
        widest = radius / math.sqrt(n_features)
        scales = np.clip(np.where(cell_weights > 0, scales, widest), 0, widest)
        scales = np.maximum(scales, 1e-12 * radius)
        return cls(path, scales, 3.0 + 2 * n_features, True, (0.4, 0.2))

    @classmethod
    def student(cls, path, scale):
        """Return that of Algorithm 3: eq. 9, tau = `scale`, all centres at once."""
        scales = np.full(path.shape[:2], math.sqrt(2) * scale)
        return cls(path, scales, 3.0, False, (1.0, 0.0))

    def log_constants(self, n_features):
        """Return the log constants of the proposal's density, by number of clusters."""
        sizes = np.arange(1, len(self.slots) + 1)
        one = (
            math.lgamma((self.dof + n_features) / 2)
            - math.lgamma(self.dof / 2)
            - n_features / 2 * math.log(math.pi)
        )
        return sizes * one - (gammaln(sizes + 1) if self.symmetric else 0)

    @property
    def walk_scales(self):
        """Return the unit of the walk's steps for each k: the least of its scales."""
        return np.array([row[: k + 1].min() for k, row in enumerate(self.scales)])

    def kernel_slots(self):
        """Return these distributions as `run_chain` takes them."""
        return kernels.Slots(
            self.slots,
            self.scales,
            self.walk_scales,
            float(self.dof),
            self.symmetric,
            self.log_constants(self.slots.shape[2]),
        )

    def draws(self, n_iter, radius, rng):
        """Draw the random numbers of `n_iter` iterations, as `run_chain` takes them.

        A new centre is uniform in the ball of `radius`. The walk's steps are normal,
        with a step size that varies by a factor of 16.
        """
        max_clusters, n_features = self.slots.shape[1:]
        kinds = np.searchsorted(np.cumsum(self.moves), rng.random(n_iter), side="right")
        added = np.where(
            kinds == 0, rng.integers(-1, 2, n_iter), 2 * rng.integers(0, 2, n_iter) - 1
        )
        added[kinds == 1] = 0
        log_uniforms = -rng.standard_exponential(n_iter)
        n_anew = np.count_nonzero(kinds == 0)
        students = rng.standard_normal((n_anew, max_clusters, n_features))
        chi_squares = rng.chisquare(self.dof, (n_anew, max_clusters, 1))
        students *= np.sqrt(self.dof / chi_squares)
        jumps = rng.standard_normal((n_iter - n_anew, n_features))
        lengths = 4.0 ** rng.uniform(-0.5, 1.5, len(jumps)) / math.sqrt(n_features)
        born = added[kinds > 0] > 0
        shells = rng.random(np.count_nonzero(born)) ** (1 / n_features)
        lengths[born] = radius * shells / np.linalg.norm(jumps[born], axis=1)
        return kernels.Draws(
            np.column_stack([np.minimum(kinds, 1), added]),
            np.column_stack([rng.random(n_iter), log_uniforms]),
            students,
            rng.random((n_anew, max_clusters)),
            jumps * lengths[:, None],
        )


@dataclass
class Chain:
    """State and history of one chain."""

    centers: np.ndarray
    n_clusters: int
    rng: np.random.Generator
    trace: np.ndarray
    tally: np.ndarray
    posterior: "QuasiPosterior"
    proposal: Proposal

    @classmethod
    def start(cls, centers, max_clusters, seed, posterior=None, proposal=None):
        """Start a chain at `centers` (n_clusters, n_features)."""
        state = np.zeros((max_clusters, centers.shape[1]))
        state[: len(centers)] = centers
        return cls(
            state,
            len(centers),
            np.random.default_rng(seed),
            np.empty((0, 2), dtype=np.int64),
            np.zeros((2, 2), dtype=np.int64),
            posterior,
            proposal,
        )

    def advance(self, n_iter, keep=True):
        """Make iterations; keep their numbers of clusters only if `keep`."""
        kept, tally = self.trace, self.tally.copy()
        self.posterior.run(self, self.proposal, n_iter)
        if not keep:
            self.trace, self.tally = kept, tally

    @property
    def n_kept(self):
        """Number of iterations that were kept."""
        return len(self.trace)

    @property
    def draw(self):
        """Centres of the current state."""
        return self.centers[: self.n_clusters].copy()

    def frequencies(self, max_clusters=None, *, occupied=False):
        """Return the frequencies of 1, ..., max_clusters centres (that own a point)."""
        length = max_clusters or len(self.centers)
        counts = np.bincount(self.trace[:, int(occupied)], minlength=length + 1)
        return counts[1:] / len(self.trace)


@dataclass(frozen=True)
class QuasiPosterior:
    """exp(-temperature S(c)) pi(c) over tuples of 1 to max_clusters centres.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Rows, or the means of merged rows.
    weights : ndarray of shape (n_points,)
        Their weights.
    spreads : ndarray of shape (n_points,)
        Mean squared distance of the merged rows from their mean; 0 for a row.
    forecasts : ndarray of shape (n_points, 3) or (0, 3)
        Sums of lambda, lambda h, lambda h^2 for the variance term; empty: no term.
    temperature : float
        The inverse temperature, in units of 1 / loss.
    prior : CenterPrior
    manhattan : bool
        The loss: Manhattan distance, else squared Euclidean distance.
    """

    points: np.ndarray
    weights: np.ndarray
    spreads: np.ndarray
    forecasts: np.ndarray
    temperature: float
    prior: CenterPrior
    manhattan: bool

    @cached_property
    def _points(self):
        """The points as the kernels take them."""
        return kernel_points(self.points, self.weights, self.spreads, self.forecasts)

    def loss(self, centers):
        """S(c), the cumulative loss of `centers` (n_clusters, n_features)."""
        total, _ = loss_and_owners(self._points, centers, self.manhattan)
        return total + 0.5 * self.forecasts[:, 2].sum()

    def log_evidences(self, losses, centers, cell_weights, deviations, factors):
        """Return the Laplace approximation of log P(K = k), up to a constant.

        `losses` (max_clusters,): S at the solution for each k, of which row k - 1 of
        `centers` has the centres; `cell_weights`, `deviations` as in
        `Proposal.matched`. The result has one row for each of `factors`, which multiply
        the inverse temperature.
        """
        temperatures = np.asarray(factors)[:, None] * self.temperature
        n_features = self.points.shape[1]
        sizes = np.arange(1, len(losses) + 1)
        inside = np.tril(np.ones((len(losses), len(losses)), dtype=bool))
        with np.errstate(divide="ignore", invalid="ignore"):
            heats = temperatures[:, :, None]
            variances = center_variances(cell_weights, deviations, heats)
            log_volumes = n_features / 2 * np.log(2 * math.pi * variances)
        ball = -self.prior.log_constant(n_features)
        log_volumes = np.where(np.isfinite(log_volumes), log_volumes, np.inf)
        if not math.isinf(self.prior.scale):
            tails = self.prior.log_tails(centers)
            log_volumes += np.nan_to_num(tails, nan=0.0, neginf=_LEAST_LOG)
        log_volumes = np.minimum(log_volumes, ball)
        return (
            self.prior.log_sizes[: len(losses)]
            + gammaln(sizes + 1)
            - temperatures * losses
            + np.where(inside, log_volumes, 0).sum(axis=2)
            - sizes * ball
        )

    def run(self, chain, proposal, n_iter):
        """Run `n_iter` iterations of Algorithm 3 from the chain's state, in place."""
        max_clusters, n_features = chain.centers.shape
        points, merged = self._points, _merged(self._points)
        target = self.prior.target(self.temperature, n_features)
        slots = proposal.kernel_slots()
        states = np.stack([chain.centers, chain.centers])
        for_loss = work_space(points, max_clusters, n_states=2)
        order = np.empty(max_clusters, dtype=np.int64)
        work = kernels.Work(states, np.empty(max_clusters), order, *for_loss)
        k, now = chain.n_clusters, 0
        loss, n_owners = loss_at(points, states, k, self.manhattan, merged, for_loss)
        log_target = self.prior.log_density(chain.draw) - self.temperature * loss
        traces = [chain.trace]
        block = max(1, _BLOCK // (max_clusters * n_features))
        for begin in range(0, n_iter, block):
            trace = np.empty((min(block, n_iter - begin), 3), dtype=np.int64)
            trace[0] = k, n_owners, 0
            draws = proposal.draws(len(trace), self.prior.radius, chain.rng)
            log_target, now = kernels.run_chain(
                points,
                self.manhattan or None,
                merged,
                target,
                slots,
                draws,
                work,
                now,
                log_target,
                trace,
            )
            k, n_owners, _ = trace[-1]
            between = (draws.moves[:, 1] != 0).astype(int)
            chain.tally += np.column_stack(
                [
                    np.bincount(between, trace[:, 2], 2),
                    np.bincount(between, minlength=2),
                ]
            ).astype(int)
            traces.append(trace[:, :2])
        chain.centers[:] = states[now]
        chain.n_clusters = int(k)
        chain.trace = np.concatenate(traces)
        return chain
