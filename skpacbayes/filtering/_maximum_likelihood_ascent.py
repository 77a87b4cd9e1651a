"""Maximisation of a log-likelihood estimated by particle filters."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from .._chains import in_threads
from ._cloud import small_is_zero

N_STARTS = 10  # number of draws per parameter, of which the likeliest is the start
N_SEEDS = 4  # number of seeds averaged in the simplex search
N_SPREAD = 200  # number of draws that determine the unit of the search
N_SPREADS = 10  # range of the search on either side, in these units
COARSE = 0.2  # difference of corners, in nats, at which the simplex stops
LONGEST = 2.0  # largest step, in units of the design
FLATTEST, STEEPEST = 0.25, 4.0  # bounds of the curvatures of the last design
LEVEL = 0.1  # least difference, in nats, of the maximum and an end of the range
ROOT = 1.645  # signed root of the likelihood ratio at an end of a 90 % interval
N_PROFILES = 3  # largest number of points of a profile; the nearest to ROOT is kept
NEAR = 0.15  # difference of the logarithms of the roots that is near enough
N_STEPS = 3  # Newton steps of the other parameters on a profile


class Ascent:
    """Newton's method on quadratics, fitted to points about a standard error apart.

    All points of a design are evaluated with the same seeds. Each seed thus has its own
    surface, and the spread of the gradients gives the Monte Carlo error.

    Attributes
    ----------
    position : ndarray of shape (n_parameters,)
        The maximum, on the transformed scale.
    free : ndarray of bool of shape (n_parameters,)
        False for parameters at an end of their range.
    covariance : ndarray of shape (n_free, n_free) or None
        Inverse of the observed information, on the transformed scale; None if singular.
    noise : ndarray of shape (n_free, n_free)
        Monte Carlo covariance of the position.
    heights : ndarray of shape (n_repeats,)
        Estimates of the log-likelihood at the maximum.
    refusals : list of ValueError
        Errors of runs of the model, counted as likelihood 0.
    """

    @small_is_zero
    def __init__(self, target, n_repeats, n_jobs, generator):
        self.target = target
        self.n_jobs = n_jobs
        self.refusals = []
        priors = target.priors
        spread = priors.draw(N_SPREAD, generator)
        self.spread = spread.std(axis=0)
        self.ends = spread.mean(axis=0) + N_SPREADS * np.outer([-1, 1], self.spread)
        starts = priors.draw(N_STARTS * len(self.spread), generator)
        self.seeds = [int(s) for s in generator.integers(2**31 - 1, size=n_repeats)]
        self.free = np.full(len(self.spread), True)
        self.position = self._start(np.clip(starts, *self.ends))
        self.scale = np.diag(self.spread / 2)
        self.best = None  # heights, position and scale of the highest design
        self.covariance, self.noise = None, np.zeros_like(self.scale)

    def _start(self, starts):
        """Run a simplex search from the likeliest of several positions."""
        seeds = self.seeds[:N_SEEDS]
        first = logsumexp(self._log_likelihoods(starts, seeds[:1]), axis=0)
        if not first.max() > -np.inf:
            if self.refusals:
                raise self.refusals[0]
            raise ValueError(
                f"The likelihood is zero at each of {len(starts)} draws of the "
                "parameters: check that the ranges are in the units of the rows "
                "(variances in their squares), and try narrower ranges, or more "
                "particles."
            )
        best = starts[first.argmax()]
        inwards = np.where(best + self.spread / 2 > self.ends[1], -0.5, 0.5)
        corners = np.clip(best + np.diag(inwards * self.spread), *self.ends)
        with np.errstate(invalid="ignore"):  # corners of likelihood 0
            found = minimize(
                lambda u: -logsumexp(self._log_likelihoods(u[None], seeds)),
                best,
                method="Nelder-Mead",
                bounds=self.ends.T,
                options={
                    "initial_simplex": np.vstack([best, corners]),
                    "xatol": np.inf,
                    "fatol": COARSE,
                    "maxfev": 100 * len(best),
                },
            )
        return found.x

    def _log_likelihoods(self, positions, seeds):
        """Return estimates of the log-likelihood, (n_seeds, n_positions)."""
        calls = [
            (self._log_likelihood, position, seed)
            for seed in seeds
            for position in positions
        ]
        return np.reshape(in_threads(self.n_jobs, calls), (len(seeds), len(positions)))

    def _log_likelihood(self, position, seed):
        """Return an estimate of the log-likelihood, -inf if the model raises an error.

        The ends of a range are evaluated, where the model may not be defined.
        """
        try:
            return self.target.log_likelihood(position, seed)
        except ValueError as error:
            self.refusals.append(error)
            return -np.inf

    def iterate(self, tol):
        """Yield whether the iteration has converged, after each iteration."""
        while True:
            curved, step = self._newton()
            near = step < max(tol, min(self.noise_share, 1.0))
            yield near and not self._reach_end() and curved

    @property
    def noise_share(self):
        """Return the largest Monte Carlo error, in standard errors, or infinity."""
        if self.covariance is None:
            return np.inf
        shares = np.diag(self.noise) / np.diag(self.covariance)
        return float(np.sqrt(np.max(shares, initial=0.0)))

    @small_is_zero
    def _newton(self):
        """Move to the maximum of the quadratic.

        Returns
        -------
        curved : bool
            Whether the width of the design was about a standard error in all
            directions, or larger due to noise.
        step : float
            Length of the step in standard errors.
        """
        design = design_of(len(self.scale))
        positions = np.repeat(self.position[None], len(design), axis=0)
        positions[:, self.free] += design @ self.scale.T
        values = log_mean(self._log_likelihoods(positions, self.seeds))
        self.covariance, self.heights = None, values[:, 0]
        if not np.isfinite(values).all():
            self.scale = self.scale / 2
            return False, np.inf
        if self.best is None:
            gain, error = np.inf, 0.0
        else:
            gain, error = mean_and_error(values[:, 0] - self.best[0])
        if gain < -1.0 - 3.0 * error:
            self.heights, self.position, scale = self.best
            self.scale = scale / 4
            self.best = self.heights, self.position, self.scale
            return False, np.inf
        if gain > 0.0:
            self.best = values[:, 0], self.position, self.scale
        heights, gradients, hessians = quadratics(design, values)
        hessian = hessians.mean(axis=0)
        curvatures, axes = np.linalg.eigh(-hessian)
        errors = mean_and_error(np.einsum("sij,ik,jk->sk", hessians, axes, axes))[1]
        # On a narrow design noise would appear as curvature: the design is a standard
        # error wide, or wider until curvatures exceed their noise.
        shares = curvatures / (1.0 + 4.0 * errors)
        safe = np.maximum(curvatures, FLATTEST)
        inverse = (axes / safe) @ axes.T
        step = inverse @ gradients.mean(axis=0)
        length = np.sqrt(step @ ((axes * safe) @ axes.T) @ step)
        step = step * min(1.0, LONGEST / max(np.linalg.norm(step), LONGEST))
        self.heights = heights + gradients @ step + 0.5 * (hessians @ step) @ step
        moved = self.position.copy()
        moved[self.free] += self.scale @ step
        self.position = np.clip(moved, *self.ends)
        seen = bool(((shares > FLATTEST) & (curvatures > 3.0 * errors)).all())
        if seen:
            moves = (gradients + hessians @ step) @ inverse @ self.scale.T
            self.noise = np.cov(moves, rowvar=False).reshape(self.scale.shape)
            self.noise = self.noise / len(values)
            self.covariance = self.scale @ inverse @ self.scale.T
        self._rescale(axes / np.sqrt(np.maximum(shares, FLATTEST)))
        return seen and bool((shares < STEEPEST).all()), length

    @small_is_zero
    def profiles(self):
        """Find where the profile likelihood falls as at an end of an interval of 90 %.

        Returns
        -------
        shifts, roots : ndarray of shape (2, n_parameters)
            Distances from the maximum, down and up, and roots of twice the fall of the
            log-likelihood there; NaN where it has no peak or the parameter is fixed.
        """
        shifts, roots = np.full((2, 2, len(self.free)), np.nan)
        if self.covariance is None:
            return shifts, roots
        for k, place in enumerate(np.flatnonzero(self.free)):
            spread = np.sqrt(self.covariance[k, k])
            along = self.covariance[:, k] / self.covariance[k, k]
            for side, sign in enumerate((-1.0, 1.0)):
                most = abs(self.ends[side, place] - self.position[place])
                if most == 0.0:  # the interval ends there
                    continue
                shift, known, line = ROOT * spread, [], sign * along
                for _ in range(N_PROFILES):
                    fall, line = self._fall(k, shift, line)
                    root = np.sqrt(2.0 * fall)
                    known.append((abs(np.log(max(root, 1e-3) / ROOT)), shift, root))
                    if known[-1][0] < NEAR:
                        break
                    shift = min(distance(ROOT, spread, shift, root), 3 * shift, most)
                _, shifts[side, place], roots[side, place] = min(known)
        return shifts, roots

    def _fall(self, k, shift, line):
        """Log-likelihood lost where a free parameter is moved, others at their best.

        The others are looked for from ``shift * line`` away, with ``line[k]`` 1 or -1;
        the line to where they are at their best is returned, too.
        """
        within, others = self.covariance, np.arange(len(line)) != k
        rest = within - np.outer(within[k], within[k]) / within[k, k]
        scale = np.linalg.cholesky(rest[np.ix_(others, others)])
        places = np.flatnonzero(self.free)
        position, best = self.position.copy(), -np.inf
        position[places] += shift * line
        design = design_of(len(scale))
        for _ in range(N_STEPS):
            positions = np.repeat(position[None], len(design), axis=0)
            positions[:, places[others]] += design @ scale.T
            positions = np.clip(positions, *self.ends)
            values = log_mean(self._log_likelihoods(positions, self.seeds)).mean(axis=0)
            if not np.isfinite(values).all():
                best = max(best, values[0])
                break
            (height,), (gradient,), (hessian,) = quadratics(design, values[None])
            curvatures, axes = np.linalg.eigh(-hessian)
            step = (axes / np.maximum(curvatures, FLATTEST)) @ (axes.T @ gradient)
            step = step * min(1.0, LONGEST / max(np.linalg.norm(step), LONGEST))
            gain = gradient @ step + 0.5 * step @ hessian @ step
            best = max(best, height, height + gain)
            position[places[others]] += scale @ step
            if step @ step < 1.0:
                break
        line = (position - self.position)[places] / shift
        return max(0.0, self.heights.mean() - best), line

    def _rescale(self, factor):
        """Set the width of the next design to a standard error, at most three units."""
        scale = self.scale @ factor
        widths = np.linalg.norm(scale, axis=1)
        most = 3 * self.spread[self.free]
        self.scale = scale * np.minimum(1.0, most / widths)[:, None]

    @small_is_zero
    def _reach_end(self):
        """Fix a parameter at an end of its range that is as good as the maximum.

        From an end that is better, the search continues first: it had stopped where the
        likelihood is flat.
        """
        places = np.flatnonzero(self.free)
        positions = np.repeat(self.position[None], 1 + 2 * len(places), axis=0)
        for k, place in enumerate(places):
            positions[1 + 2 * k : 3 + 2 * k, place] = self.ends[:, place]
        values = self._log_likelihoods(positions, self.seeds)
        means = logsumexp(values, axis=0)
        best = int(np.argmax(means[1:])) if len(places) else 0
        if not len(places) or means[0] - means[1 + best] > LEVEL:
            return False
        if self.free.all() and means[1 + best] > means[0] + 1.0:
            self.position = self._start(positions[[1 + best]])
            self.scale = np.diag(self.spread / 2)
            self.best = None
            return True
        k = best // 2
        self.position, self.heights = positions[1 + best], log_mean(values)[:, 1 + best]
        self.free[places[k]] = False
        kept = np.ix_(*2 * [np.delete(np.arange(len(places)), k)])
        self.scale = np.linalg.cholesky((self.scale @ self.scale.T)[kept])
        if self.covariance is not None:  # given what is fixed
            self.covariance = np.linalg.inv(np.linalg.inv(self.covariance)[kept])
        self.noise = self.noise[kept]
        self.best = None
        return True


def design_of(n):
    """Return the points of a design: the centre, the axes and the diagonals."""
    axes = np.eye(n)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    diagonals = [(axes[i] + axes[j]) / np.sqrt(2) for i, j in pairs]
    points = np.reshape([*axes, *diagonals], (-1, n)) if n else axes
    return np.vstack([np.zeros((1, n)), points, -points])


def distance(root, spread, shift, known):
    """Distance from the maximum at which the root of twice the fall has a value.

    It grows as ``root * spread`` near the maximum, and is `shift` at the root `known`;
    between and beyond, it bends away from the tangent the way it does there.
    """
    shift = shift / spread
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        flat = root + (shift - known) * (root / known) ** 2
        steep = root / (1.0 + root * (1.0 / shift - 1.0 / known))
        return spread * np.where(shift > known, flat, steep)


def mean_and_error(values):
    """Return the mean over the first axis, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def log_mean(log_likelihoods):
    """Return log mean likelihoods, as the means of values for each row.

    The value of row r is ``log(mean) + p_r / mean - 1``, whose spread gives the
    standard error of the logarithm (infinitesimal jackknife). The mean of the
    logarithms would be biased by minus half their variance, which depends on the
    parameters.
    """
    total = logsumexp(log_likelihoods, axis=0) - np.log(len(log_likelihoods))
    with np.errstate(under="ignore", invalid="ignore"):
        return total + np.expm1(log_likelihoods - total)


def quadratics(design, values):
    """Return height, gradient and Hessian at the centre, for each row of values."""
    n = design.shape[1]
    rows, columns = np.triu_indices(n)
    halves = np.where(rows == columns, 0.5, 1.0)
    products = design[:, rows] * design[:, columns] * halves
    basis = np.column_stack([np.ones(len(design)), design, products])
    found = values @ np.linalg.pinv(basis).T
    hessians = np.empty((len(values), n, n))
    hessians[:, rows, columns] = hessians[:, columns, rows] = found[:, 1 + n :]
    return found[:, 0], found[:, 1 : 1 + n], hessians
