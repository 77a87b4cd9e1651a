"""From rows to the quasi-posterior of PACO, its chains, and what they say."""

import math
import warnings
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._base import user_stack_level
from ._calibration import Calibration, Splitting, calibrate_batch, calibrate_stream
from ._path import Path, floor_scale, rows_loss, scale_of, shares_of
from ._quasi_posterior import CenterPrior, Chain, Proposal, QuasiPosterior
from ._summary import exponent_of, scaled

_DISAGREEMENT = 0.35


@dataclass(frozen=True)
class Setting:
    """The parameters of `PACOClusterer`, with what "auto" stands for resolved.

    `regret` is the paper's setting: data as they are, prior on ordered tuples, inverse
    temperature of Corollary 3; else data are centred, the prior is on sets, and the
    inverse temperature follows the noise.
    """

    max_clusters: int
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

    @property
    def power(self):
        """Losses scale with the data to this power."""
        return 1 if self.manhattan else 2

    @property
    def calibrated(self):
        """Whether the inverse temperature is taken from the noise in the data."""
        return not self.regret and self.inverse_temperature == "auto"

    @property
    def streams_by_cell(self):
        """Whether a stream needs a noise scale for each cell."""
        return self.calibrated and self.scale == "auto"

    def center_prior(self, max_clusters, radius, prior_scale=None):
        """Quasi-prior of up to `max_clusters` centres, for R = `radius`."""
        log_sizes = CenterPrior.log_size_law(
            max_clusters, self.cluster_penalty, ordered=self.regret
        )
        scale = self.prior_scale if prior_scale is None else prior_scale
        return CenterPrior(log_sizes, float(2 * radius), float(scale))

    def size_law(self):
        """q(k) of the quasi-prior, k = 1, ..., max_clusters."""
        log_sizes = CenterPrior.log_size_law(
            self.max_clusters, self.cluster_penalty, ordered=self.regret
        )
        return softmax(log_sizes)

    def radius_for(self, largest_norm):
        """R: given, or what covers rows up to that norm about the prior's origin."""
        if self.radius != "auto":
            return float(self.radius)
        factor = 1.0 if self.regret else 3.0
        return factor * largest_norm if largest_norm > 0 else 1.0

    def temperature_for(self, n_rows, n_features, radius, exponent=0):
        """Inverse temperature after `n_rows` rows where the noise has no say in it.

        It, and `radius`, are in units of 2^`exponent`.
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


@dataclass(frozen=True)
class Outcome:
    """What the chains found, in the units of the data.

    `centers`: the best centres known for the number of clusters that the chains visit
    most; `shares`: what their clusters count for in a density of rows; `draw`: the last
    state of the first chain.
    """

    centers: np.ndarray
    shares: np.ndarray
    draw: np.ndarray
    frequencies: np.ndarray
    temperature: float
    radius: float
    scale: float
    acceptance_rate: np.ndarray
    n_iter: int


class GibbsProblem:
    """The quasi-posterior of some rows, and the chains on it.

    Inside, rows are `offset` less and in units of 2^`exponent`, so that nothing
    depends on the origin and the unit of the data, and nothing overflows.

    Parameters
    ----------
    setting : Setting
    rows : Rows
        In units of 2^`exponent`.
    rng : Generator
        For the k-means path.
    exponent : int
    norm : float or None
        Largest norm of the rows in data units, if not that of `rows`.
    tracker : CellTracker or None
        Along a stream: the cells so far.
    past : tuple or None
        Along a stream: the last row, in data units, and whether the order of the rows
        is that of chance.
    """

    def __init__(
        self, setting, rows, rng, *, exponent=0, norm=None, tracker=None, past=None
    ):
        self.setting = setting
        self.n_rows = float(rows.weights.sum())
        center = np.zeros(rows.points.shape[1]) if setting.regret else rows.mean
        step = exponent_of(rows.points - center)
        self.rows = rows.about(center, step, setting.power)
        self.varying = np.ones(len(center), dtype=bool)
        if not setting.regret:  # a constant column holds neither noise nor clusters
            self.varying = np.ptp(self.rows.points, axis=0) > 0
            self.varying[0] |= not self.varying.any()
            varying = np.ascontiguousarray(self.rows.points[:, self.varying])
            self.rows = replace(self.rows, points=varying)
        self.offset = scaled(center, exponent)
        self.exponent = step + exponent
        if norm is None:
            norm = self.largest_norm
        self.radius = setting.radius_for(norm)
        calibration = self._calibration(tracker, past, rng)
        self.path = calibration.path
        weights = self.rows.weights * calibration.row_weights
        prior = setting.center_prior(
            len(self.path.losses),
            self.into(self.radius),
            self.into(setting.prior_scale),
        )
        self.posterior = QuasiPosterior(
            self.rows.points,
            weights,
            self.rows.spreads,
            self.rows.forecasts if setting.variance_term > 0 else np.zeros((0, 3)),
            float(calibration.temperature),
            prior,
            setting.manhattan,
        )

    @property
    def largest_norm(self):
        """Largest distance of a point from the prior's origin, in data units."""
        return self.out(math.sqrt((self.rows.points**2).sum(axis=1).max()))

    def check_radius(self):
        """Refuse rows outside the ball of a radius that the user gave."""
        norm = self.largest_norm
        if norm > self.radius:
            origin = "the origin" if self.setting.regret else "the mean"
            raise ValueError(
                f"radius={self.radius:.6g} is smaller than the largest distance of a "
                f"row from {origin}, {norm:.6g}."
            )

    def into(self, value, power=1):
        """From data units to those inside."""
        return scaled(value, -power * self.exponent)

    def out(self, value, power=1):
        """From the units inside to those of the data."""
        return scaled(value, power * self.exponent)

    def start_chains(self, rng):
        """Chains at the k-means centres that the Laplace approximation prefers."""
        posterior, path = self.posterior, self.path
        losses = [
            posterior.loss(path.centers[k - 1, :k])
            for k in range(1, len(path.losses) + 1)
        ]
        evidences = posterior.log_evidences(
            np.array(losses),
            path.cell_weights,
            path.deviations(self.setting.manhattan),
        )
        n_clusters = int(np.argmax(evidences[: path.n_found])) + 1
        start = self._inside_ball(path.centers[n_clusters - 1, :n_clusters])
        seeds = rng.integers(2**63, size=self.setting.n_chains)
        return [Chain.start(start, len(path.losses), seed) for seed in seeds]

    def run(self, chains, n_iter, n_jobs=None):
        """Run `n_iter` more iterations of every chain."""
        proposal = self._proposal()
        if len(chains) == 1:
            self.posterior.run(chains[0], proposal, n_iter)
        else:
            Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(self.posterior.run)(chain, proposal, n_iter) for chain in chains
            )

    def outcome(self, chains):
        """Read the chains."""
        max_clusters = self.setting.max_clusters
        laws = [chain.frequencies(max_clusters) for chain in chains]
        frequencies = np.mean(laws, axis=0)
        apart = max(0.5 * np.abs(law - frequencies).sum() for law in laws)
        if apart > _DISAGREEMENT:
            warnings.warn(
                f"the {len(chains)} chains disagree on the number of clusters (total "
                f"variation {apart:.2f} from their mean): increase n_iter="
                f"{self.setting.n_iter}.",
                ConvergenceWarning,
                stacklevel=user_stack_level(),
            )
        owners = np.mean(
            [chain.frequencies(max_clusters, occupied=True) for chain in chains], axis=0
        )
        centers = self.path.solution(int(np.argmax(owners)) + 1)
        tally = sum(chain.tally for chain in chains)
        draw = chains[0].draw
        if not (self.setting.regret or self.path.losses[0] > 0):
            draw = centers  # equal rows: the prior's ball has no size yet
        return Outcome(
            self._in_data(centers),
            shares_of(self.rows, centers, self.setting.manhattan),
            self._in_data(draw),
            frequencies,
            float(self.out(self.posterior.temperature, -self.setting.power)),
            self.radius,
            self._noise_scale(centers),
            tally[:, 0] / np.maximum(tally[:, 1], 1),
            len(chains[0].trace),
        )

    def _calibration(self, tracker, past, rng):
        """Weights, k-means path and inverse temperature, in the units inside."""
        setting, rows, most = self.setting, self.rows, self.setting.max_clusters
        n_features = rows.points.shape[1]
        splitting = Splitting(
            n_features,
            float(self.into(self.radius)),
            setting.manhattan,
        )
        if tracker is not None:
            origin = self.offset[self.varying]
            tracker.set_frame(origin, self.exponent)
            past = self.into(past[0][self.varying] - origin), past[1]
            return calibrate_stream(rows, past, tracker, most, splitting, rng)
        if setting.calibrated:
            scale = None if setting.scale == "auto" else float(self.into(setting.scale))
            return calibrate_batch(rows, most, splitting, rng, scale)
        given = setting.temperature_for(
            self.n_rows, n_features, self.into(self.radius), self.exponent
        )
        return Calibration(
            np.ones(len(rows.points)),
            Path.find(rows.points, rows.weights, most, setting.manhattan, rng),
            given,
        )

    def _in_data(self, centers):
        """Centres in the columns, the units and about the origin of the data."""
        full = np.tile(self.offset, (len(centers), 1))
        full[:, self.varying] += self.out(centers)
        return full

    def _proposal(self):
        posterior, path = self.posterior, self.path
        centers = self._inside_ball(path.centers)
        if not self.setting.matched:  # tau of Algorithm 3, line 7
            tau = 1 / math.sqrt(self.setting.max_clusters * self.n_rows)
            return Proposal.student(centers, float(self.into(tau)))
        return Proposal.matched(
            centers,
            path.cell_weights,
            path.deviations(self.setting.manhattan),
            posterior.temperature,
            posterior.prior.radius,
        )

    def _inside_ball(self, centers):
        """Centres pulled into the support of the prior, where they are outside."""
        norms = np.linalg.norm(centers, axis=-1, keepdims=True)
        largest = self.posterior.prior.radius * (1 - 1e-9)
        outside = norms > largest
        return centers * np.where(outside, largest / np.where(outside, norms, 1), 1)

    def _noise_scale(self, centers):
        """Noise scale of the rows about `centers`, in data units."""
        if self.setting.scale != "auto":
            return float(self.setting.scale)
        manhattan, n_features = self.setting.manhattan, centers.shape[1]
        loss = rows_loss(self.rows, centers, manhattan)
        single = rows_loss(self.rows, self.path.centers[0, :1], manhattan)
        if not single > 0:
            return 1.0
        floor = floor_scale(single, self.n_rows, n_features, manhattan)
        scale, _ = scale_of(centers, loss, self.n_rows, manhattan, floor)
        return float(self.out(scale))
