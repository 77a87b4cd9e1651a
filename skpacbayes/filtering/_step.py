"""One step of a particle filter: resample, move and weight the cloud."""

import math

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._stream import has_doubled
from ._cloud import Cloud, Step, forecast, moments, unweighted, weigh
from ._likelihood_noise import new_block, traced_lineage
from ._tempering import tempered

FEWEST = 1.5  # effective sample size below which one particle dominates
# Few effective particles whose mean is many deviations of the forecast from its mean
# are the nearest of the cloud to a row that no particle explains: fewer than the first
# number, at more than the second.
EDGES = (3.0, 2.6), (10.0, 3.2)
MOST_STAGES = 8  # of tempering, each of which moves particles a step only
LEAST_LOG_LIKELIHOOD = -1e15  # of a row; the distance of floats there is 0.125
ENOUGH = 50  # least number of particles for a warning
# A column of the state that hardly moves is looked for whenever the number of rows has
# doubled, from FIRST_LOOK on. It is lost where its values are those of fewer particles
# of row 0 than ROOTS, by their weights; but of three or more, which tell it from
# a discrete state that stays. HARDLY is a share of its variance, ROUNDING one of the
# square of its largest value.
FIRST_LOOK = 8
ROOTS, FEWEST_ROOTS = 20.0, 3
HARDLY, ROUNDING = 1e-3, 1e-28


def look(cloud, row, model, sampling, generator):
    """Move the cloud to the time of a row, and weight it by the row.

    Parameters
    ----------
    cloud : Cloud or None
        None before row 0.
    row : Row
        The next row.
    model : CalledModel
        The state-space model.
    sampling : Bootstrap or QuasiMonteCarlo
        Sampling scheme of ancestors and noise.
    generator : numpy.random.Generator
        Random numbers.

    Returns
    -------
    ahead : Ahead
        The cloud at the row.
    weighting : Weighting
        Its weights given the row.
    """
    if sampling.tempering is not None:
        return tempered(cloud, row, model, sampling, generator)
    ahead = forecast(cloud, row, model, sampling, generator)
    return ahead, weigh(ahead, row, model)


def advance(cloud, row, model, sampling, generator, underflow="warn"):
    """Update the cloud by one row: resample, move, weight.

    The arguments are those of `look`; `underflow`, "warn" or "raise": what to do if the
    likelihood is zero at all particles (`Collapses` warns). Returns the `Step`.
    """
    ahead, weighting = look(cloud, row, model, sampling, generator)
    time = ahead.moved.time
    if weighting.evidence == -math.inf and underflow == "raise":
        raise FloatingPointError(
            f"The likelihood of row {time} (0 is the first) is zero at every "
            "particle: try more particles, or a wider model."
        )
    resampled = ahead.ancestors is not None
    if cloud is None:
        n_particles = len(weighting.weights)
        roots, n_resamplings, past = np.arange(n_particles), 0, 0.0
        weights = np.full(n_particles, 1.0 / n_particles)
        lineage = new_block(weights)
    else:
        lineage, weights = cloud.lineage or new_block(cloud.weights), cloud.weights
        roots, n_resamplings = cloud.roots, cloud.n_resamplings
        past = cloud.log_likelihood
    moved = Cloud(
        ahead.moved.particles,
        weighting.log_weights,
        weighting.weights,
        roots.take(ahead.ancestors) if resampled else roots,
        weighting.effective_size,
        time,
        n_resamplings + resampled,
        past + weighting.evidence,
        row.values.copy(),
        ahead.recent,
        traced_lineage(lineage, weights, ahead) if resampled else lineage,
    )
    return Step(
        moved,
        weighting.evidence,
        ahead.ancestors,
        ahead.log_weights,
        weighting.n_stages,
    )


class Collapses:
    """Rows of zero likelihood, and rows that leave few values, for warnings."""

    def __init__(self):
        self._times, self._n, self._vanished, self._constant = [], 0, [], None
        self._far = []  # rows that took many stages of tempering
        self._rounded = []  # rows of lost differences between particles

    def note(self, step, row, before):
        """Record a step whose row leaves weight to one particle, or to none.

        before : the cloud before the step, or None.
        """
        cloud = step.cloud
        looks = has_doubled(cloud.time, cloud.time + 1) and cloud.time >= FIRST_LOOK - 1
        if looks and before is not None and self._constant is None:
            self._constant = lost_constant(before, step)
        if step.evidence == -math.inf:
            self._vanished.append(cloud.time)
        elif step.evidence < LEAST_LOG_LIKELIHOOD:
            self._rounded.append(cloud.time)
        size = cloud.effective_size
        few = size < FEWEST or is_at_edge(step)
        if step.n_stages > MOST_STAGES:
            self._far.append(cloud.time)
        elif few and not row.silent:
            self._times.append(cloud.time)
            self._n = len(cloud.weights)

    def warn(self):
        """Warn if there were such rows, and there are enough particles."""
        if self._constant is not None:
            column, count, time = self._constant
            warn_user(
                f"Column {column} of the state hardly moves, and its values at row "
                f"{time} (0 is the first) are those of about {count:.0f} particles of "
                "row 0: its mean and deviation are not reliable. If it is a constant, "
                "make it a parameter of the model, and use ParticleMarginalMetropolis "
                "or SMC2; otherwise use more particles, or an initial distribution "
                "that is nearer to the state.",
                ConvergenceWarning,
            )
        if self._vanished:
            warn_user(
                f"The likelihood of {named(self._vanished)} is zero at every "
                "particle; the filter continues as if the row were missing, with a "
                "log-likelihood of -inf. Try more particles, or a wider model.",
                ConvergenceWarning,
            )
        if self._rounded:
            warn_of_rounding(named(self._rounded), "the model")
        if self._times and self._n >= ENOUGH:
            warn_user(
                f"One or a few of {self._n} particles have most of the weight at "
                f"{named(self._times)}: the state and the log-likelihood there depend "
                "on them. The row may be an outlier, or too precise for this number of "
                "particles: try a wider log_likelihood, more particles, a proposal or "
                "tempering.",
                ConvergenceWarning,
            )
        if self._far:
            warn_user(
                f"More than {MOST_STAGES} stages of tempering were needed at "
                f"{named(self._far)}, far from all particles, which may not have "
                "reached it: the state and the log-likelihood there may be wrong. The "
                "row may be an outlier, or too precise for this number of particles: "
                "try a wider log_likelihood, or more particles.",
                ConvergenceWarning,
            )


def warn_of_rounding(rows, what):
    """Warn of rows at which the differences of log-likelihoods are lost to rounding."""
    warn_user(
        f"The log-likelihood of {rows} is below {LEAST_LOG_LIKELIHOOD:g}, where a "
        "difference of 1 is lost to rounding: the state and the parameters do not "
        f"depend on the data there. Check that {what} is in the units of the rows.",
        ConvergenceWarning,
    )


def named(times):
    """Name one or several rows."""
    if len(times) == 1:
        return f"row {times[0]} (0 is the first)"
    return f"{len(times)} rows, first row {times[0]} (0 is the first)"


def is_at_edge(step):
    """Whether few particles have the weight, far from the mean of the forecast."""
    particles, size = step.cloud.particles, step.cloud.effective_size
    limits = [far for few, far in EDGES if size < few]
    if not limits or step.n_stages > 1:  # tempering moves particles to the row
        return False
    with np.errstate(all="ignore"):
        weights = unweighted(step.log_forecast, 0.0).weights
        mean, deviation = moments(weights, particles)
        gaps = np.abs(step.cloud.weights @ particles - mean)
        return bool((gaps > min(limits) * deviation).any())


def lost_constant(before, step):
    """Find a column of the state that hardly moves, and has few values.

    before : the cloud before the step. Returns the column, the effective number of the
    particles of row 0 whose values it has, and the index of the row. None if there is
    no such column, or if particles have not been resampled.
    """
    cloud = step.cloud
    particles, weights, roots = cloud.particles, cloud.weights, cloud.roots
    found, own = np.unique(roots, return_inverse=True)
    if len(weights) < ENOUGH or not FEWEST_ROOTS <= len(found) <= len(weights) / 2:
        return None
    shares = np.bincount(own, weights)
    count = 1.0 / float(shares @ shares)
    if count >= ROOTS:
        return None
    earlier = before.particles
    if step.ancestors is not None:
        earlier = earlier[step.ancestors]
    for column, values in enumerate(particles.T):
        means = np.bincount(own, weights * values) / np.where(shares > 0, shares, 1.0)
        _, exponent = np.frexp(np.abs(values).max())
        limit = HARDLY * variance(weights, values, exponent) + ROUNDING
        if len(np.unique(values)) >= len(found):
            within = variance(weights, values - means[own], exponent)
            moved = variance(weights, values - earlier[:, column], exponent)
            if within <= limit and moved <= limit:
                return column, count, cloud.time
    return None


def variance(weights, values, exponent):
    """Return the weighted variance, in units of 2**exponent, which keep it finite."""
    values = np.ldexp(values, -exponent)
    return weights @ np.square(values - weights @ values)
