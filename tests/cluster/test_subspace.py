"""`SubspaceMixture`: exact posteriors by enumeration, hidden groups, odd input."""

import itertools
import re
import warnings

import numpy as np
import pytest
from designs import every_two
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skpacbayes import SubspaceMixture, make_subspace_groups
from skpacbayes._kernels.subspace import PRIOR_COUNT, PRIOR_SCALE, PRIOR_SHAPE
from skpacbayes.cluster._subspace import most_correlated
from skpacbayes.cluster._subspace_chain import (
    BACKGROUND_SCALE,
    BACKGROUND_SHAPE,
    FACTOR_SCALE,
    FACTOR_SHAPE,
    Chain,
)
from skpacbayes.cluster._subspace_posterior import Run
from skpacbayes.cluster._subspace_start import start_from_halves

# Most fits start few chains, to be quick.
pytestmark = pytest.mark.filterwarnings("ignore:The two best of")

X, y = make_subspace_groups(4, 40, random_state=0)


def student(values, scatter, shape, scale):
    """Log density of values whose variance is integrated out."""
    n = len(values)
    if n == 0:
        return 0.0
    matrix = scale / shape * scatter
    return stats.multivariate_t(np.zeros(n), matrix, df=2 * shape).logpdf(values)


def log_evidence(shared, values, labels, relevant, factor):
    """Log density of one feature given the partition and which clusters it concerns."""
    n = len(values)
    background = (BACKGROUND_SHAPE, BACKGROUND_SCALE)
    if shared:
        scatter = np.eye(n) + 1
        for j in np.flatnonzero(relevant):
            scatter += factor * np.outer(labels == j, labels == j)
        return student(values, scatter, *background)
    own = PRIOR_SHAPE, PRIOR_SCALE
    rest = values[~relevant[labels]]
    total = student(rest, np.eye(len(rest)) + 1, *background)
    for j in np.flatnonzero(relevant):
        rows = values[labels == j]
        total += student(rows, np.eye(len(rows)) + 1 / PRIOR_COUNT, *own)
    return total


def same_labels(labels):
    """Of each pair of rows, whether they have the same label."""
    return [labels[a] == labels[b] for a in range(len(labels)) for b in range(a)]


def enumerate_posterior(shared, rows, concentration):
    """Return pairs' probability of one label, and how many features are relevant.

    Two clusters: all partitions, all relevances, and the middles of 25 equally probable
    intervals of the factor.
    """
    n, d = rows.shape
    quantiles = (np.arange(25) + 0.5) / 25
    prior = stats.invgamma(FACTOR_SHAPE, scale=FACTOR_SCALE)
    factors = prior.ppf(quantiles) if shared else [1.0]
    pairs = list(itertools.product([False, True], repeat=2))
    logs, together, n_relevant = [], [], []
    for tail in itertools.product([0, 1], repeat=n - 1):
        labels = np.array([0, *tail])  # the other half of the labellings mirrors it
        weights = gammaln(np.bincount(labels, minlength=2) + concentration).sum()
        features = np.array(
            [
                [
                    [log_evidence(shared, rows[:, f], labels, np.array(pair), factor)]
                    for f in range(d)
                    for pair in pairs
                ]
                for factor in factors
            ]
        ).reshape(len(factors), d, len(pairs))
        for choice in itertools.product(range(len(pairs)), repeat=d):
            count = sum(sum(pairs[c]) for c in choice)
            likelihood = logsumexp(features[:, range(d), choice].sum(axis=1))
            logs.append(weights + betaln(1 + count, 1 + 2 * d - count) + likelihood)
            together.append(
                [labels[a] == labels[b] for a in range(n) for b in range(a)]
            )
            n_relevant.append(count)
    p = np.exp(np.array(logs) - logsumexp(logs))
    return np.append(p @ np.array(together), p @ np.array(n_relevant))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_chain_against_enumeration(shared):
    """20 chains; a mean is off by 7 standard errors once in a million times."""
    rows = np.array([[-0.9, 0.3], [-0.8, 1.2], [-1.0, -1.5], [0.9, 0.2], [1.8, -0.2]])
    expected = enumerate_posterior(shared, rows, 0.8)
    means = []
    for rng in np.random.default_rng(0).spawn(20):
        chain, found = Chain(rows, 2, shared, 0.8, rng), []
        for sweep in range(320):
            chain.sweep()
            if sweep >= 20:
                relevance = chain.relevance(chain.find_gains())
                found.append([*same_labels(chain.labels), relevance.sum()])
        means.append(np.mean(found, axis=0))
    error = np.std(means, axis=0, ddof=1) / np.sqrt(20)
    assert np.ptp(expected[:-1]) > 0.1
    assert (error < 0.03 * np.append(np.ones(10), 4)).all()  # it can tell
    assert (np.abs(np.mean(means, axis=0) - expected) < 7 * error).all()


# The extreme example of the appendix.


@pytest.mark.parametrize("n_features", [6, 10])
def test_extreme_example(n_features):
    """Groups hidden in all features but two: found, with their features."""
    rows, groups = make_subspace_groups(n_features, random_state=0)
    mixture = SubspaceMixture(n_features - 1, n_init=4, random_state=0).fit(rows)
    assert adjusted_rand_score(groups, mixture.labels_) > 0.8
    assert adjusted_rand_score(groups, mixture.predict(rows)) > 0.8
    found = [np.flatnonzero(p > 0.5).tolist() for p in mixture.relevant_features_]
    assert sorted(found) == [[j, j + 1] for j in range(n_features - 1)]
    assert_allclose(mixture.weights_.sum(), 1)
    assert_array_equal(
        np.bincount(mixture.labels_), -np.sort(-np.bincount(mixture.labels_))
    )


def shifted(n_features=6, seed=0):
    """Three groups, each shifted in two features of its own; unit variances."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(3), 60)
    rows = rng.normal(size=(180, n_features))
    for j in range(3):
        rows[groups == j, 2 * j : 2 * j + 2] += 5
    return rows, groups


@pytest.mark.slow
@pytest.mark.parametrize(("n_clusters", "seed"), [(3, 0), ("auto", 3)])
def test_groups_in_few_of_many_features(n_clusters, seed):
    """Three groups that five features of 200 show; more features than rows.

    Any two centres are at least eight standard deviations apart: the groups are known
    but for a row in 10,000. A fit whose start does not see them finds one or two.
    """
    rng = np.random.default_rng([5, seed])
    groups = np.repeat(np.arange(3), 40)
    rows = rng.normal(size=(120, 200))
    rows[:, :5] += (
        8
        * np.array(
            [[0, 0, 0, 0, 0], [0.5, -0.5, 0.5, -0.5, 0.5], [-0.5, -0.5, 0, 0.5, 0.5]]
        )[groups]
    )
    mixture = SubspaceMixture(n_clusters, random_state=seed).fit(rows)
    assert adjusted_rand_score(groups, mixture.labels_) > 0.95
    assert (mixture.relevant_features_.max(axis=0) > 0.5)[:5].sum() >= 4


def warnings_of(rows, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(4):
            SubspaceMixture(3, random_state=seed, **parameters).fit(rows)
    return [str(warning.message) for warning in caught]


@pytest.mark.slow
def test_chains_that_disagree_are_named():
    """In rows without groups, chains find three clusters each, but not the same."""
    noise = np.random.default_rng(4).normal(size=(150, 8))
    found = warnings_of(noise)
    assert found
    assert all(re.search(r"n_init=10 .* \d\d% of the rows in", text) for text in found)
    assert not warnings_of(shifted()[0])
    assert not warnings_of(noise, n_init=1)  # nothing to compare with
    assert not warnings_of(np.ones((9, 2)))


def test_shared_variance_sees_shifts_only():
    rows, groups = shifted()
    for variance in ("shared", "cluster"):
        mixture = SubspaceMixture(3, variance=variance, n_init=4, random_state=0)
        assert adjusted_rand_score(groups, mixture.fit_predict(rows)) > 0.9
    rows, groups = make_subspace_groups(6, random_state=0)
    blind = SubspaceMixture(5, variance="shared", n_init=4, random_state=0)
    assert adjusted_rand_score(groups, blind.fit_predict(rows)) < 0.4


def test_one_chain_of_several_starts_as_k_means():
    """Twelve groups in 24 features, that all features together show at once."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 20)
    rows = rng.normal(size=(240, 24)) + 6 * np.repeat(np.eye(12), 2, axis=1)[groups]
    mixture = SubspaceMixture(12, n_init=2, burn_in=2, n_iter=3, random_state=0).fit(
        rows
    )
    assert adjusted_rand_score(groups, mixture.labels_) > 0.99
    assert mixture.log_joints_.argmax() == 0


@pytest.mark.parametrize("variance", ["shared", "cluster"])
def test_new_rows(variance):
    """Rows of the same law are told apart as well as by the truth's own mixture."""
    rows, groups = shifted()
    new, truth = shifted(seed=1)
    mixture = SubspaceMixture(3, variance=variance, n_init=4, random_state=0).fit(rows)
    means = np.array([rows[groups == j].mean(axis=0) for j in range(3)])
    peer = GaussianMixture(3, covariance_type="diag", means_init=means).fit(rows)
    best = adjusted_rand_score(truth, peer.predict(new))
    assert adjusted_rand_score(truth, mixture.predict(new)) > best - 0.05


@pytest.mark.parametrize("variance", ["shared", "cluster"])
def test_probabilities_and_densities_of_new_rows(variance):
    """Both from one joint density, which integrates to one."""
    rows, _ = shifted(2)
    cheap = {"n_init": 2, "burn_in": 5, "n_iter": 10, "random_state": 0}
    mixture = SubspaceMixture(3, variance=variance, **cheap).fit(rows)
    grid = np.linspace(-60, 60, 601)
    points = np.array(list(itertools.product(grid, grid)))
    density = np.exp(mixture.score_samples(points))
    assert_allclose(density.sum() * (grid[1] - grid[0]) ** 2, 1, atol=0.02)
    probabilities = mixture.predict_proba(rows)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_array_equal(probabilities.argmax(axis=1), mixture.predict(rows))
    assert_allclose(mixture.score(rows), mixture.score_samples(rows).mean())
    # Of all rows, weighted by their density, those of a cluster have its weight.
    shares = density @ mixture.predict_proba(points) / density.sum()
    assert_allclose(shares, mixture.weights_, atol=0.01)


def test_densities_are_in_the_units_of_the_rows():
    cheap = {"n_init": 2, "burn_in": 2, "n_iter": 5, "random_state": 0}
    rows = np.round(2**12 * X) / 2**12
    expected = SubspaceMixture(3, **cheap).fit(rows)
    for scale, shift in ((2.0**10, 0.0), (2.0**-300, 0.0), (1.0, 2.0**14)):
        other = SubspaceMixture(3, **cheap).fit(scale * rows + shift)
        density = other.score_samples(scale * rows + shift) + 4 * np.log(scale)
        assert_allclose(density, expected.score_samples(rows), rtol=1e-6)


# The number of clusters.


@pytest.mark.parametrize(
    ("rows", "n_groups"),
    [
        (make_subspace_groups(6, spread=0.03, random_state=7)[0], 5),
        (shifted(seed=3)[0], 3),
        (np.random.default_rng(0).normal(size=(200, 5)), 1),
        (np.random.default_rng(0).uniform(size=(200, 5)), 1),
        (np.full((9, 2), 0.1), 1),
        (X[:1], 1),
    ],
    ids=["extreme", "shifted", "one normal", "one box", "equal rows", "one row"],
)
def test_number_of_clusters(rows, n_groups):
    mixture = SubspaceMixture("auto", n_init=4, random_state=0).fit(rows)
    assert mixture.n_clusters_ == n_groups
    assert mixture.weights_.shape == (n_groups,)
    assert mixture.predict_proba(rows).shape == (len(rows), n_groups)


@pytest.mark.filterwarnings("ignore:.*better as counts or categories")
def test_a_cluster_without_rows_has_no_mean_in_the_checks():
    """NumPy would warn of a mean of no rows, which is an error here."""
    rows = np.random.default_rng(0).poisson(1.0, size=(100, 6))
    mixture = SubspaceMixture("auto", n_init=2, random_state=0).fit(rows)
    assert len(np.unique(mixture.labels_)) < mixture.n_clusters_
    assert np.isfinite(mixture.cluster_centers_).all()


def test_many_clusters_of_few_rows_are_in_doubt():
    """Twelve rows of noise in many features look like ten clusters."""
    rows = np.random.default_rng(0).normal(size=(12, 400))
    with pytest.warns(ConvergenceWarning, match="clusters were chosen for 12 rows"):
        SubspaceMixture("auto", n_init=2, random_state=0).fit(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "error"), [(1e4, 0.0), (1.0, 0.3)])
def test_auto_warns_of_features_that_nearly_repeat_each_other(unit, error):
    """One normal column, thirty times, is cut into slices."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 1)) + error * rng.normal(size=(150, 30)) / 3
    mixture = SubspaceMixture("auto", n_init=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="evidence of its own"):
        mixture.fit(unit * rows + unit)
    assert mixture.n_clusters_ > 1


@pytest.mark.parametrize("shape", [(8, 300), (20, 100), (100, 5)])
def test_independent_features_do_not_repeat_each_other(shape):
    """A false alarm needs twice the largest correlation by chance: below 1e-6."""
    for seed in range(5):
        residuals = np.random.default_rng(seed).normal(size=shape)
        assert most_correlated(residuals, 1)[0] is None
    twice = np.column_stack([residuals, residuals[:, 0] + 1e-3 * residuals[:, 1]])
    if shape[0] > 50:
        assert most_correlated(twice, 1)[0] == (0, shape[1])


def skewed_groups(draw, n_groups, seed):
    """Rows of 350 draws of skewed features; two features differ between the groups."""
    rng = np.random.default_rng([seed, n_groups])
    groups = rng.integers(n_groups, size=350)
    rows = draw(rng, (350, 4))
    rows[:, :2] += 10 * groups[:, None]
    return rows


SKEWED = {
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "mirrored": lambda rng, shape: -rng.exponential(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 0.8, size=shape),
    "squares": lambda rng, shape: rng.normal(size=shape) ** 2,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_groups"),
    [("exponential", 1), ("mirrored", 2), ("lognormal", 1), ("squares", 2)],
)
def test_pieces_of_skewed_groups_are_in_doubt(kind, n_groups):
    """Every fit that finds too many clusters says so, in any units."""
    alarms = 0
    for seed, (unit, shift) in enumerate([(1.0, 0.0), (2.0**9, 3000.0)]):
        rows = skewed_groups(SKEWED[kind], n_groups, seed)
        mixture = SubspaceMixture("auto", n_init=3, n_iter=10, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mixture.fit(unit * rows + shift)
        said = [str(each.message) for each in caught]
        doubted = any("groups that are not normal" in each for each in said)
        assert doubted or mixture.n_clusters_ <= n_groups
        alarms += doubted
    assert alarms


def test_clusters_set_apart_by_a_value_are_in_doubt():
    """Columns with many zeros; and logarithms, as the warnings advise, are silent."""
    rng = np.random.default_rng(0)
    rows = rng.gamma(5, size=(300, 4)) * (rng.random((300, 4)) < 0.6)
    with pytest.warns(ConvergenceWarning, match="some clusters have one value each"):
        SubspaceMixture("auto", n_init=3, random_state=0).fit(rows)
    rows = np.log(skewed_groups(lambda rng, shape: rng.lognormal(size=shape), 1, 0))
    mixture = SubspaceMixture("auto", n_init=3, random_state=0)
    assert mixture.fit(rows[:, 2:]).n_clusters_ == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:columns .* have correlation")
@pytest.mark.parametrize(("spread", "first"), [(6.0, 0), (2.2, 1), (1.5, 0)])
def test_normal_groups_are_no_pieces(spread, first):
    """Groups of unequal sizes and widths, apart or overlapping: a warning would fail.

    None of 103 similar fits of 120 to 1000 rows, with two or more clusters, warned.
    """
    several = 0
    for seed in range(first, 12, 2):
        rng = np.random.default_rng(seed)
        k, d = 2 + seed % 4, (2, 5, 8)[seed % 3]
        groups = rng.choice(k, size=250, p=rng.dirichlet(np.full(k, 2.0)))
        centers = spread * rng.normal(size=(k, d))
        widths = np.exp(0.5 * rng.normal(size=(k, d)))
        rows = centers[groups] + widths[groups] * rng.normal(size=(250, d))
        mixture = SubspaceMixture("auto", n_init=3, n_iter=10, random_state=0)
        several += mixture.fit(rows).n_clusters_ > 1
    assert several >= 3


@pytest.mark.parametrize("n_clusters", [2, "auto"])
@pytest.mark.parametrize(
    "rows",
    [
        np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 6, axis=0),
        np.random.default_rng(0).integers(2, size=(30, 3)),
        np.vstack([X, [[1e12] * 4]]),
    ],
    ids=["copies", "binary", "an outlier"],
)
@pytest.mark.filterwarnings("ignore:Outliers are clusters of one row each")
@pytest.mark.filterwarnings("ignore:.*better as counts or categories")
def test_k_means_of_the_start_does_not_warn(rows, n_clusters):
    """Its clusters are not those that the user asked for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Number of distinct clusters")
        SubspaceMixture(n_clusters, n_init=3, n_iter=5, random_state=0).fit(rows)


def test_a_merge_is_the_one_that_raises_the_density_most():
    """By the plain definition: every pair, one after another."""
    rows, groups = shifted()
    chain = Chain(rows, 9, False, 0.7, np.random.default_rng(0))
    chain.labels[:] = 2 * groups + np.random.default_rng(1).integers(2, size=len(rows))

    def log_density(labels):
        _, labels = np.unique(labels, return_inverse=True)
        k, n = labels.max() + 1, len(labels)
        other = Chain(rows, k, False, 0.7, chain.rng)
        other.labels[:] = labels
        other.find_gains()
        total = 0.7 * k
        prior = gammaln(total) - gammaln(total + n) + gammaln(k + 1)
        prior += (gammaln(np.bincount(labels) + 0.7) - gammaln(0.7)).sum()
        return other.find_gains().sum() + prior

    expected, best = chain.labels.copy(), -np.inf
    while log_density(expected) > best:
        best = log_density(expected)
        tries = [
            np.where(expected == b, a, expected)
            for a, b in itertools.combinations(np.unique(expected), 2)
        ]
        found = max(tries, key=log_density)
        if log_density(found) > best:
            expected = found
    chain.merge_clusters()
    assert chain.n_clusters == len(np.unique(expected)) < 6
    assert adjusted_rand_score(expected, chain.labels) == 1


# Parameters.


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 4},
        {"variance": "shared"},
        {"weight_concentration": 50.0},
        {"n_iter": 3},
        {"burn_in": 0},
        {"random_state": 1},
    ],
    ids=str,
)
def test_parameter_matters(parameters):
    default = SubspaceMixture(3, n_init=1, n_iter=20, burn_in=9, random_state=0).fit(X)
    other = clone(default).set_params(**parameters).fit(X)
    assert not np.array_equal(default.predict_proba(X), other.predict_proba(X))


def test_threads_do_not_matter():
    alone = SubspaceMixture(3, n_init=5, n_iter=9, random_state=0).fit(X)
    threads = clone(alone).set_params(n_jobs=2).fit(X)
    assert_array_equal(alone.log_joints_, threads.log_joints_)
    assert_array_equal(alone.labels_, threads.labels_)
    assert_array_equal(alone.relevant_features_, threads.relevant_features_)


def test_the_best_chain_goes_on():
    """Of seven chains four, then two, then one; or one from its clusters, if better."""
    mixture = SubspaceMixture(3, n_init=7, random_state=0)
    counts = []

    def counted(self, n_iter, keep):
        advance(self, n_iter, keep)
        counts.append((id(self), self.n_iter, self.log_joint))

    advance = Run.advance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "advance", counted)
        mixture.fit(X)
    race = counts[: 7 + 4 + 2 + 1]
    assert [n_iter for _, n_iter, _ in race] == 7 * [10] + 4 * [20] + 2 * [30] + [40]
    after_one = sorted(race[:7], key=lambda run: -run[2])
    assert {run for run, *_ in race[7:11]} == {run for run, *_ in after_one[:4]}
    best, *others, last = counts[13:16]
    assert [n_iter for _, n_iter, _ in others] == [10]
    better = max(best, *others, key=lambda run: run[2])
    assert last[0] == better[0]
    assert counts[-1][:2] == (better[0], better[1] + mixture.burn_in + mixture.n_iter)


def test_a_cluster_of_two_groups_is_split():
    """The race ends with two groups in one cluster, and one group in two."""
    rows, groups = shifted()
    wrong = np.where(groups == 2, 1, groups)
    wrong[(groups == 0) & (np.arange(len(groups)) % 2 == 0)] = 2
    chain = Chain(rows, 3, False, 1.0, np.random.default_rng(0))
    start_from_halves(chain, wrong, 10)
    assert chain.n_clusters == 3
    assert adjusted_rand_score(groups, chain.labels) > 0.9
    assert adjusted_rand_score(groups, wrong) < 0.6


# Odd input.


def test_a_constant_feature_says_nothing():
    expected = SubspaceMixture(3, n_init=2, n_iter=20, burn_in=9, random_state=0).fit(X)
    rows = np.insert(X, 1, 7.3, axis=1)
    mixture = clone(expected).fit(rows)
    assert_array_equal(mixture.labels_, expected.labels_)
    assert_array_equal(mixture.relevant_features_[:, 1], 0)
    assert_array_equal(mixture.predict(rows), expected.predict(X))
    assert_allclose(mixture.cluster_centers_[:, 1], 7.3)


@pytest.mark.parametrize(("scale", "shift"), [(2.0**300, 0), (2.0**-300, 0), (1, 64)])
def test_unit_and_origin_do_not_matter(scale, shift):
    rows = np.round(2**12 * X) / 2**12
    expected = SubspaceMixture(3, n_init=1, n_iter=10, burn_in=4, random_state=0).fit(
        rows
    )
    other = clone(expected).fit(scale * rows + shift)
    assert_array_equal(other.labels_, expected.labels_)
    assert_allclose(other.relevant_features_, expected.relevant_features_, rtol=1e-6)


ROWS = {
    "equal rows": np.full((9, 2), 0.1),
    "one feature": X[:, :1],
    "as many rows as clusters": X[:3],
    "rows of 1e300": X * 1e300,
    "rows of 1e-300": X * 1e-300,
    "an outlier": np.vstack([X, [[1e6] * 4]]),
    "integers": np.round(10 * X).astype(int),
    "784 features": np.random.default_rng(0).normal(size=(6, 784)),
}


@pytest.mark.parametrize(
    ("n_rows", "distance", "variance"),
    every_two([100, 240], [1e3, 1e6, 1e12, 1e200], ["shared", "cluster"]),
)
def test_a_far_row_hides_no_clusters_or_is_named(n_rows, distance, variance):
    """It has one of its own, and the units of the features are those of the others."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, n_rows)
    rows = rng.normal(size=(n_rows, 4))
    rows[:, :2] += 5 * np.array([[0, 0], [1, 0], [0, 1]])[groups]
    mixture = SubspaceMixture(4, variance=variance, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = mixture.fit(np.vstack([rows, np.full((1, 4), distance)])).labels_
    messages = [str(one.message) for one in caught]
    assert any(f"clusters of one row each, [{n_rows}]" in one for one in messages)
    named = any("may hide clusters" in one for one in messages)
    assert named == (variance == "shared")
    assert named or adjusted_rand_score(groups, labels[:-1]) > 0.9
    assert (labels == labels[-1]).sum() == 1


@pytest.mark.parametrize("variance", ["shared", "cluster"])
@pytest.mark.parametrize("distance", [15.0, 40.0, 100.0, 1000.0])
def test_small_groups_that_are_far_remain_apart(distance, variance):
    """They are no far rows, which may have one distance."""
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2, 3], [300, 280, 12, 8])
    rows = rng.normal(size=(600, 3))
    rows[:, 0] += 8.0 * (groups == 1)
    rows[:, 1] += distance * np.array([0, 0, 1, 2])[groups]
    mixture = SubspaceMixture(4, variance=variance, n_iter=50, random_state=0).fit(rows)
    assert adjusted_rand_score(groups, mixture.labels_) > 0.99
    assert len(np.unique(mixture.labels_[-20:])) == 2


@pytest.mark.filterwarnings("ignore:A few rows are very far")
@pytest.mark.filterwarnings("ignore:Outliers are clusters of one row each")
@pytest.mark.parametrize("variance", ["shared", "cluster"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_odd_rows(rows, variance):
    mixture = SubspaceMixture(
        3, variance=variance, n_init=2, burn_in=2, n_iter=3, random_state=0
    ).fit(rows)
    n_found = len(np.unique(mixture.labels_))
    assert_array_equal(np.unique(mixture.labels_), np.arange(n_found))
    assert mixture.relevant_features_.shape == (3, rows.shape[1])
    for fitted in (mixture.relevant_features_, mixture.cluster_centers_):
        assert np.isfinite(fitted).all()
    assert np.isfinite(mixture.log_joints_).all()
    far = np.vstack([rows[:1] * 0.0 + 1e300, rows[:1]])
    assert set(mixture.predict(far)) <= {0, 1, 2}


def test_too_few_rows():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        SubspaceMixture(4).fit(X[:3])


def test_one_cluster():
    mixture = SubspaceMixture(1, n_init=1, burn_in=2, n_iter=3, random_state=0).fit(X)
    assert_array_equal(mixture.labels_, 0)
    assert_array_equal(mixture.predict(X), 0)


@pytest.mark.parametrize("values", [[0.0, 1.0], [3.0, 10.0, 20.0]])
def test_a_column_of_few_values_that_cuts_groups_is_named(values):
    """Not the column alone: the groups without it are found without a warning."""
    rng = np.random.default_rng(1)
    groups = rng.integers(2, size=400)
    X = rng.normal(size=(400, 2)) + 6.0 * groups[:, None]
    flags = rng.choice(values, size=(400, 1))
    with pytest.warns(
        ConvergenceWarning,
        match=r"alike elsewhere have one value .* columns \[2\]",
    ):
        cut = SubspaceMixture("auto", n_init=4, random_state=0).fit(
            np.hstack([X, flags])
        )
    assert cut.n_clusters_ > 2
    assert SubspaceMixture("auto", n_init=4, random_state=0).fit(X).n_clusters_ == 2


@pytest.mark.parametrize("n_rows", [60, 300])
def test_a_flag_that_tells_groups_apart_is_not_named(n_rows):
    """Groups that share a flag, and groups that a flag defines, differ elsewhere."""
    rng = np.random.default_rng(2)
    groups = rng.integers(3, size=n_rows)
    X = rng.normal(size=(n_rows, 3)) + 6.0 * groups[:, None]
    for flag in (groups > 0, groups):
        found = SubspaceMixture("auto", n_init=2, random_state=0)
        found.fit(np.column_stack([X, flag]))  # warnings are errors
        assert found.n_clusters_ == 3


def test_values_that_cut_one_group_are_named():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(2, size=200)])
    with pytest.warns(ConvergenceWarning, match=r"each of columns \[3\]"):
        cut = SubspaceMixture("auto", n_init=2, random_state=0).fit(X)
    assert cut.n_clusters_ == 2
