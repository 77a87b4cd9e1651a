"""The choice of the inverse temperature: by rows that a fit has not seen."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)
from skpacbayes.mixture._held_out import (
    N_BLOCKS,
    TEMPERATURES,
    TemperatureChoice,
    blocks_of,
)
from skpacbayes.mixture._product import FAMILIES


def fitted(X, n_components, alpha):
    parameters = {"max_components": 5, "n_init": 1, "random_state": 0}
    with warnings.catch_warnings():  # at 0.9 the number may be undecided
        warnings.simplefilter("ignore", ConvergenceWarning)
        return TemperedVBGaussianMixture(
            n_components, inverse_temperature=alpha, **parameters
        ).fit(X)


def pair(X, n_components="auto"):
    """Fits at 0.9, and at the temperature that is chosen."""
    return [fitted(X, n_components, alpha) for alpha in (0.9, "auto")]


@pytest.mark.slow
def test_well_specified_rows_cost_nothing():
    """Three sets: together within a standard error of the fits at 0.9."""
    gaps = []
    for seed, n_components in enumerate([2, 3, "auto"]):
        X, _ = make_mixture(n_samples=1200, n_components=2, random_state=seed)
        usual, chosen = pair(X[:200], n_components)
        gaps += list(chosen.score_samples(X[200:]) - usual.score_samples(X[200:]))
    assert np.mean(gaps) > -np.std(gaps) / np.sqrt(len(gaps)) - 1e-9


@pytest.mark.filterwarnings("ignore:Rows are there twice")
@pytest.mark.parametrize(("n_components", "seed"), [("auto", 0), (5, 1)])
def test_copies_of_rows_are_seen_through(n_components, seed):
    """Each row five times, in any order: the evidence is counted five times at 0.9.

    The chosen fit is within .1 nats a row of that of the rows themselves.
    """
    X, _ = make_mixture(n_samples=1100, n_features=3, random_state=seed)
    copies = np.random.default_rng(0).permutation(np.repeat(X[:60], 5, axis=0))
    usual, chosen = pair(copies, n_components)
    assert chosen.inverse_temperature_ < 0.9
    assert chosen.score(X[100:]) > usual.score(X[100:]) + 0.05
    if n_components == "auto":
        alone = fitted(X[:60], "auto", 0.9)
        assert chosen.n_components_ < usual.n_components_
        assert chosen.score(X[100:]) > alone.score(X[100:]) - 0.1


def two_groups(family):
    """Rows of a family, with groups that are hardly apart."""
    rng = np.random.default_rng(7)
    first = np.arange(60)[:, None] < 30
    if family in ("poisson", "bernoulli", "categorical"):
        return rng.binomial(1, np.where(first, 0.2, 0.8), (60, 6)).astype(float)
    if family == "von_mises_fisher":
        X = rng.normal(size=(60, 3)) + np.where(first, [3.0, 0, 0], [0, 3.0, 0])
        return X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    if family == "product":
        numbers = rng.normal(np.where(first, 0.0, 3.0), 1.0)
        return np.hstack([numbers, rng.poisson(np.where(first, 2.0, 6.0), (60, 2))])
    if family == "regression":
        x = rng.normal(size=(60, 1))
        return np.hstack([x, np.where(first, 4 * x, -4 * x) + rng.normal(size=(60, 1))])
    X = rng.normal(np.where(first, 0.0, 3.0), 1.0, (60, 2))
    return X if family in ("full", "tied", "normal", "student") else np.exp(X / 2)


@pytest.mark.slow
@pytest.mark.parametrize("family", [*sorted(FAMILIES), "product", "full", "tied"])
def test_rows_that_are_all_copied_have_the_fit_of_one_of_each(family):
    """As rows in any order, and as weights: held-out rows did not always see it."""
    X = two_groups(family)
    copies = np.random.default_rng(0).permutation(np.repeat(X, 4, axis=0))
    options = {"max_components": 2, "n_init": 1, "random_state": 0}
    product = [("a", "normal", [0]), ("b", "poisson", [1, 2])]
    if family in ("full", "tied"):
        mixture = TemperedVBGaussianMixture(covariance_type=family)
    else:
        mixture = TemperedVBMixture(product if family == "product" else family)
    mixture.set_params(n_components="auto", inverse_temperature="auto", **options)
    found = []
    for rows, weight in ((X, None), (copies, None), (X, np.full(60, 4))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of numbers and families
            fit = clone(mixture).fit(rows, sample_weight=weight)
        found.append((fit.n_components_, fit.elbo_, fit.inverse_temperature_))
    alone, as_rows, as_weights = map(np.array, found)
    for each in (as_rows, as_weights):
        assert_allclose(each * [1, 1, 4], alone, rtol=1e-5)


def test_rows_that_depend_on_their_neighbors_are_seen_through():
    """One broad group, visited slowly: at 0.9 its paths are taken for groups."""
    generator, rows_, row = np.random.default_rng(0), [], np.zeros(2)
    for _ in range(500):
        row = 0.95 * row + np.sqrt(1 - 0.95**2) * generator.normal(size=2)
        rows_.append(row)
    with pytest.warns(UserWarning, match="Rows depend on their order"):
        usual, chosen = pair(np.array(rows_))
    new = generator.normal(size=(5000, 2))
    assert chosen.inverse_temperature_ < 0.9
    assert chosen.n_components_ < usual.n_components_
    assert chosen.score(new) > usual.score(new) + 0.1


@pytest.mark.parametrize("heavy", [False, True])
def test_weights_are_copies(heavy, monkeypatch):
    """The same folds, gains and number of temperatures fitted: unequal weights.

    With heavy weights the weighted gains stop before the smallest temperature.
    """
    gains, own = [], TemperatureChoice.gains

    def recorded(*arguments):
        gains.append(own(*arguments))
        return gains[-1]

    monkeypatch.setattr(TemperatureChoice, "gains", recorded)
    X, _ = make_mixture(n_samples=100, n_features=3, random_state=0)
    X = X[:60]
    counts = np.random.default_rng(0).integers(1, 10, 60)
    if heavy:
        counts = np.where(np.random.default_rng(3).random(60) < 0.1, 30, 1)
    chosen = [
        TemperedVBGaussianMixture(
            3, inverse_temperature="auto", n_init=1, random_state=0
        )
        .fit(rows, sample_weight=weight)
        .inverse_temperature_
        for rows, weight in ((X, counts), (np.repeat(X, counts, axis=0), None))
    ]
    assert chosen[0] == chosen[1]
    assert heavy or chosen[0] < 0.9
    assert len(gains[0]) == len(TEMPERATURES) - (1 if heavy else 2)
    assert_allclose(*gains, rtol=1e-6, atol=1e-6)


def test_blocks_hold_neighbors_and_copies():
    X = np.random.default_rng(0).normal(size=(60, 2))
    blocks = blocks_of(X, copies=True)
    assert_array_equal(blocks, np.sort(blocks))
    assert_array_equal(np.unique(blocks), np.arange(N_BLOCKS))
    X[::7, 1] = np.nan
    twice = np.vstack([X, X[::-1]])
    blocks = blocks_of(twice, copies=True)
    assert_array_equal(blocks[:60], blocks[:59:-1])
    assert blocks_of(twice, copies=False).max() == N_BLOCKS - 1
    assert (blocks_of(np.zeros((9, 2)), copies=True) == 0).all()


@pytest.mark.slow
def test_sparse_counts_and_holes_and_few_rows():
    generator = np.random.default_rng(0)
    counts = generator.poisson(1.0, (40, 4))
    options = {"inverse_temperature": "auto", "n_init": 1, "random_state": 0}
    topics = TemperedVBMultinomialMixture(2, **options)
    dense = topics.fit(counts).inverse_temperature_
    sparse = pytest.importorskip("scipy.sparse").csr_array(counts)
    assert topics.fit(sparse).inverse_temperature_ == dense
    X = generator.normal(size=(50, 2))
    X[::5, 0] = np.nan
    holes = TemperedVBGaussianMixture(2, **options)
    assert holes.fit(X).inverse_temperature_ in TEMPERATURES
    assert holes.fit(X[:4]).inverse_temperature_ == 0.9  # fewer rows than folds
    with pytest.warns(UserWarning, match="Column 0 of X has the value"):
        holes.fit(np.repeat(X[:4], 9, axis=0))
    assert holes.inverse_temperature_ == 0.9


def test_a_stream_keeps_what_its_first_block_chose():
    """However it is cut; later rows change the posterior alone."""
    X = np.repeat(np.random.default_rng(0).normal(size=(12, 2)), 5, axis=0)
    later = np.random.default_rng(1).normal(size=(40, 2))
    bounds = []
    for cuts in ([], [7, 31]):
        mixture = TemperedVBGaussianMixture(
            2,
            inverse_temperature="auto",
            n_init=1,
            n_jobs=1 + len(cuts),  # threads change nothing
            block_size=60,
            window=0,
            random_state=0,
        )
        for part in np.split(X, cuts):
            mixture.partial_fit(part)
        chosen = mixture.inverse_temperature_
        assert chosen < 0.9
        assert mixture.partial_fit(later).inverse_temperature_ == chosen
        bounds.append(mixture.elbo_)
    assert bounds[0] == bounds[1]
