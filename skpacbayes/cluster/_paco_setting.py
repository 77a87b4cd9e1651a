"""The parameters of `PACOClusterer`, checked together, with "auto" resolved."""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import softmax

from ._paco_chain import CenterPrior
from ._units import scaled

# max_clusters=None where no mixture chooses the number.
_LARGEST = 20


@dataclass(frozen=True)
class Setting:
    """The parameters of `PACOClusterer`, with "auto" resolved.

    `regret` is the paper's setting: data not centred, prior on ordered tuples, inverse
    temperature of Corollary 3. Otherwise data are centred, the prior is on sets, and
    the inverse temperature is calibrated to the noise. `remembers`: whether a stream
    forgets nothing, but could.
    """

    max_clusters: int | None
    shape: str
    manhattan: bool
    regret: bool
    inverse_temperature: object
    cluster_penalty: float
    prior_scale: float
    radius: object
    variance_term: float
    matched: bool
    n_iter: int
    n_chains: int
    scale: object
    remembers: bool

    @classmethod
    def of(cls, estimator):
        """Resolve the parameters of an estimator; raise ValueError if they conflict."""
        regret = estimator.calibration == "regret"
        manhattan = estimator.loss == "manhattan"
        shape, forgetting = estimator.shape, estimator.forgetting
        if regret and shape in ("diagonal", "tied"):
            raise ValueError(
                f"shape={shape!r} needs calibration='clusters': "
                "calibration='regret' uses the Euclidean distance."
            )
        if manhattan and shape in ("diagonal", "tied"):
            raise ValueError(
                f"shape={shape!r} needs loss='squared_euclidean'; divide the "
                "columns by their scales for loss='manhattan'."
            )
        if regret and forgetting != 0.0:
            raise ValueError(
                f"forgetting={forgetting!r} needs calibration='clusters': "
                "calibration='regret' bounds the regret over all rows."
            )
        variance_term = estimator.variance_term
        if variance_term == "auto":
            variance_term = 1.0 if regret else 0.0
        return cls(
            estimator.max_clusters,
            shape,
            manhattan,
            regret,
            estimator.inverse_temperature,
            estimator.cluster_penalty,
            estimator.prior_scale if estimator.prior == "student" else math.inf,
            estimator.radius,
            float(variance_term),
            estimator.proposal == "matched",
            estimator.n_iter,
            estimator.n_chains,
            estimator.scale,
            not regret and forgetting == 0.0,
        )

    @property
    def power(self):
        """Power of the unit of the data in the unit of losses."""
        return 1 if self.manhattan else 2

    @property
    def calibrated(self):
        """Whether the inverse temperature is calibrated to the noise."""
        return not self.regret and self.inverse_temperature == "auto"

    @property
    def shapes(self):
        """Shapes that clusters may have."""
        if self.shape != "auto":
            return (self.shape,)
        if self.manhattan or not self.calibrated or self.scale != "auto":
            return ("round",)
        return ("round", "diagonal", "tied")

    @property
    def mixtures(self):
        """Whether a mixture chooses the number and the shape of the clusters."""
        return not self.manhattan and (self.calibrated or self.shapes != ("round",))

    @property
    def default_prior(self):
        """Whether the prior on the number of clusters is the default one."""
        return self.cluster_penalty == 1.0

    @property
    def largest_prior(self):
        """Largest number of clusters of a prior that is fixed before the data."""
        return self.max_clusters or _LARGEST

    def center_prior(self, max_clusters, radius, prior_scale=None):
        """Return the quasi-prior of up to `max_clusters` centres, for R = `radius`."""
        log_sizes = self._log_sizes(max_clusters)
        scale = self.prior_scale if prior_scale is None else prior_scale
        return CenterPrior(log_sizes, float(2 * radius), float(scale))

    def size_prior(self):
        """q(k) of the quasi-prior, k = 1, ..., max_clusters."""
        return softmax(self._log_sizes(self.largest_prior))

    def _log_sizes(self, max_clusters):
        """Log q(k), up to a constant, k = 1, ..., max_clusters."""
        return CenterPrior.log_sizes_of(
            max_clusters, self.cluster_penalty, ordered=self.regret
        )

    def radius_for(self, largest_norm):
        """Return R: the given one, or one for rows up to a norm about the origin."""
        if self.radius != "auto":
            return float(self.radius)
        factor = 1.0 if self.regret else 3.0
        return factor * largest_norm if largest_norm > 0 else 1.0

    def temperature_for(self, n_rows, n_features, radius, exponent=0):
        """Return the inverse temperature after `n_rows` rows, if it is not calibrated.

        The result and `radius` are in units of 2^`exponent`.
        """
        if self.inverse_temperature == "auto":  # Corollary 3
            with np.errstate(over="ignore", divide="ignore"):
                scale = 2 * math.sqrt(n_rows) * np.float64(radius) ** self.power
                return (n_features + 2) / scale
        temperature = self.inverse_temperature
        if callable(self.inverse_temperature):
            temperature = self.inverse_temperature(n_rows)
            if not (isinstance(temperature, Real) and 0 < temperature < math.inf):
                raise ValueError(
                    "inverse_temperature must return positive finite numbers, and "
                    f"returned {temperature!r} for t={n_rows:g}."
                )
        return scaled(float(temperature), self.power * exponent)
