"""One row of a particle filter: the cloud is moved on, weighed, and replaced."""

import math

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from ._cloud import Cloud, Step, forecast, weigh
from ._tempering import tempered

FEWEST = 1.5  # effective particles: one has most of the weight
ENOUGH = 50  # particles, of which so few is a collapse


def look(cloud, row, model, sampling, generator):
    """Move the cloud to the time of a row, and weigh it by the row.

    Parameters
    ----------
    cloud : Cloud or None
        None before row 0.
    row : Row
        The next row.
    model : CalledModel
        The state-space model.
    sampling : Bootstrap or QuasiMonteCarlo
        How ancestors and noise are drawn.
    generator : numpy.random.Generator
        Random numbers.

    Returns
    -------
    ahead : Ahead
        The cloud at the row.
    weighting : Weighting
        What the row says of it.
    """
    if sampling.tempering is not None:
        return tempered(cloud, row, model, sampling, generator)
    ahead = forecast(cloud, row, model, sampling, generator)
    return ahead, weigh(ahead, row, model)


def advance(cloud, row, model, sampling, generator, underflow="warn"):
    """Move the cloud on by one row: resample, move, weigh (a bootstrap filter's step).

    The arguments are those of `look`; `underflow`, "warn" or "raise", says what to do
    where the likelihood vanishes (`Collapses` warns). Returns the `Step`.
    """
    ahead, weighting = look(cloud, row, model, sampling, generator)
    time = ahead.moved.time
    if weighting.evidence == -math.inf and underflow == "raise":
        raise FloatingPointError(
            f"The likelihood of row {time} (0 is the first) vanishes at every "
            "particle: more particles, or a wider model, may reach it."
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
    """Rows with which no particle agrees, or hardly one: for a warning of each."""

    def __init__(self):
        self._times, self._n, self._vanished = [], 0, []

    def note(self, step, row):
        """Note a step whose row leaves the weight to one particle, or to none."""
        cloud = step.cloud
        if step.evidence == -math.inf:
            self._vanished.append(cloud.time)
        if cloud.effective_size < FEWEST and not row.silent:
            self._times.append(cloud.time)
            self._n = len(cloud.weights)

    def warn(self):
        """Warn if there were such rows, and particles enough to hope for more."""
        if self._vanished:
            first, count = self._vanished[0], len(self._vanished)
            rows = f"row {first}" if count == 1 else f"{count} rows, first row {first}"
            warn_user(
                f"The likelihood of {rows} (0 is the first) vanishes at every "
                "particle; the filter goes on as if what vanishes were missing, with a "
                "log-likelihood of -inf. More particles, or a wider model, may help.",
                ConvergenceWarning,
            )
        if self._times and self._n >= ENOUGH:
            first, count = self._times[0], len(self._times)
            rows = f"row {first}" if count == 1 else f"{count} rows, first row {first}"
            warn_user(
                f"One of {self._n} particles has most of the weight at {rows} (0 is "
                "the first): the state and the log-likelihood there rest on it. The "
                "row may be an outlier, or more precise than the particles can follow: "
                "try a wider log_likelihood, more particles, a proposal or tempering.",
                ConvergenceWarning,
            )
