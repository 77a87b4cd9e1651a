"""What `DirichletProcessHMM` answers, against all paths of all draws; and its users."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from hmm_points import point_of
from hmm_reference import Paths, mixture_log_density, split
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import DirichletProcessHMM, make_hidden_markov

# Chains are short here on purpose, and are told so.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The .* disagree",
    "ignore:The rows hardly tell",
)

CASES = {
    "translated": {"n_states": 3, "emission": "auto"},
    "per state": {"n_states": 2, "emission": "per_state"},
    "full": {"n_states": 2, "emission": "per_state", "covariance_type": "full"},
    "start apart": {"n_states": 2, "emission": "auto", "startprob": "dirichlet"},
    "two features": {"n_states": 2, "emission": "auto"},
}


def short(n_states=2, **parameters):
    options = {"emission": "per_state", "n_iter": 10, "burn_in": 20, "random_state": 0}
    return DirichletProcessHMM(n_states, **options | parameters)


def rows_of(n_samples, n_features=1, seed=0, shape="bimodal"):
    return make_hidden_markov(
        shape, n_samples, n_features=n_features, n_states=2, random_state=seed
    )[0]


def in_units_of_rows(model):
    """Points of all draws of a fitted model, in the units of X."""
    offset, unit, _ = model._answer().units
    for draw in model._answer().used_draws():
        point = point_of(draw, None)
        shared = model.emission_ == "translated"
        point["means"] = point["means"] * unit + (0 if shared else offset)
        point["locations"] = point["locations"] * unit + (offset if shared else 0)
        point["covariances"] = point["covariances"] * np.multiply.outer(unit, unit)
        point["occupied"] = draw.occupied
        own = point["locations"] if shared else point["origins"] * unit + offset
        prior = model._answer().model
        point["degrees"], point["full"] = 2 * prior.shape, prior.full
        factor = (1 + 1 / prior.mean_count) / prior.shape
        scales = np.broadcast_to(point["scales"] * unit**2, own.shape)
        point["new atoms"] = [
            (center, factor * scale) for center, scale in zip(own, scales, strict=True)
        ]
        yield point


def log_density_in(point, j, row):
    """Of what is seen of a row in state j; atoms without rows have Student's law."""
    seen, shape = ~np.isnan(row), j % len(point["means"])
    centers = point["locations"][j] + point["means"][shape]
    weights, known = point["weights"][shape], point["occupied"][shape]
    logs = []
    if not known.all():
        center, squares = point["new atoms"][j]
        units = [[f] for f in np.flatnonzero(seen)]  # one variance for each feature
        new = sum(
            stats.multivariate_t(
                center[one], np.diag(squares[one]), df=point["degrees"]
            ).logpdf(row[one])
            for one in ([seen] if point["full"] else units)
        )
        logs.append(np.log(weights[~known].sum()) + new)
    if known.any():
        known_density = mixture_log_density(
            row[None, seen],
            weights[known],
            centers[known][:, seen],
            point["covariances"][shape][known][:, seen][:, :, seen],
        )
        logs.append(known_density[0])
    return logsumexp(logs)


def log_densities(point, X):
    """Of each row in each state, (n_rows, n_states); 0 where a row is missing."""
    found = np.zeros((len(X), len(point["locations"])))
    for t, row in enumerate(X):
        for j in range(0 if np.isnan(row).all() else found.shape[1]):
            found[t, j] = log_density_in(point, j, row)
    return found


def weighted_log_means(log_densities, seen):
    """Log of the mean over draws, weighted by their densities of the rows before.

    `log_densities` (n_draws, n_rows), of a sequence. In the weight, a row has the
    exponent 0.98^a if a rows that are seen, at least in part, came since.
    """
    found = []
    for t in range(log_densities.shape[1]):
        before = np.flatnonzero(seen[:t])
        ages = np.arange(len(before))[::-1]
        log_weights = log_densities[:, before] @ 0.98**ages
        joint = logsumexp(log_weights + log_densities[:, t])
        found.append(joint - logsumexp(log_weights))
    return found


@pytest.mark.parametrize("name", CASES)
def test_answers_are_means_over_all_draws_of_all_paths(name):
    n_features = 2 if name in ("full", "two features") else 1
    model = short(**CASES[name])
    new, lengths = 50 + 3 * rows_of(8, n_features, seed=1), [1, 5, 2]
    model.fit(50 + 3 * rows_of(60, n_features), lengths=[20, 40])
    new[3] = np.nan
    new[5, 0] = np.nan  # of one feature, or of two
    points = list(in_units_of_rows(model))
    assert len(points) in (10, 20)  # of the best chain, or of both
    laws, predictives, densities = [], [], []
    for point in points:
        logs = log_densities(point, new)
        densities.append(logs)
        laws.append([])
        predictives.append([])
        for part in split(lengths):
            chain = point["start"], point["transitions"]
            laws[-1].extend(Paths(*chain, logs[part]).marginals())
            sums = [0.0] + [
                Paths(*chain, logs[part.start : stop]).log_evidence
                for stop in range(part.start + 1, part.stop + 1)
            ]
            predictives[-1].extend(np.diff(sums))
    given = {"lengths": lengths}
    proba = model.predict_proba(new, **given)
    assert_allclose(proba, np.mean(laws, axis=0), atol=1e-10)
    assert_array_equal(model.predict(new, **given), proba.argmax(axis=1))
    predictives, seen = np.array(predictives), ~np.isnan(new).all(axis=1)
    parts = split(lengths)
    expected = np.concatenate(
        [weighted_log_means(predictives[:, part], seen[part]) for part in parts]
    )
    assert_allclose(model.score_samples(new, **given), expected, atol=1e-10)
    assert_allclose(model.score(new, **given), expected.mean(), atol=1e-10)
    assert_allclose(
        model.score(new, groups=np.repeat([4, 2, 4], lengths)), expected.mean()
    )
    means = {
        key: np.mean([p[key] for p in points], axis=0)
        for key in points[0]
        if key in ("start", "transitions")
    }
    assert_allclose(model.transmat_, means["transitions"])
    assert_allclose(model.startprob_, means["start"])
    mean_logs = logsumexp(densities, axis=0) - np.log(len(points))
    log_probability, states = model.decode(new, **given)
    paths = [
        Paths(means["start"], means["transitions"], mean_logs[part])
        for part in split(lengths)
    ]
    assert_array_equal(states, np.concatenate([path.best()[0] for path in paths]))
    assert_allclose(log_probability, sum(path.best()[1] for path in paths))
    seen = ~np.isnan(new).any(axis=1)
    assert_allclose(model.emission_density(new[seen]), np.exp(mean_logs[seen]))


def test_a_simulated_law_is_the_predictive_law():
    """Moves and rows of `sample`, of a single draw: by counts and by its mixture."""
    model = short(emission="translated", n_iter=1, n_chains=1).fit(rows_of(200))
    (point,) = in_units_of_rows(model)
    X, states = model.sample(20_000)
    matrix = point["transitions"]
    counts = np.zeros((2, 2))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    visits = counts.sum(axis=1, keepdims=True)
    scores = (counts - visits * matrix) / np.sqrt(visits * matrix * (1 - matrix))
    assert np.abs(scores).max() < 5  # false alarm below 1e-5
    for state in range(2):
        centers = point["locations"][state] + point["means"][0]
        variances = point["covariances"][0, :, 0]
        mean = point["weights"][0] @ centers
        variance = point["weights"][0] @ (variances + (centers - mean) ** 2)
        rows = X[states == state]
        error = np.sqrt(variance / len(rows))
        assert np.abs(rows.mean(axis=0) - mean) < 5 * error


# As users use it.


@pytest.mark.parametrize(
    "converted",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X).astype("Float64"),
        lambda X: X.astype(np.float32),
        np.asfortranarray,
    ],
    ids=["list", "nullable", "float32", "fortran"],
)
def test_rows_in_other_forms(converted):
    X, of_array = rows_with_gaps()
    other = converted(X)
    model = short(emission="per_state").fit(other)
    assert_array_equal(model.predict_proba(other), of_array)


@functools.cache
def rows_with_gaps():
    """Rows, exact in float32, and the probabilities of their states."""
    X = np.round(64 * rows_of(80, 2)) / 64
    X = pd.DataFrame(X).mask(pd.DataFrame(X) > 3).to_numpy()
    return X, short(emission="per_state").fit(X).predict_proba(X)


def test_names_of_features_are_checked():
    frame = pd.DataFrame(rows_of(60, 2), columns=["load", "heat"])
    model = short().fit(frame)
    assert list(model.feature_names_in_) == ["load", "heat"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["heat", "load"]])


def test_in_a_pipeline():
    """Scaled rows with gaps; `lengths` by the name of the step."""
    X = 1000 + 5 * rows_of(120)
    X[::7] = np.nan
    pipe = make_pipeline(StandardScaler(), short())
    pipe.fit(X, dirichletprocesshmm__lengths=[50, 70])
    alone = short().fit(X, lengths=[50, 70])
    # the sampler has units of its own, so that a scaler changes nothing but rounding
    assert_allclose(pipe.predict_proba(X), alone.predict_proba(X), atol=1e-6)


@pytest.mark.slow
def test_pipelines_in_a_grid():
    """Over time; and by sequences, with a scorer: `Pipeline.score` takes no groups."""
    X = rows_of(120)
    pipe = make_pipeline(StandardScaler(), short(n_chains=1))
    grid = {"dirichletprocesshmm__n_states": [1, 2]}
    search = GridSearchCV(pipe, grid, cv=TimeSeriesSplit(3), error_score="raise")
    assert np.isfinite(search.fit(X).cv_results_["mean_test_score"]).all()

    def log_density(pipe, X, y=None):
        return pipe[-1].score(pipe[:-1].transform(X))

    with config_context(enable_metadata_routing=True):
        pipe[-1].set_fit_request(groups=True)
        search = GridSearchCV(
            pipe, grid, cv=GroupKFold(3), scoring=log_density, error_score="raise"
        )
        search.fit(X, groups=np.repeat(np.arange(6), 20))
    assert len(search.best_estimator_[-1]._series.bounds) == 7


def test_copies_and_pickles():
    X = rows_of(80)
    model = short().fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.sample(5)[0], model.sample(5)[0])
    fresh = clone(model)
    assert not hasattr(fresh, "n_features_in_")
    assert_array_equal(fresh.fit(X).transmat_samples_, model.transmat_samples_)


@pytest.mark.slow
def test_lengths_in_other_forms():
    X = rows_of(60)
    expected = short().fit(X, lengths=[20, 40]).predict_proba(X, lengths=[20, 40])
    for lengths in (
        (20, 40),
        np.array([20, 40], dtype=np.int32),
        np.array([20.0, 40.0]),
        pd.Series([20, 40], index=[7, 3]),
    ):
        found = short().fit(X, lengths=lengths).predict_proba(X, lengths=lengths)
        assert_array_equal(found, expected)
    names = pd.Series(["night"] * 20 + ["day"] * 40, index=np.arange(60)[::-1])
    found = short().fit(X, groups=names).predict_proba(X, groups=names)
    assert_array_equal(found, expected)


def test_infinite_rows_are_refused():
    X = rows_of(40)
    model = short().fit(X)
    before = model.transmat_samples_.copy()
    X[7] = np.inf
    for method in (model.fit, model.partial_fit, model.predict, model.score):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            method(X)
    assert_array_equal(model.transmat_samples_, before)


@pytest.mark.parametrize("emission", ["per_state", "poisson", "categorical"])
@pytest.mark.filterwarnings("ignore")  # of few sweeps
def test_underflow_is_no_error(emission):
    """Rows far apart have densities that are too small for a float."""
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([1.0, 900.0, 1.0], 20), size=60)[:, None].astype(float)
    X = X if emission != "categorical" else (X > 400) * 1.0
    model = DirichletProcessHMM(
        2, emission=emission, n_iter=20, burn_in=5, window=40, random_state=0
    )
    with np.errstate(all="raise"):
        model.fit(X)
        for answer in ("predict", "decode", "score_samples"):
            getattr(model, answer)(X)
        model.partial_fit(X[-5:])
        assert np.isfinite(model.state_probabilities_).all()
        assert np.isfinite(model.forecast(3).state_probabilities).all()
        assert np.isfinite(model.sample(5, random_state=0)[0]).all()
        assert np.isfinite(model.emission_density(X[:5])).all()
        assert np.isfinite(model.duration_probabilities(500)).all()
        assert emission == "categorical" or np.isfinite(model.locations_).all()
