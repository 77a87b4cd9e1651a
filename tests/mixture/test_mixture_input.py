"""Hard and bad input of the mixtures, and the tools of scikit-learn around them."""

import contextlib
import functools
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from states import changes, state_of

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import (
    Binomial,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
    _learner,
)
from skpacbayes.mixture._product import FAMILIES

MODELS = {
    "full": {"covariance_type": "full"},
    "tied": {"covariance_type": "tied"},
    "diag": {"covariance_type": "diag"},
    "spherical": {"covariance_type": "spherical"},
    "known": {"covariance_type": "known", "known_covariance": 1.0},
    "factorized-diag": {"covariance_type": "diag", "prior": "factorized"},
    "factorized-spherical": {"covariance_type": "spherical", "prior": "factorized"},
}
every_model = pytest.mark.parametrize("name", MODELS)
names_of_polars = pytest.mark.skipif(
    not hasattr(StandardScaler().fit(pl.DataFrame({"x": [0.0]})), "feature_names_in_"),
    reason="this scikit-learn reads no names of this polars",
)


def gaussian(name, n_components=3, **parameters):
    """A mixture from one start: what is tested here is the same at every start."""
    parameters = {"n_init": 1, "random_state": 0, **MODELS[name], **parameters}
    return TemperedVBGaussianMixture(n_components, **parameters)


def normal_rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def found_by(mixture):
    """Names of the fitted attributes that are computed."""
    kind = type(mixture)
    return [
        name
        for name in dir(kind)
        if name[0] != "_"
        and name[-1] == "_"
        and isinstance(getattr(kind, name), property)
    ]


NO_NUMBERS = "parameters_", "covariance_type_"


def assert_sound(mixture, X):
    """All attributes finite, probabilities that sum to one, a bound that rose."""
    for name in found_by(mixture):
        values = getattr(mixture, name)
        if name not in ("elbo_path_", "degrees_of_freedom_", *NO_NUMBERS):
            assert np.isfinite(values).all(), name
    assert_allclose(mixture.predict_proba(X).sum(axis=1), 1)
    assert np.isfinite(mixture.score_samples(X)).all()
    history = mixture.elbo_history_
    assert (np.diff(history) > -1e-9 * abs(history[-1]).max()).all()


HARD = {
    "duplicates": np.repeat(normal_rows(3, 2), 50, axis=0),
    "one row, many times": np.full((40, 2), 3.7),
    "zeros": np.zeros((40, 2)),
    "a constant column": np.column_stack([normal_rows(60, 2), np.full(60, 1e5)]),
    "collinear columns": normal_rows(60, 1) * [1.0, 2.0, -1.0],
    "fewer rows than components": normal_rows(2, 2),
    "one row": normal_rows(1, 2),
    "more features than rows": normal_rows(8, 20),
    "tiny": 1e-100 * normal_rows(60, 2),
    "huge": 1e100 * normal_rows(60, 2),
    "units apart by 1e12": normal_rows(60, 2) * [1e-6, 1e6],
}


@pytest.mark.parametrize("rows", HARD)
@every_model
def test_hard_rows(name, rows):
    X = HARD[rows]
    if name == "known" and rows in ("tiny", "huge", "units apart by 1e12"):
        pytest.skip("a variance of one says nothing there")
    mixture = gaussian(name, 5 if len(X) < 50 else 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Column 0 of X has the value")
        if rows == "collinear columns":
            warnings.filterwarnings("ignore", "Columns are nearly copies")
        if rows == "units apart by 1e12":  # of spherical components
            warnings.filterwarnings("ignore", "Features vary unequally")
        mixture.fit(X)
    assert_sound(mixture, X)
    assert mixture.n_components_ == (5 if len(X) < 50 else 3)


REPEATED = np.repeat(1.0 + np.arange(15).reshape(5, 3) ** 2 % 7, 12, axis=0)
MIXTURES = {
    **{name: gaussian(name, 2) for name in MODELS},
    **{name: TemperedVBMixture(name, 2) for name in FAMILIES if name != "bernoulli"},
    "binomial": TemperedVBMixture(Binomial(10**9), 2),
    "words": TemperedVBMultinomialMixture(2),
    "product": TemperedVBMixture([("n", "normal", [0]), ("p", "poisson", [1, 2])], 2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MIXTURES)
def test_statistics_of_narrow_components_are_absorbed(name):
    """Entropies are differences of large sums there, and were negative by rounding."""
    scales = (1e7, 1e-7) if "isher" not in name else (1.0,)
    if name in ("poisson", "binomial", "categorical", "words", "product"):
        scales = 1.0, 1e7
    for scale, n_components in product(scales, (1, 2, 5)):
        X = scale * REPEATED
        if "isher" in name:
            X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
        mixture = clone(MIXTURES[name]).set_params(
            n_components=n_components, n_init=1, random_state=0
        )
        mixture.fit(X)
        statistics = mixture.sufficient_statistics(X)
        bound = mixture.elbo_
        mixture.absorb(statistics, memory=0.0)
        assert mixture.elbo_ >= bound - 2e-4 * abs(bound)


@pytest.mark.parametrize("name", ["full", "diag"])
@pytest.mark.parametrize("exponent", range(-158, -146))
def test_rows_whose_variance_is_hardly_a_number(exponent, name):
    X = 10.0**exponent * normal_rows(60, 2)
    underflows = pytest.warns(UserWarning, match="whose variance is less than")
    with underflows if exponent < -148 else contextlib.nullcontext():
        mixture = gaussian(name).fit(X)
    assert_sound(mixture, X)


@every_model
def test_rows_whose_squares_are_no_numbers_are_refused(name):
    X = normal_rows(60, 2)
    begun = gaussian(name).partial_fit(X)
    before = state_of(begun)
    for learn in (begun.fit, begun.partial_fit, begun.sufficient_statistics):
        with pytest.raises(ValueError, match=r"at most 1e\+150 .* got -3e\+200"):
            learn(np.vstack([X, [[-3e200, 0.0]]]))
    assert not changes(before, state_of(begun))


@every_model
def test_an_empty_component_keeps_its_prior(name):
    X = np.repeat(normal_rows(2, 2), 60, axis=0)
    mixture = gaussian(name, 4)
    if name == "known":
        mixture.fit(X)
    else:
        with pytest.warns(UserWarning, match="in 60 of 60 rows of component"):
            mixture.fit(X)
    empty = mixture.statistics_[:, 0].argmin()
    assert mixture.statistics_[empty, 0] < 1e-3
    assert_allclose(mixture.weight_concentration_[empty], 1, atol=1e-3)
    assert_allclose(mixture.means_[empty], X.mean(axis=0), atol=1e-2)


@every_model
def test_far_from_zero(name):
    """Data centred at 1e6 with spread 1: what the centred data give."""
    X, _ = make_mixture(n_samples=300, n_components=3, random_state=1)
    X = np.round(X * 1024) / 1024  # exact after the shift
    near, far = gaussian(name).fit(X), gaussian(name).fit(X + 1e6)
    assert_allclose(far.elbo_, near.elbo_, rtol=1e-9)
    order, expected = far.means_[:, 0].argsort(), near.means_[:, 0].argsort()
    assert_allclose(far.means_[order] - 1e6, near.means_[expected], atol=1e-7)
    if name != "tied":
        far.covariances_[:] = far.covariances_[order]
        near.covariances_[:] = near.covariances_[expected]
    assert_allclose(far.covariances_, near.covariances_, rtol=1e-6)
    assert adjusted_rand_score(far.predict(X + 1e6), near.predict(X)) == 1


@pytest.mark.parametrize("name", ["full", "diag", "spherical"])
def test_clusters_apart_by_1e5_widths(name):
    """Each cluster's covariance is that of its rows alone."""
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 3
    noise = rng.normal(size=(600, 2))
    X = noise + 1e6 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    prior = {"mean_prior": [0, 0], "mean_precision_prior": 1e-8}
    prior["degrees_of_freedom_prior"] = 4
    prior["covariance_prior"] = {"full": np.eye(2), "diag": [1, 1], "spherical": 1}[
        name
    ]
    mixture = gaussian(name, inverse_temperature=1, **prior).fit(X)
    assert len(mixture._stream.state.components.origins) == 3  # one for each
    assert adjusted_rand_score(labels, mixture.predict(X)) == 1
    for k, label in enumerate(mixture.predict(np.eye(3, 2, -1) * 1e6)):
        part = noise[labels == k]
        pull = 1e-8 * 200 / (1e-8 + 200)  # of the prior mean
        mean = part.mean(axis=0) + 1e6 * np.eye(3, 2, -1)[k]
        scatter = (part - part.mean(axis=0)).T @ (part - part.mean(axis=0))
        scatter += np.eye(2) + pull * np.outer(mean, mean)
        if name == "full":
            expected = scatter / 204
        elif name == "diag":
            expected = np.diag(scatter) / 204
        else:
            expected = (np.trace(scatter) - 1) / 404
        assert_allclose(mixture.covariances_[label], expected, rtol=2e-6)
    assert_sound(mixture, X)


def test_scales_apart_by_1e5():
    """A cluster 1e5 times narrower than another, both recovered."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 2)), 1e-5 * rng.normal(size=(300, 2))])
    X[300:] += 5
    labels = np.repeat([0, 1], 300)
    for name in ("full", "diag", "spherical"):
        prior = {"full": 1e-9 * np.eye(2), "diag": [1e-9] * 2, "spherical": 1e-9}
        mixture = gaussian(
            name, 2, covariance_prior=prior[name], mean_precision_prior=1e-14
        ).fit(X)
        assert adjusted_rand_score(labels, mixture.predict(X)) == 1
        narrow = mixture.covariances_[mixture.predict([[5.0, 5.0]])[0]]
        variance = np.diag(narrow) if narrow.ndim == 2 else narrow
        assert_allclose(variance, 1e-10, rtol=0.3)


@every_model
def test_float32_rows_are_summed_in_float64(name):
    X = make_mixture(n_samples=200, n_components=3, random_state=1)[0]
    X = X.astype(np.float32)
    single, double = (gaussian(name).fit(rows) for rows in (X, X.astype(np.float64)))
    assert single.elbo_ == double.elbo_
    assert single.means_.dtype == single.statistics_.dtype == np.float64


COUNTS = np.random.default_rng(0).poisson(1.5, size=(80, 6)).astype(float)


def test_rows_without_counts():
    X = np.vstack([COUNTS, np.zeros((20, 6))])
    mixture = TemperedVBMultinomialMixture(3, random_state=0).fit(X)
    assert_sound(mixture, X)
    assert_allclose(mixture.predict_proba(X[-1:])[0].sum(), 1)
    error = 10 * np.spacing(gammaln(1e6))  # of the largest prior
    assert abs(mixture.score_samples(X[-1:])[0]) <= error  # it had to be so
    nothing = TemperedVBMultinomialMixture(2, random_state=0).fit(np.zeros((10, 4)))
    assert_allclose(nothing.components_, 0.25)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_counts_may_be_fractions_but_not_negative(container):
    mixture = TemperedVBMultinomialMixture(2, random_state=0)
    mixture.fit(container(COUNTS / 2))
    assert_sound(mixture, container(COUNTS / 2))
    before = state_of(mixture)
    bad = COUNTS.copy()
    bad[3, 2] = -1
    for call in (mixture.fit, mixture.partial_fit, mixture.predict):
        with pytest.raises(ValueError, match="Negative values in data passed to"):
            call(container(bad))
    assert not changes(before, state_of(mixture))


@pytest.mark.parametrize(
    "mixture", [TemperedVBGaussianMixture(2), TemperedVBMultinomialMixture(2)]
)
def test_a_row_of_weight_zero_must_be_finite(mixture):
    X, weight = COUNTS.copy(), np.ones(80)
    X[5, 0], weight[5] = np.inf, 0
    with pytest.raises(ValueError, match="Input X contains infinity"):
        mixture.fit(X, sample_weight=weight)
    with pytest.raises(ValueError, match="Sample weights must contain at least one"):
        mixture.fit(COUNTS, sample_weight=np.zeros(80))
    assert not hasattr(mixture, "n_features_in_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"covariance_type": "known"},
            "known_covariance must be given with covariance_type='known', and only "
            "then; got covariance_type='known' and known_covariance=None.",
        ),
        ({"known_covariance": 1.0}, "known_covariance must be given"),
        (
            {"prior": "factorized"},
            "prior='factorized' needs covariance_type 'diag' or 'spherical', got "
            "'full'.",
        ),
        (
            {"degrees_of_freedom_prior": 1.0},
            "degrees_of_freedom_prior=1.0 must exceed n_features - 1 = 5 with "
            "covariance_type='full'.",
        ),
        (
            {"mean_prior": [0, 0]},
            r"The parameter 'mean_prior' should have the shape \(6,\), but got \(2,\)",
        ),
        (
            {"covariance_prior": 1.0},
            r"The parameter 'covariance_prior' should have the shape \(6, 6\)",
        ),
        (
            {"covariance_prior": -np.eye(6)},
            "covariance_prior must be symmetric and positive definite",
        ),
        (
            {"covariance_type": "diag", "covariance_prior": [1, 1, 1, 1, 1, 0]},
            "covariance_prior must be positive",
        ),
    ],
)
def test_parameters_that_contradict_each_other(parameters, message):
    with pytest.raises(ValueError, match=message):
        TemperedVBGaussianMixture(2, **parameters).fit(COUNTS)


def test_numbers_of_draws_that_are_no_counts():
    with pytest.raises(ValueError, match="n_samples=0 should be an integer"):
        TemperedVBGaussianMixture(2).fit(COUNTS).sample(0)
    with pytest.raises(
        ValueError, match="n_tokens=-1 should be an integer of at least 0"
    ):
        TemperedVBMultinomialMixture(2).fit(COUNTS).sample(1, n_tokens=-1)


def test_an_ascent_that_stops_early_says_so():
    X, _ = make_mixture(separation=2.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="still rising after max_iter=2"):
        mixture = TemperedVBGaussianMixture(6, max_iter=2, random_state=0).fit(X)
    assert not mixture.converged_
    assert mixture.n_iter_ == 2


@pytest.mark.slow
def test_more_starts_are_never_worse_and_threads_change_nothing(monkeypatch):
    """The first start of four is the one start alone, exchanges apart."""
    monkeypatch.setattr(
        _learner, "exchange_components", lambda fit, *_, **__: (fit, None)
    )
    X, _ = make_mixture(separation=3.0, n_components=6, random_state=0)
    gains = []
    for seed in range(3):
        one, many = (
            TemperedVBGaussianMixture(8, n_init=n_init, random_state=seed).fit(X)
            for n_init in (1, 4)
        )
        gains.append(many.elbo_ - one.elbo_)
    assert min(gains) >= -1e-2  # each stops within its tolerance
    assert max(gains) > 1
    threads = TemperedVBGaussianMixture(8, n_init=4, random_state=seed, n_jobs=2)
    assert threads.fit(X).elbo_ == many.elbo_


# Around scikit-learn.


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_drop_in_for_bayesian_gaussian_mixture(kind):
    """The same calls, with results of the same shapes."""
    X, y = make_mixture(n_samples=400, n_components=3, random_state=0)
    ours, theirs = (
        cls(n_components=3, covariance_type=kind, random_state=0)
        for cls in (TemperedVBGaussianMixture, BayesianGaussianMixture)
    )
    for mixture in (ours, theirs):
        labels = mixture.fit_predict(X)
        assert adjusted_rand_score(y, labels) > 0.95
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
    for name in ("precisions_", "mean_precision_", "degrees_of_freedom_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
    assert ours.score(X) > theirs.score(X) - 0.05
    assert ours.predict_proba(X).shape == theirs.predict_proba(X).shape
    for actual, expected in zip(ours.sample(7), theirs.sample(7), strict=True):
        assert actual.shape == expected.shape
    if kind in ("full", "tied"):
        product = ours.precisions_cholesky_ @ ours.precisions_cholesky_.mT
        assert_allclose(product, ours.precisions_, rtol=1e-10)
        assert_allclose(np.linalg.inv(ours.covariances_), ours.precisions_, rtol=1e-9)


@pytest.mark.slow
def test_grid_search_over_the_temperature():
    X, _ = make_mixture("skewed", n_samples=300, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), TemperedVBGaussianMixture(4, random_state=0)),
        {"temperedvbgaussianmixture__inverse_temperature": [0.01, 1.0]},
        cv=3,
    ).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] > scores[0] + 0.1  # a hundredth of the data is too little
    assert search.predict(X).shape == (300,)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pytest.param(pl.DataFrame, marks=names_of_polars)]
)
def test_data_frames(frame):
    X, _ = make_mixture(random_state=0)
    table = frame({"height": X[:, 0], "width": X[:, 1]})
    mixture = TemperedVBGaussianMixture(4, random_state=0).fit(table)
    plain = TemperedVBGaussianMixture(4, random_state=0).fit(X)
    assert list(mixture.feature_names_in_) == ["height", "width"]
    assert mixture.elbo_ == plain.elbo_
    assert_array_equal(mixture.predict(table), plain.predict(X))
    mixture.partial_fit(table[:10])
    with pytest.raises(ValueError, match="feature names should match"):
        mixture.partial_fit(table.rename({"height": "depth"}, **columns(frame)))


@pytest.mark.parametrize(
    "library", ["pandas", pytest.param("polars", marks=names_of_polars)]
)
def test_frames_come_through_a_pipeline_and_arrays_go_out(library):
    """As with scikit-learn's mixtures: `set_output` is about `transform` alone."""
    X, _ = make_mixture(random_state=0)
    table = pd.DataFrame({"height": X[:, 0], "width": X[:, 1]})
    scaler = StandardScaler().set_output(transform=library)
    mixture = TemperedVBGaussianMixture(4, random_state=0)
    pipeline = make_pipeline(scaler, mixture).fit(table)
    assert list(mixture.feature_names_in_) == ["height", "width"]
    assert not hasattr(mixture, "set_output")
    with config_context(transform_output=library):
        for method in ("predict", "predict_proba", "score_samples"):
            assert type(getattr(pipeline, method)(table)) is np.ndarray
        assert all(type(part) is np.ndarray for part in mixture.sample(3))


def sparse_frame(X):
    """Return a frame of pandas whose columns are all sparse."""
    columns = [pd.arrays.SparseArray(column, fill_value=0.0) for column in X.T]
    return pd.DataFrame(dict(zip("ab", columns, strict=True)))


TABLES = {
    "list": np.ndarray.tolist,
    "int8": lambda X: X.astype(np.int8),
    "float16": lambda X: X.astype(np.float16),
    "object": lambda X: X.astype(object),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
    "frame": pd.DataFrame,
    "nullable": lambda X: pd.DataFrame(X).astype("Int64"),
    "categories": lambda X: pd.DataFrame(X).astype("category"),
    "polars": lambda X: pl.DataFrame(dict(zip("ab", X.T, strict=True))),
    "sparse frame": sparse_frame,
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
    "repeated entries": lambda X: with_repeated_entries(sparse.csr_array(X)),
}
ONE_START = {"n_init": 1, "random_state": 0}
OF_TABLES = {
    "gaussian": TemperedVBGaussianMixture(2, **ONE_START),
    "poisson": TemperedVBMixture("poisson", 2, **ONE_START),
    "categorical": TemperedVBMixture("categorical", 2, **ONE_START),
    "columns": TemperedVBMixture(
        [("a", "normal", [0]), ("b", "poisson", [1])], 2, **ONE_START
    ),
    "multinomial": TemperedVBMultinomialMixture(2, **ONE_START),
}


def with_repeated_entries(X):
    """Return the same sparse rows, each of their entries in two parts."""
    parts = np.repeat(X.data, 2) - np.tile([1.0, 0.0], X.nnz)
    parts[1::2] = 1.0
    return sparse.csr_array((parts, np.repeat(X.indices, 2), 2 * X.indptr), X.shape)


RATED = np.random.default_rng(0).poisson([[9.0, 2.0], [2.0, 9.0]] * 20).astype(float)


@functools.cache
def of_array(name):
    """Return what is fitted to an array, and the bound of a stream of it, twice."""
    mixture = OF_TABLES[name]
    stream = clone(mixture).partial_fit(RATED).partial_fit(RATED)
    return clone(mixture).fit(RATED), stream.elbo_


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", OF_TABLES)
def test_what_is_fitted_may_be_asked_about(name, table):
    """Every method of rows takes the table that `fit` takes, with one answer."""
    X = RATED
    rows, (plain, elbo_of_stream) = TABLES[table](X), of_array(name)
    mixture = clone(OF_TABLES[name])
    if (sparse.issparse(rows) or table == "sparse frame") and name != "multinomial":
        with pytest.raises((TypeError, ValueError), match=r"[Ss]parse"):
            mixture.fit(rows)
        return
    mixture.fit(rows)
    assert_allclose(mixture.elbo_, plain.elbo_, rtol=1e-12)
    asked = ["predict", "predict_proba", "score_samples", "score", "conditional"]
    for method in [*asked, "sufficient_statistics"]:
        if hasattr(plain, method):
            found, expected = (getattr(m, method) for m in (mixture, plain))
            found, expected = found(rows), expected(X)
            if method == "conditional":
                found, expected = found.mean, expected.mean
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    stream = clone(mixture).partial_fit(rows).partial_fit(rows)
    assert_allclose(stream.elbo_, elbo_of_stream, rtol=1e-12)
    assert stream.n_samples_seen_ == 80


def columns(frame):
    return {"axis": 1} if frame is pd.DataFrame else {}


def test_weighted_prior_scales():
    """Default priors see the weights."""
    X, weight = normal_rows(60, 2), np.r_[np.ones(30), np.zeros(30)]
    weighted = TemperedVBGaussianMixture(2, random_state=0).fit(X, sample_weight=weight)
    alone = TemperedVBGaussianMixture(2, random_state=0).fit(X[:30])
    assert weighted.elbo_ == alone.elbo_


@pytest.mark.parametrize(
    ("public", "missing"),
    [
        (TemperedVBMultinomialMixture, {"outlier_proba", "predict_target", "outliers"}),
        (TemperedVBGaussianMixture, {"predict_target"}),
        (TemperedVBMixture, set()),
    ],
)
def test_methods_of_other_families_are_not_inherited(public, missing):
    """Neither the class nor an estimator has them.

    Nor does `dir` list them, which newer releases of scikit-learn keep true.
    """
    mixture, kept_true = public(), "__dir__" in vars(BaseEstimator)
    for name in ("outlier_proba", "predict_target", "outliers"):
        if name in missing:
            assert not hasattr(public, name)
            assert not hasattr(mixture, name)
            assert not kept_true or name not in dir(mixture)
            with pytest.raises(AttributeError, match=name):
                getattr(mixture, name)
    counts = np.random.default_rng(0).poisson(3.0, (30, 3)) + 1.0
    fitted = mixture.set_params(random_state=0).fit(counts)
    assert not kept_true or not missing & set(dir(fitted))
    assert fitted.predict(counts).shape == (30,)
