"""One step of a particle filter: resample, move and weight the cloud."""

import math

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from ._cloud import Cloud, Step, forecast, weigh
from ._tempering import tempered

FEWEST = 1.5  # effective sample size below which one particle dominates
ENOUGH = 50  # least number of particles for a warning


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
        roots, n_resamplings, past = np.arange(len(weighting.weights)), 0, 0.0
    else:
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
    )
    return Step(moved, weighting.evidence, ahead.ancestors)


class Collapses:
    """Rows of zero likelihood, and rows that leave one particle, for warnings."""

    def __init__(self):
        self._times, self._n, self._vanished = [], 0, []

    def note(self, step, row):
        """Record a step whose row leaves weight to one particle, or to none."""
        cloud = step.cloud
        if step.evidence == -math.inf:
            self._vanished.append(cloud.time)
        if cloud.effective_size < FEWEST and not row.silent:
            self._times.append(cloud.time)
            self._n = len(cloud.weights)

    def warn(self):
        """Warn if there were such rows, and there are enough particles."""
        if self._vanished:
            first, count = self._vanished[0], len(self._vanished)
            rows = f"row {first}" if count == 1 else f"{count} rows, first row {first}"
            warn_user(
                f"The likelihood of {rows} (0 is the first) is zero at every "
                "particle; the filter continues as if the row were missing, with a "
                "log-likelihood of -inf. Try more particles, or a wider model.",
                ConvergenceWarning,
            )
        if self._times and self._n >= ENOUGH:
            first, count = self._times[0], len(self._times)
            rows = f"row {first}" if count == 1 else f"{count} rows, first row {first}"
            warn_user(
                f"One of {self._n} particles has most of the weight at {rows} (0 is "
                "the first): the state and the log-likelihood there depend on it. The "
                "row may be an outlier, or too precise for this number of particles: "
                "try a wider log_likelihood, more particles, a proposal or tempering.",
                ConvergenceWarning,
            )
