"""A run of a particle filter over rows: how it begins, goes on, and is looked at."""

import copy
from numbers import Number
from operator import attrgetter

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import SeriesEstimator, refuse_changes
from ._cloud import advance, forecast, moments, shown
from ._proposals import Bootstrap, QuasiMonteCarlo
from .models import LocalLevel

OPTIONS = (
    "n_particles",
    "n_clusters",
    "conservation",
    "method",
    "resampling",
    "ess_threshold",
)
read_options = attrgetter(*OPTIONS)
PARTS = ("model", "clusterer")
PLAIN = (type(None), Number, str, list, tuple, np.ndarray)


def described(part):
    """Type and parameters of a model or of a clusterer."""
    known = part.get_params(deep=False) if hasattr(part, "get_params") else {}
    return type(part), known


def changed(part, description):
    """Whether it is no longer as described, where values can be compared."""
    kind, known = description
    if type(part) is not kind:
        return True
    pairs = [(getattr(part, name), value) for name, value in known.items()]
    return any(
        type(new) is not type(old)
        or (isinstance(new, PLAIN) and not np.array_equal(new, old))
        for new, old in pairs
        if new is not old
    )


class ParticleRun(SeriesEstimator):
    """The state of a particle filter, and the steps that its methods share."""

    @property
    def particles_(self):
        """Particles of the last row, (n_particles, n_states)."""
        return self._cloud.particles

    @property
    def weights_(self):
        """Their weights."""
        return self._cloud.weights

    @property
    def ess_(self):
        """Effective sample size of the weights."""
        return float(self._cloud.effective_size)

    @property
    def log_likelihood_(self):
        """Log density of the rows learnt."""
        return float(self._cloud.log_likelihood)

    @property
    def n_resamplings_(self):
        """Number of rows before which the particles were resampled."""
        return self._cloud.n_resamplings

    @property
    def ancestors_(self):
        """Particles of row 0 that still have descendants."""
        return np.unique(self._cloud.roots)

    @property
    def mean_(self):
        """Filtered mean at the last row."""
        return moments(self._cloud.weights, self._cloud.particles)[0]

    @property
    def covariance_(self):
        """Filtered covariance at the last row."""
        centred = self._cloud.particles - self.mean_
        return (centred.T * self._cloud.weights) @ centred

    def _fitting(self, X):
        """Begin, and yield the cloud, evidence and ancestors of each row learnt."""
        with self._all_or_nothing():
            X = self._rows(X, reset=True)
            self._begin()
            if hasattr(self.model_, "observe"):
                self.model_ = self.model_.observe(X)
            for row in shown(X, self.model_):
                yield self._step(row)
            self.n_samples_seen_ = len(X)

    def _generator(self):
        """One random generator: normals are most of a cheap model's step.

        They take a fifth less from SFC64 than from NumPy's default.
        """
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.Generator(np.random.SFC64(seed))

    def _begin(self):
        """Stand before row 0."""
        model = LocalLevel() if self.model is None else self.model
        if isinstance(model, type):
            raise TypeError(f"model must be an instance: {model.__name__}(...).")
        self.model_ = clone(model, safe=False)
        self._cloud = None
        self._random = self._generator()
        self._begun_with = read_options(self)
        self._begun_parts = [described(getattr(self, name)) for name in PARTS]
        if self.method == "sqmc":
            self._proposal = QuasiMonteCarlo(self.n_particles)
        else:
            self._proposal = Bootstrap(
                self.n_particles,
                self.n_clusters,
                self.conservation,
                None if self.clusterer is None else clone(self.clusterer, safe=False),
                self.resampling,
                self.ess_threshold,
            )
        self.n_samples_seen_ = 0

    def _refuse_change(self):
        """Refuse parameters other than those the stream began with."""
        for name, description in zip(PARTS, self._begun_parts, strict=True):
            if changed(getattr(self, name), description):
                raise ValueError(
                    f"{name} changed within a stream; fit, or partial_fit of a clone, "
                    "starts a new one."
                )
        refuse_changes(OPTIONS, self._begun_with, read_options(self))

    def _learn(self, X):
        """Filter rows, showing each to a model that observes; all of them or none."""
        observes = hasattr(self.model_, "observe")
        before = self._cloud, self.model_, self._random.bit_generator.state
        try:
            for i, row in enumerate(shown(X, self.model_)):
                if observes and self._cloud is None:  # nothing to forecast it from
                    self.model_ = self.model_.observe(X[i : i + 1])
                    self._step(row)
                else:
                    self._step(row)
                    if observes:
                        self.model_ = self.model_.observe(X[i : i + 1])
        except BaseException:
            self._cloud, self.model_, self._random.bit_generator.state = before
            raise
        self.n_samples_seen_ += len(X)
        return self

    def _step(self, row):
        moved = advance(
            self._cloud, row, self.model_, self._proposal, self._random, self.underflow
        )
        self._cloud = moved[0]
        return moved

    def _run(self, X):
        """Yield the cloud, evidence and ancestors of each row; learn nothing."""
        check_is_fitted(self)
        X = self._rows(X)
        cloud, generator = self._cloud, copy.deepcopy(self._random)
        for row in shown(X, self.model_):
            moved = advance(
                cloud, row, self.model_, self._proposal, generator, self.underflow
            )
            cloud = moved[0]
            yield moved

    def _next(self, X):
        """Return the cloud moved to the next row, and the rows as they are shown."""
        check_is_fitted(self)
        X = self._rows(X)
        generator = copy.deepcopy(self._random)
        ahead = forecast(self._cloud, self.model_, self._proposal, generator)
        return ahead, shown(X, self.model_)
