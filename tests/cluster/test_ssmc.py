"""`SSMCKMeansInit`: exact posteriors, what the moves gain, streams, odd input."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skpacbayes import SSMCKMeansInit, make_paco_model
from skpacbayes.cluster._ssmc_particles import Population, propose
from skpacbayes.cluster._ssmc_stream import Setting, TupleStream

X, _ = make_paco_model(3, 60, random_state=0)
LEAST_P = 1e-6  # a correct sampler fails a test of chance once in a million


def inertia(X, centers):
    return cdist(X, centers, "sqeuclidean").min(axis=1).sum()


def groups(n_groups, n_samples, n_features, seed):
    rng = np.random.default_rng(seed)
    means = rng.uniform(-10, 10, size=(n_groups, n_features))
    rows = means[rng.integers(n_groups, size=n_samples)]
    return rows + rng.normal(size=rows.shape), means


# Algorithm 2 against enumeration.


@pytest.mark.parametrize("noise_variance", [None, 2.0])
@pytest.mark.parametrize("sizes", [(7,), (3, 4), (4, 3)])
def test_posterior_of_tuples(noise_variance, sizes):
    """Whatever the batches, particles spread as likelihood times uniform prior.

    With 10^8 particles for each of the 21 tuples the share of each has a standard error
    below 1e-4, even if a batch leaves it one particle in a thousand.
    """
    rows = np.random.default_rng(3).normal(size=(7, 2))
    rows[4:] += 1.5
    tuples = np.array([rows[list(t)] for t in itertools.combinations(range(7), 2)])
    population = Population(tuples, noise_variance)
    population.counts *= 10**8
    rng = np.random.default_rng(0)
    for batch in np.split(rows, np.cumsum(sizes)[:-1]):
        population.absorb(batch, rng)

    costs = np.array([inertia(rows, centers) for centers in tuples])
    if noise_variance is None:
        likelihood = costs ** (-rows.size / 2)
    else:
        likelihood = np.exp(-costs / (2 * noise_variance))
    expected = likelihood / likelihood.sum()
    shares = np.zeros(21)
    for centers, count in zip(population.tuples, population.counts, strict=True):
        (found,) = np.flatnonzero((tuples == centers).all(axis=(1, 2)))
        shares[found] = count / population.counts.sum()
    assert expected.max() < 0.9  # the posterior is not a point
    assert_allclose(shares, expected, atol=1e-3)


@pytest.mark.parametrize("proposal", ["d2", "data"])
def test_law_of_the_candidates(proposal):
    """Frequencies of the 60 ordered triples of 5 rows, or of the 10 sets."""
    rows = np.array([[0.0], [1.0], [2.5], [3.0], [7.0]])
    expected = {}
    for triple in itertools.permutations(range(5), 3):
        probability = 1 / 5
        for j in (1, 2):
            squares = cdist(rows, rows[list(triple[:j])], "sqeuclidean").min(axis=1)
            probability *= squares[triple[j]] / squares.sum()
        key = tuple(sorted(triple)) if proposal == "data" else triple
        expected[key] = expected.get(key, 0) + probability
    if proposal == "data":
        expected = dict.fromkeys(expected, 1 / 10)
    n_draws = 20_000
    draws = propose(rows, 3, n_draws, proposal, np.random.default_rng(0))[:, :, 0]
    found = np.searchsorted(rows[:, 0], draws)
    counts = [(found == key).all(axis=1).sum() for key in expected]
    assert sum(counts) == n_draws
    assert chisquare(counts, n_draws * np.array([*expected.values()])).pvalue > LEAST_P


def test_sobol_candidates_fill_the_box():
    """Of 64 points of a Sobol sequence each half of each axis holds 32."""
    tuples = propose(X, 3, 64, "sobol", np.random.default_rng(0)).reshape(64, 6)
    low, high = np.tile(X.min(axis=0), 3), np.tile(X.max(axis=0), 3)
    assert ((low <= tuples) & (tuples <= high)).all()
    assert_array_equal((tuples < (low + high) / 2).sum(axis=0), 32)


def test_particles_collapse_to_a_good_tuple():
    """One of 100 uniform tuples is left, better than nearly all such tuples."""
    paper = SSMCKMeansInit(
        4, n_particles=100, n_moves=0, proposal="data", random_state=0
    ).fit(X)
    rng = np.random.default_rng(0)
    others = [inertia(X, tuple_) for tuple_ in propose(X, 4, 2000, "data", rng)]
    assert np.mean(paper.inertia_ > np.array(others)) < 0.05
    assert paper.n_swaps_ == 0
    assert 1 <= paper.n_batches_ < 200


# What moves gain.


def test_swap_moves_mend_the_seeding():
    """20 groups in 5 dimensions: k-means++ without trials fails more often than not."""
    failures = {0: 0, "auto": 0}
    for seed in range(20):
        rows, means = groups(20, 1000, 5, seed)
        best = KMeans(20, init=means, n_init=1).fit(rows).inertia_
        for n_moves in failures:
            init = SSMCKMeansInit(n_moves=n_moves)
            found = KMeans(20, init=init, n_init=1, random_state=seed).fit(rows)
            failures[n_moves] += found.inertia_ > 1.05 * best
    assert failures[0] > 10
    assert failures["auto"] == 0


def test_each_move_lowers_the_inertia_or_is_refused():
    rows, _ = groups(6, 200, 2, 0)
    fits = [SSMCKMeansInit(12, n_moves=n, random_state=1).fit(rows) for n in range(30)]
    changes = np.diff([fit.inertia_ for fit in fits])
    swaps = np.diff([fit.n_swaps_ for fit in fits])
    assert_array_equal(changes < 0, swaps == 1)
    assert_array_equal(changes == 0, swaps == 0)
    assert 0 < fits[-1].n_swaps_ < 29


def test_fitted_attributes_belong_together():
    fit = SSMCKMeansInit(5, random_state=0).fit(X)
    assert_allclose(fit.inertia_, inertia(X, fit.cluster_centers_), rtol=1e-12)
    assert_allclose(fit.score(X), -fit.inertia_, rtol=1e-12)
    assert_array_equal(fit.labels_, fit.predict(X))
    assert_array_equal(np.unique(fit.labels_), np.arange(5))
    assert (X[:, None] == fit.cluster_centers_).all(axis=2).any(axis=0).all()
    assert fit.transform(X).shape == (60, 5)


# Parameters.


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_particles": 30},
        {"n_moves": 0},
        {"n_moves": 3},
        {"proposal": "data"},
        {"proposal": "sobol"},
        {"random_state": 1},
    ],
    ids=str,
)
def test_parameter_matters(parameters):
    default = SSMCKMeansInit(6, random_state=0).fit(X)
    other = clone(default).set_params(**parameters).fit(X)
    assert not np.array_equal(default.cluster_centers_, other.cluster_centers_)


def particles(**parameters):
    start = {"n_particles": 50, "n_moves": 0, "proposal": "data", "random_state": 0}
    return SSMCKMeansInit(3, **(start | parameters))


def test_batch_size_is_that_of_the_batches():
    """Small batches, read with great noise, tell tuples apart in many steps."""
    counts = [
        particles(batch_size=size, noise_variance=500.0).fit(X).n_batches_
        for size in (1, 10, 60)
    ]
    assert counts[0] > counts[1] > counts[2] > 1
    capped = particles(batch_size=10, noise_variance=1e6, max_passes=1).fit(X)
    assert capped.n_batches_ == 6


def test_noise_variance_tempers():
    batches = [
        particles(noise_variance=variance).fit(X).n_batches_
        for variance in (0.01, 100.0, 1e4)
    ]
    assert batches[0] < batches[1] < batches[2]


# As init of k-means.


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", [KMeans, MiniBatchKMeans])
def test_init_of_k_means(estimator, dtype):
    model = estimator(4, init=SSMCKMeansInit(), n_init=1, random_state=0)
    fit = model.fit(X.astype(dtype))
    assert fit.cluster_centers_.dtype == dtype
    again = clone(model).fit(X.astype(dtype))
    assert_array_equal(fit.cluster_centers_, again.cluster_centers_)
    assert fit.inertia_ < 1.2 * KMeans(4, n_init=10, random_state=0).fit(X).inertia_


def test_call_is_fit_and_keeps_nothing():
    init = SSMCKMeansInit(n_clusters=2, random_state=7)
    before = dict(vars(init))
    centers = init(X, 5, random_state=3)
    assert vars(init) == before
    fit = SSMCKMeansInit(5, random_state=3).fit(X)
    assert_array_equal(centers, fit.cluster_centers_)


def test_call_refuses():
    with pytest.raises(ValueError, match="n_samples=60 should be >= n_clusters=61"):
        SSMCKMeansInit()(X, 61)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        KMeans(3, init=SSMCKMeansInit(), n_init=1).fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="The 'n_moves' parameter"):
        SSMCKMeansInit(n_moves=-1)(X, 3)


# Streams.


def test_a_stream_begins_as_fit():
    """Before the first batch is complete the centres are those of fit."""
    stream = SSMCKMeansInit(4, batch_size=100, random_state=0)
    for stop in range(1, 30):
        stream.partial_fit(X[stop - 1 : stop])
        n_clusters = min(4, stop)
        assert stream.cluster_centers_.shape == (n_clusters, 2)
        assert stream.transform(X).shape == (60, n_clusters)
        fit = SSMCKMeansInit(n_clusters, random_state=0).fit(X[:stop])
        assert_array_equal(stream.cluster_centers_, fit.cluster_centers_)


def test_a_stream_finds_the_groups():
    """As many centres as groups, and each group has one, from the first batch on."""
    rows, means = groups(20, 6000, 5, 0)
    stream = SSMCKMeansInit(20, random_state=0)
    for batch in np.split(rows, 12):
        stream.partial_fit(batch)
        if stream.n_samples_seen_ >= 1000:
            assert len(np.unique(stream.predict(means))) == 20
    assert stream.n_samples_seen_ == 6000
    assert stream.n_swaps_ > 0
    assert stream.n_batches_ == 0  # one particle is not weighed


def test_a_stream_counts_the_batches_that_weigh_particles():
    stream = particles(batch_size=10, noise_variance=1e6).partial_fit(X[:50])
    assert stream.n_batches_ == 5


def test_a_stream_follows_rows_that_come_late():
    """Groups that were not in the first batch are found by the moves of later ones."""
    rows, means = groups(8, 4000, 3, 1)
    order = cdist(rows, means).argmin(axis=1).argsort(kind="stable")
    stream = SSMCKMeansInit(8, random_state=0)
    stream.partial_fit(rows[order][:500])
    assert len(np.unique(stream.predict(means))) < 8
    stream.partial_fit(rows[order][500:])
    assert len(np.unique(stream.predict(means))) == 8


@pytest.mark.slow
def test_the_sample_of_a_stream_is_uniform():
    """Frequencies, over 1,000 streams, of the 40 rows in samples of 5."""
    rows = np.arange(40.0)[:, None]
    setting = Setting(1, 1, 0, 5, None, "d2", 1)
    counts = np.zeros(40)
    for seed in range(1000):
        stream = TupleStream(setting, 1, np.random.default_rng(seed))
        stream.read(rows)
        counts[stream._sample[:, 0].astype(int)] += 1
    assert counts.sum() == 5 * 1000
    # Without replacement counts vary less than chi-square's: large p-values only.
    assert chisquare(counts).pvalue > LEAST_P


def test_fit_then_partial_fit_goes_on():
    fit = SSMCKMeansInit(4, random_state=0).fit(X)
    centers = fit.cluster_centers_
    fit.partial_fit(X[:10])
    assert_array_equal(fit.cluster_centers_, centers)  # no batch is complete
    assert fit.n_samples_seen_ == 70
    assert not hasattr(fit, "labels_")
    assert not hasattr(fit, "inertia_")
    fit.partial_fit(np.tile(X + 100, (10, 1)))
    assert (fit.cluster_centers_ > 90).any()


def test_not_fitted():
    with pytest.raises(NotFittedError):
        SSMCKMeansInit().predict(X)
    assert not hasattr(SSMCKMeansInit(), "cluster_centers_")


# Odd input.

ROWS = {
    "one row": np.array([[3.0, -1.0]]),
    "a row of zeros": np.zeros((1, 2)),
    "equal rows": np.full((9, 2), 0.1),
    "one feature": X[:, :1],
    "a constant column": np.column_stack([X, np.full(60, 7.3)]),
    "fewer distinct rows than clusters": np.repeat(X[:2], 9, axis=0),
    "as many rows as clusters": X[:3],
    "rows of 1e300": X * 1e299,
    "rows of 1e-300": X * 1e-301,
    "1e300, then 1e-300": np.vstack([X[:9] * 1e299, X[:9] * 1e-300]),
    "1e-300, then 1e300": np.vstack([X[:9] * 1e-300, X[:9] * 1e299]),
    "far from the origin": X + 1e12,
    "784 features": np.random.default_rng(0).normal(size=(6, 784)),
    "integers": np.round(X).astype(int),
}
SETTINGS = {
    "default": {},
    "data": {"n_particles": 10, "proposal": "data"},
    "sobol": {"n_particles": 10, "proposal": "sobol", "n_moves": 0},
    "known variance": {"n_particles": 10, "proposal": "data", "noise_variance": 0.1},
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_odd_rows(rows, setting):
    n_clusters = min(3, len(rows))
    fit = SSMCKMeansInit(n_clusters, random_state=0, **setting).fit(rows)
    stream = SSMCKMeansInit(n_clusters, batch_size=5, random_state=0, **setting)
    for batch in (rows[:1], rows[1:]):
        if len(batch):
            stream.partial_fit(batch)
    for model in (fit, stream):
        assert np.isfinite(model.cluster_centers_).all()
        assert model.cluster_centers_.shape == (n_clusters, rows.shape[1])
        assert np.isfinite(model.transform(rows)).all()
        assert set(model.predict(rows)) <= set(range(n_clusters))
    assert fit.inertia_ >= 0


def test_unit_and_origin_do_not_matter():
    """Powers of two change no digit, and multiples of 1/64 stay exact when moved."""
    rows = np.round(64 * X) / 64
    expected = SSMCKMeansInit(4, random_state=0).fit(rows)
    for scale, shift in ((2.0**400, 0), (2.0**-400, 0), (1, 1024)):
        actual = SSMCKMeansInit(4, random_state=0).fit(scale * rows + shift)
        moved = scale * expected.cluster_centers_ + shift
        assert_array_equal(actual.cluster_centers_, moved)


def test_too_few_rows():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        SSMCKMeansInit(4).fit(X[:3])
    with pytest.warns(ConvergenceWarning, match=r"clusters \(3\) found .* \(5\)"):
        fit = SSMCKMeansInit(5, random_state=0).fit(np.repeat(X[:3], 4, axis=0))
    assert fit.inertia_ == 0
    assert set(fit.labels_) == {0, 1, 2}


def test_every_row_a_centre():
    fit = SSMCKMeansInit(60, random_state=0).fit(X)
    assert math.isclose(fit.inertia_, 0)
    assert_array_equal(np.sort(fit.labels_), np.arange(60))


def test_a_failed_fit_changes_nothing():
    fit = SSMCKMeansInit(4, random_state=0).fit(X)
    before = fit.cluster_centers_
    with pytest.raises(ValueError, match="n_samples"):
        fit.fit(X[:2])
    assert_array_equal(fit.cluster_centers_, before)
    assert fit.n_samples_seen_ == 60
