"""The laws of the streaming contract, for every estimator with `partial_fit`.

One row of `STREAMS` describes an estimator. At the end of the file, toy estimators that
break a law show that each law can be broken.
"""

import pickle

import numpy as np
import pytest
from cases import cheap
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data
from streaming_laws import (
    LAWS,
    LAWS_OF_ONE_PLACE,
    LAWS_OF_PLACE,
    Stream,
    all_or_nothing,
    bounded_memory,
    fit_forgets,
    integer_weights,
    one_row,
    resume,
    rounded,
    split_invariance,
)

import skpacbayes
from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
    PACOClusterer,
    SSMCKMeansInit,
    make_paco_model,
)

# Few interrupts: another setting of the estimator, with the same update, has many.
FEW_MOMENTS = {"traced": False, "moments": (4, 3)}


def groups(n, seed):
    """Rows of four groups in the plane."""
    X, _ = make_paco_model(3, n, random_state=seed)
    return (rounded(X),)


def paco(**parameters):
    cheap = {"max_clusters": 5, "n_iter": 20, "summary_size": 20, "random_state": 0}
    return lambda: PACOClusterer(**(cheap | parameters))


def numbers(n, seed):
    """Rows and targets of a noisy line."""
    rng = np.random.default_rng(seed)
    X = rounded(rng.normal(size=(n, 3)))
    return X, rounded(X @ [1.0, -2.0, 0.5] + rng.normal(size=n))


def labels(n, seed):
    X, y = numbers(n, seed)
    return X, (y > 0).astype(float)


def three_labels(n, seed):
    X, y = numbers(n, seed)
    return X, np.digitize(y, [-1.0, 1.0]).astype(float)


def counted(n, seed):
    X, y = numbers(n, seed)
    return X, np.abs(y)


def online(estimator, rows=numbers, **parameters):
    first = {"classes": [0.0, 1.0]} if rows is labels else {}
    return Stream(lambda: estimator(**parameters), rows, first=first, importance=True)


# Its radius is in units of the data: rows may not be farther from 0.
REGRET = {"calibration": "regret", "radius": 20.0, "refresh": 11, "max_clusters": 6}
MANHATTAN = {"loss": "manhattan", "refresh": 29, "max_clusters": 6}


def normal_rows(n, seed):
    return (rounded(np.random.default_rng(seed).normal(size=(n, 3))),)


def count_rows(n, seed):
    return (np.random.default_rng(seed).poisson(2.0, size=(n, 4)).astype(float),)


# The mixtures keep rows, and cut blocks by rows: within the first block an integer
# weight equals repetition, in what is found though not in the rows that are kept. What
# many blocks give is tested in `test_mixture_streaming.py`.
KEEPS_ROWS = {"integer_weights": {"_stream": None, "elbo_": 1e-9, "weights_": 1e-7}}

# The table of simulations is the state: an integer weight is kept as such.
KEEPS_TABLE = {"integer_weights": {"_table": None, "cv_table_": None}}


def table_of_simulations():
    return Stream(
        lambda: skpacbayes.ABCPosteriorKDE(n_validation=20, random_state=0),
        numbers,
        inexact=KEEPS_TABLE,
        grows=True,
        count="n_simulations_",
    )


def filtering(**parameters):
    cheap = {"n_particles": 64, "random_state": 0}
    return Stream(
        lambda: skpacbayes.ClusteredParticleFilter(**(cheap | parameters)),
        rows_with_gaps,
        saturated=500,
        weights=False,
        missing=True,
        **(FEW_MOMENTS if parameters else {}),
    )


def rows_with_gaps(n, seed):
    (X,) = normal_rows(n, seed)
    X[5::7, 1] = X[3::11] = np.nan
    return (X,)


# An integer weight equals repetition in what is found, though not in the rows that are
# kept. Blocks count rows, so that chains stand elsewhere once rows are summed.
KEEPS_FEW = {
    "_stream": None,
    "inclusion_probabilities_": 1e-6,
    "noise_variance_": 1e-6,
}
SUMS_ROWS = {"_stream": None}


def additive(length=120, inexact=KEEPS_FEW, **parameters):
    cheap = {"max_order": 3, "n_iter": 400, "burn_in": 100, "random_state": 0}
    return Stream(
        lambda: skpacbayes.SparseAdditiveGibbsRegressor(**(cheap | parameters)),
        numbers,
        length=length,
        inexact={"integer_weights": inexact},
        missing=True,
    )


def rows_of_two_states(n, seed):
    (X,) = rows_with_gaps(n, seed)
    return (X + 16.0 * (np.arange(n)[:, None] // 20 % 2),)


def markov(**parameters):
    cheap = {"n_iter": 10, "burn_in": 10, "random_state": 0}
    return Stream(
        lambda: skpacbayes.DirichletProcessHMM(**(cheap | parameters)),
        rows_of_two_states,
        weights=False,
        missing=True,
        grows=True,
        rounds=1,
    )


# The estimator's name, and which setting of it.
STREAMS = {
    # The summary is full after 20 rows: from then on rows are merged.
    # The chain runs after each of the first rows, and reads mixtures from row 20 on.
    "PACOClusterer": Stream(paco(), groups, length=28, saturated=400, traced=False),
    "PACOClusterer, forgetting": Stream(
        paco(forgetting="auto"),
        groups,
        length=28,
        saturated=200,
        places=("shifted",),
        **FEW_MOMENTS,
    ),
    "PACOClusterer, rate": Stream(
        paco(forgetting=0.05, refresh=7),
        groups,
        length=40,
        saturated=150,  # seven times as many as it remembers
        places=("shifted",),
        **FEW_MOMENTS,
    ),
    "PACOClusterer, manhattan": Stream(
        paco(**MANHATTAN),  # the cheapest to trace: few runs of the chain
        groups,
        length=40,
        saturated=600,
        places=("shifted",),
        moments=FEW_MOMENTS["moments"],
    ),
    "PACOClusterer, regret": Stream(
        paco(**REGRET),
        groups,
        length=40,
        saturated=400,
        places=("small",),
        **FEW_MOMENTS,
    ),
    "SSMCKMeansInit": Stream(
        lambda: SSMCKMeansInit(3, batch_size=25, random_state=0), groups, weights=False
    ),
    "SSMCKMeansInit, particles": Stream(
        lambda: SSMCKMeansInit(
            3, n_particles=50, proposal="data", batch_size=9, random_state=0
        ),
        groups,
        saturated=500,
        weights=False,
        traced=False,
    ),
    "TemperedVBGaussianMixture": Stream(
        lambda: skpacbayes.TemperedVBGaussianMixture(
            2, block_size=250, window=250, random_state=0
        ),
        normal_rows,
        saturated=1000,
        inexact=KEEPS_ROWS,
        missing=True,
    ),
    "TemperedVBMixture": Stream(
        lambda: skpacbayes.TemperedVBMixture(
            "normal", 2, block_size=250, window=250, random_state=0
        ),
        normal_rows,
        saturated=1000,
        inexact=KEEPS_ROWS,
        missing=True,
    ),
    "TemperedVBMultinomialMixture": Stream(
        lambda: skpacbayes.TemperedVBMultinomialMixture(
            2, block_size=250, window=250, random_state=0
        ),
        count_rows,
        saturated=1000,
        sparse=True,
        inexact=KEEPS_ROWS,
    ),
    "OnlineVIRegressor": online(OnlineVIRegressor, random_state=0),
    "OnlineVIRegressor, linear": online(OnlineVIRegressor, n_fourier=0),
    "OnlineVIRegressor, forgetting": online(
        OnlineVIRegressor, forgetting="auto", random_state=0
    ),
    "OnlineVIRegressor, absolute": online(
        OnlineVIRegressor, loss="absolute_error", random_state=0
    ),
    "OnlineVIRegressor, counts": online(
        OnlineVIRegressor,
        counted,
        loss="poisson",
        prior_scale="auto",
        forgetting=0.01,
        random_state=0,
    ),
    "OnlineVIRegressor, quantile": online(
        OnlineVIRegressor,
        loss="quantile",
        quantile=0.8,
        prior_scale="auto",
        random_state=0,
    ),
    "OnlineVIRegressor, sva": online(OnlineVIRegressor, method="sva", average=True),
    "OnlineVIClassifier": online(OnlineVIClassifier, labels, random_state=0),
    "OnlineVIClassifier, hinge": online(
        OnlineVIClassifier, labels, loss="hinge", random_state=0
    ),
    "OnlineVIClassifier, softmax": Stream(
        lambda: OnlineVIClassifier(forgetting="auto", random_state=0),
        three_labels,
        first={"classes": [0.0, 1.0, 2.0]},
        importance=True,
    ),
    "OnlineVIClassifier, waves": online(
        OnlineVIClassifier, labels, n_fourier=10, forgetting="auto", random_state=0
    ),
    "OnlineVIRegressor, waves": online(
        OnlineVIRegressor, n_fourier=10, prior_scale="auto", random_state=0
    ),
    "OnlineVIMLPClassifier": online(OnlineVIMLPClassifier, labels, random_state=0),
    "OnlineVIMLPRegressor": online(OnlineVIMLPRegressor, random_state=0),
    "ABCPosteriorKDE": table_of_simulations(),
    "ClusteredParticleFilter": filtering(),
    "ClusteredParticleFilter, plain": filtering(n_clusters=None),
    "ClusteredParticleFilter, sqmc": filtering(method="sqmc"),
    "SMC2": Stream(
        lambda: cheap("SMC2"),
        rows_with_gaps,
        length=24,
        weights=False,
        missing=True,
        grows=True,
        places=("shifted",),
    ),
    "SparseAdditiveGibbsRegressor": additive(),
    "SparseAdditiveGibbsRegressor, sums": additive(
        1300, SUMS_ROWS, n_iter=50, burn_in=10
    ),
    "DirichletProcessHMM": markov(),
    "DirichletProcessHMM, full": markov(
        emission="per_state", covariance_type="full", n_chains=1
    ),
    "EWARegressor": online(EWARegressor),
}


def places_of(number, name):
    """Return all places for an estimator, and one for other settings of it."""
    places = STREAMS[name].places
    return ("", *places) if "," not in name else ("", places[number % len(places)])


CASES = [
    pytest.param(name, law, place, id="-".join([name, law.__name__, place]).strip("-"))
    for number, (name, stream) in enumerate(STREAMS.items())
    for places in [places_of(number, name)]
    for place in places
    for law in (LAWS_OF_PLACE if place else LAWS)
    if law is not integer_weights or stream.weights  # others have no sample_weight
    if law is not bounded_memory or not stream.grows  # as its docstring says
    if law not in LAWS_OF_ONE_PLACE or place in places[:2]
]


@pytest.mark.filterwarnings("ignore:n_clusters_=")  # few rows do not decide
@pytest.mark.filterwarnings("ignore:The .* disagree")  # few sweeps
@pytest.mark.filterwarnings(
    "ignore:One or a few of "
)  # few particles, and rows of noise
@pytest.mark.filterwarnings("ignore:The order of the rows")  # the same
@pytest.mark.parametrize(("name", "law", "place"), CASES)
def test_law(name, law, place):
    law(STREAMS[name].placed(place))


def test_every_streaming_estimator_is_in_the_table():
    streaming = {name for name in skpacbayes.__all__ if streams(name)}
    assert streaming == {name.split(",")[0] for name in STREAMS}


def streams(name):
    return hasattr(getattr(skpacbayes, name), "partial_fit")


# Each law can be broken: a running mean that keeps them all, and flaws that break one.


class RunningMean(BaseEstimator):
    """The mean of each column, one row at a time."""

    def fit(self, X, y=None, sample_weight=None):
        X, weights = self._validated(X, sample_weight, reset=True)
        self._forget(X.shape[1])
        return self._update(X, weights)

    def partial_fit(self, X, y=None, sample_weight=None):
        fast = type(X) is np.ndarray and X.dtype == float and X.flags.c_contiguous
        fast = fast and sample_weight is None and self._known(X.shape)
        if fast and np.isfinite(X).all():
            return self._update(X, np.ones(len(X)))
        reset = not hasattr(self, "mean_")
        X, weights = self._validated(X, sample_weight, reset=reset)
        if reset:
            self._forget(X.shape[1])
        return self._update(X, weights)

    def _known(self, shape):
        return hasattr(self, "mean_") and shape == (1, self.n_features_in_)

    def _validated(self, X, weights, reset):
        checked = clone(self)
        vars(checked).update(vars(self))
        X = validate_data(checked, X, dtype=float, order="C", reset=reset)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights)
        if weights.shape != (len(X),) or not np.all(
            (weights >= 0) & np.isfinite(weights)
        ):
            raise ValueError("bad weights")
        vars(self).update(vars(checked))
        return X, weights

    def _forget(self, n_features):
        self.mean_, self.weight_ = np.zeros(n_features), 0.0

    def _update(self, X, weights):
        for row, weight in zip(X, weights, strict=True):
            for _ in range(int(weight)):
                self._add(row, 1.0)
            self._add(row, weight % 1)
        return self

    def _add(self, row, weight):
        if weight > 0:
            self.weight_ += weight
            self.mean_ = self.mean_ + weight * (row - self.mean_) / self.weight_


class MeanOfBatches(RunningMean):
    def _update(self, X, weights):
        if weights.sum() > 0:
            self._add(np.average(X, axis=0, weights=weights), weights.sum())
        return self


class CountsCalls(RunningMean):
    def _update(self, X, weights):
        self.calls_ = getattr(self, "calls_", 0) + 1
        return super()._update(X, weights)


class UpdatesBeforeItChecks(RunningMean):
    def _validated(self, X, weights, reset):
        if not reset and np.shape(X)[1:] == self.mean_.shape:
            self.weight_ += 1e-9
        return super()._validated(X, weights, reset)


class TakesNaN(RunningMean):
    def partial_fit(self, X, y=None, sample_weight=None):
        if type(X) is np.ndarray and X.dtype == float and self._known(X.shape):
            return self._update(X, np.ones(1))
        return super().partial_fit(X, y, sample_weight)


class SpeaksForItself(RunningMean):
    def _validated(self, X, weights, reset):
        try:
            return super()._validated(X, weights, reset)
        except ValueError as error:
            raise ValueError("bad rows") from error


class RemembersFeatures(RunningMean):
    def _validated(self, X, weights, reset):
        if reset and np.ndim(X) == 2:
            self.n_features_in_ = np.shape(X)[1]
        return super()._validated(X, weights, reset)


class LosesWeight(RunningMean):
    def __getstate__(self):
        return {**super().__getstate__(), "weight_": 0.0}


class ChangesItsMean(RunningMean):
    def _add(self, row, weight):
        if weight > 0:
            self.weight_ += weight
            self.mean_ += weight * (row - self.mean_) / self.weight_


class SharesItsMean(ChangesItsMean):
    def __copy__(self):
        return pickle.loads(pickle.dumps(self))

    def __deepcopy__(self, memo):
        copied = clone(self)
        vars(copied).update(vars(self))
        return copied


class RemembersTheStream(RunningMean):
    def _forget(self, n_features):
        super()._forget(n_features)
        self.weight_ = getattr(self, "total_", 0.0)

    def _update(self, X, weights):
        super()._update(X, weights)
        self.total_ = self.weight_
        return self


class KeepsSomeRows(RunningMean):
    def _add(self, row, weight):
        super()._add(row, weight)
        self.kept_ = getattr(self, "kept_", [])
        if self.weight_ % 8 == 0:
            self.kept_.append(row.copy())


class KeepsRowsUnsaved(RunningMean):
    def _add(self, row, weight):
        super()._add(row, weight)
        vars(self).setdefault("kept_", []).append(row.copy())

    def __getstate__(self):
        return {k: v for k, v in super().__getstate__().items() if k != "kept_"}


class BlindToWeights(RunningMean):
    def _update(self, X, weights):
        return super()._update(X, np.ones(len(X)))


class CountsAbsentRows(RunningMean):
    def _update(self, X, weights):
        self.rows_ = getattr(self, "rows_", 0) + len(X)
        return super()._update(X, weights)


class RoundsOneRow(RunningMean):
    def partial_fit(self, X, y=None, sample_weight=None):
        if isinstance(X, list):
            X = np.round(X, 1)
        return super().partial_fit(X, y, sample_weight)


class ValidatesAlways(RunningMean):
    def _known(self, shape):
        return False


def toy(estimator):
    def rows(n, seed):
        return (rounded(np.random.default_rng(seed).normal(size=(n, 3))),)

    return Stream(estimator, rows, length=60)


@pytest.mark.parametrize("law", LAWS[:7], ids=lambda law: law.__name__)
def test_a_lawful_estimator_passes(law):
    law(toy(RunningMean))


@pytest.mark.parametrize(
    ("law", "flaw", "complaint"),
    [
        (split_invariance, MeanOfBatches, "states differ at .mean_"),
        (split_invariance, CountsCalls, "states differ at .calls_"),
        (all_or_nothing, UpdatesBeforeItChecks, "a refused call changed .weight_"),
        (all_or_nothing, TakesNaN, "DID NOT RAISE"),
        (all_or_nothing, SpeaksForItself, "scikit-learn says: Input X contains NaN"),
        (all_or_nothing, RemembersFeatures, "a refused call changed .n_features_in_"),
        (resume, LosesWeight, "states differ at .mean_"),
        (resume, ChangesItsMean, "a copy shares its state"),
        (resume, SharesItsMean, "a copy shares its state"),
        (fit_forgets, RemembersTheStream, "states differ at .mean_, .total_, .weight_"),
        (bounded_memory, KeepsSomeRows, "pickled sizes"),
        (bounded_memory, KeepsRowsUnsaved, "memory in use"),
        (integer_weights, BlindToWeights, "states differ at .mean_, .weight_"),
        (integer_weights, CountsAbsentRows, "states differ at .rows_"),
        (one_row, RoundsOneRow, "states differ at .mean_"),
        (one_row, ValidatesAlways, "a row that needs no validation was validated"),
    ],
)
def test_a_flaw_breaks_its_law(law, flaw, complaint):
    with pytest.raises((AssertionError, pytest.fail.Exception), match=complaint):
        law(toy(flaw))
