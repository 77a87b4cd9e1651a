"""Missing values, and some columns given others, under full and tied covariances."""

import tracemalloc

import numpy as np
import pytest
from designs import every_two
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import digamma
from scipy.stats import multivariate_normal, multivariate_t, wishart
from sklearn.datasets import load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture
from skpacbayes.mixture._missing import IncompleteRows
from skpacbayes.mixture._scorers import FullScorer

KINDS = ["full", "tied"]


def with_holes(X, share, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def rows_and_holes(n_samples=300, share=0.2, **options):
    options = {"n_components": 3, "n_features": 3, "random_state": 0, **options}
    X, _ = make_mixture(n_samples=n_samples, **options)
    return X, with_holes(X, share)


@pytest.mark.parametrize(
    ("kind", "alpha", "far"), every_two(KINDS, [0.3, 1.0], [0.0, 1e7])
)
def test_the_bound_is_that_of_the_observed_values(kind, alpha, far):
    """J is the sum over the rows of the log of the integral of exp E log q.

    The integral over the missing values is done here by scipy's Gaussian density; far
    from the origin, each component has an origin of its own.
    """
    _, holes = rows_and_holes(120)
    holes[40:] += far
    mixture = TemperedVBGaussianMixture(
        3, covariance_type=kind, inverse_temperature=alpha, random_state=0, tol=1e-9
    ).fit(holes)
    slack = 1e-9 * np.abs(mixture.elbo_history_).max()
    assert (np.diff(mixture.elbo_history_) >= -slack).all()
    answer = mixture._answer()
    components, model = answer.state.components, answer.mixture
    total = 0.0
    for row in holes:
        there = ~np.isnan(row)
        terms = []
        for k in range(3):
            covariance = np.linalg.inv(components.precisions[k])
            log_mass = answer.state.log_weights[k] + components.constants[k]
            log_mass += 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
            if there.any():
                log_mass += multivariate_normal(
                    components.means[k][there], covariance[np.ix_(there, there)]
                ).logpdf(row[there])
            terms.append(log_mass)
        total += np.logaddexp.reduce(terms)
    expected = alpha * total - model.divergence(answer.state)
    assert_allclose(mixture.elbo_, expected, rtol=1e-6 if far else 1e-9)
    again = model.bound(answer.state, 0.0, mixture.statistics_)
    assert_allclose(again, mixture.elbo_, rtol=1e-6 if far else 1e-9)


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_rows_of_many_patterns_are_completed_as_one_by_one(far):
    """Patterns have one to sixty rows here, and a row has its own values and shares."""
    rng = np.random.default_rng(0)
    holes = np.where(rng.random((300, 5)) < [0.02, 0.1, 0.3, 0.3, 0.6], np.nan, 0.0)
    assert {1, 2, 3, 4} <= set(np.isnan(holes).sum(axis=1))
    rows = far + rng.normal(size=(300, 5)) + holes
    means, shares = far + rng.normal(size=(3, 5)), rng.dirichlet(np.ones(3), size=300)
    precisions = wishart(9, np.eye(5)).rvs(3, random_state=0)

    def results(at):
        incomplete = IncompleteRows(rows[at], means, precisions)
        densities = np.full((len(at), 3), np.nan)
        incomplete.write(np.zeros(3), densities)
        left = np.ones((1, len(at)))
        incomplete.leave_out(left)
        moments = incomplete.moments(shares[at], np.full(5, far))
        return densities, left[0], [incomplete.losses(shares[at]), *moments]

    at = np.flatnonzero(np.isnan(rows).any(axis=1))
    alone = [results([row]) for row in at]
    densities, left, sums = results(np.arange(300))
    assert_array_equal(left, ~np.isnan(rows).any(axis=1))
    assert np.isnan(densities[left == 1]).all()
    assert_allclose(densities[at], [own[0][0] for own in alone], rtol=1e-9)
    for found, own in zip(
        sums, zip(*[one[2] for one in alone], strict=True), strict=True
    ):
        assert_allclose(found, np.sum(own, axis=0), rtol=1e-9, atol=1e-9)


def test_memory_for_scores_does_not_grow_with_the_rows():
    """Each row has its own pattern here; all together would take more than 200 MB."""
    rng = np.random.default_rng(0)
    d, n_components = 60, 10
    means = rng.normal(size=(n_components, d))
    factors = np.tile(np.eye(d), (n_components, 1, 1))
    ones = np.ones(n_components)
    scorer = FullScorer(ones, means, factors, ones, 2.0 * d * ones)
    rows = rng.normal(size=(1000, d))
    rows[np.argsort(rng.random(rows.shape), axis=1) < d // 2] = np.nan
    scores = np.empty((len(rows), n_components))
    scorer.write(rows[:1], scores[:1])  # compiles
    tracemalloc.start()
    scorer.write(rows, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e7
    alone = np.empty((1, n_components))
    scorer.write(rows[-1:], alone)
    assert_array_equal(scores[-1:], alone)


@pytest.mark.slow
def test_density_near_the_complete_fit_and_better_than_imputation():
    """At 20 % missing within .05 nats a row of the fit without holes; two data sets."""
    for seed in range(2):
        X, _ = make_mixture(
            n_samples=3000, n_components=3, n_features=4, random_state=seed
        )
        train, test = X[:1000], X[1000:]
        holes = with_holes(train, 0.2)
        ours, complete = (
            TemperedVBGaussianMixture(3, random_state=0).fit(rows).score(test)
            for rows in (holes, train)
        )
        assert ours > complete - 0.05
        for imputer in (SimpleImputer(), IterativeImputer(tol=0.1, random_state=0)):
            theirs = make_pipeline(imputer, GaussianMixture(3, random_state=0))
            assert ours > theirs.fit(holes).score(test) + 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_predictive_density_of_observed_values_is_the_marginal(kind):
    _, holes = rows_and_holes()
    mixture = TemperedVBGaussianMixture(
        3, covariance_type=kind, random_state=0, n_init=1
    ).fit(holes)
    row = np.array([[0.3, np.nan, -0.2]])
    grid = np.linspace(-200, 200, 40_001)
    full = np.column_stack([np.full(len(grid), 0.3), grid, np.full(len(grid), -0.2)])
    integral = np.trapezoid(np.exp(mixture.score_samples(full)), grid)
    assert_allclose(np.exp(mixture.score_samples(row)[0]), integral, rtol=1e-4)
    assert (mixture.statistics_[:, -3] > 0).all()
    nothing = np.full((1, 3), np.nan)
    assert_allclose(mixture.score_samples(nothing), 0.0, atol=1e-9)
    every = mixture.score_samples(holes)
    assert_array_equal(mixture.score_samples(holes[7:8]), every[7:8])
    assert_allclose(mixture.predict_proba(holes).sum(axis=1), 1)
    assert_array_equal(
        mixture.predict(holes), mixture.predict_proba(holes).argmax(axis=1)
    )


@pytest.mark.slow
def test_streams_with_missing_values_are_cut_anywhere():
    _, holes = rows_and_holes(400)
    options = {"block_size": 100, "window": 150, "random_state": 0, "n_init": 1}
    whole = TemperedVBGaussianMixture(3, **options).partial_fit(holes)
    parts = TemperedVBGaussianMixture(3, **options)
    for start in range(0, 400, 37):
        parts.partial_fit(holes[start : start + 37])
    assert parts.elbo_ == whole.elbo_
    assert_array_equal(parts.means_, whole.means_)
    merged = TemperedVBGaussianMixture(3, random_state=0, n_init=1).fit(holes[:300])
    before = merged.elbo_
    merged.absorb(merged.sufficient_statistics(holes[300:]))
    assert merged.n_samples_seen_ == 400
    assert merged.elbo_ < before


def test_a_column_without_values_and_other_covariances_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="Column 1 of X has no value"):
        TemperedVBGaussianMixture().fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        TemperedVBGaussianMixture(covariance_type="diag").fit(X)
    X[:, 1] = 1e200
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"at most 1e\+150"):
        TemperedVBGaussianMixture().fit(X)


def test_a_row_without_any_value_leaves_the_components_as_they_are():
    X, _ = rows_and_holes()
    empty = np.vstack([X, np.full((1, 3), np.nan)])
    fits = [
        TemperedVBGaussianMixture(3, tol=1e-10, max_iter=2000, random_state=0).fit(rows)
        for rows in (X, empty)
    ]
    means = [fit.means_[fit.means_[:, 0].argsort()] for fit in fits]
    assert_allclose(*means, atol=1e-2)
    assert_allclose(fits[0].score(X), fits[1].score(X), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [None, np.eye(3)])
def test_rows_without_any_value_say_nothing(kind, given):
    """One component predicts as if they were not there, with either prior.

    Exactly so with a prior that is given; the default prior finds the strength of its
    pull to the mean from all rows, which changes its part of the 40 rows in a hundred.
    """
    X, _ = rows_and_holes(40)
    empty = np.vstack([X, np.full((60, 3), np.nan)])
    plain, other = (
        TemperedVBGaussianMixture(
            covariance_type=kind, covariance_prior=given, tol=1e-14, max_iter=3000
        ).fit(rows)
        for rows in (X, empty)
    )
    slack = 1e-4 if given is None else 1e-6
    assert_allclose(other.score_samples(X), plain.score_samples(X), atol=slack)
    assert_allclose(other.degrees_of_freedom_, plain.degrees_of_freedom_)
    assert_allclose(other.mean_precision_, plain.mean_precision_, rtol=slack)
    assert_allclose(other.statistics_[0, -3:-1], 60)


def collapsed_bound(degrees, precision, holes, fit, prior):
    """J with missing values integrated out given the parameters, up to constants.

    That of Wishart(degrees, precision / degrees) and of the fit's mean, for K = 1. The
    log density of the observed values is that of a Wishart marginal.
    """
    d, total = len(precision), 0.0
    covariance = np.linalg.inv(precision)
    for row in holes:
        there = ~np.isnan(row)
        size = there.sum()
        if size == 0:
            continue
        part = covariance[np.ix_(there, there)]
        left = degrees - d + size
        gap = row[there] - fit.means_[0][there]
        square = left / degrees * gap @ np.linalg.solve(part, gap)
        halves = (left + 1 - np.arange(1, size + 1)) / 2
        log_determinant = digamma(halves).sum() + size * np.log(2 / degrees)
        total += 0.5 * (log_determinant - np.linalg.slogdet(part)[1] - square)
    posterior = wishart(degrees, precision / degrees)
    log_determinant = digamma((degrees + 1 - np.arange(1, d + 1)) / 2).sum()
    log_determinant += d * np.log(2 / degrees) + np.linalg.slogdet(precision)[1]
    expected = (prior - d - 1) * log_determinant - np.trace(precision)
    return total + posterior.entropy() + 0.5 * expected


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_degrees_of_freedom_maximise_the_bound_without_missing_values(share):
    """Missing values are integrated out given the parameters; d = 5, n = 60, K = 1.

    The degrees found are derived up to a part d / degrees of the rows: they must be
    within a quarter of what is lost from the maximum, by numerical search.
    """
    d, prior = 5, 9.0
    rng = np.random.default_rng(1)
    holes = with_holes(rng.normal(size=(60, d)) @ rng.normal(size=(d, d)), share)
    fit = TemperedVBGaussianMixture(
        inverse_temperature=1.0,
        covariance_prior=np.eye(d),
        degrees_of_freedom_prior=prior,
        tol=1e-12,
    ).fit(holes)
    found, most = fit.degrees_of_freedom_[0], prior + len(holes)
    best = minimize_scalar(
        lambda nu: -collapsed_bound(nu, fit.precisions_[0], holes, fit, prior),
        bounds=(prior, most),
        method="bounded",
    ).x
    assert found < most - 0.5 * share * len(holes)
    assert abs(found - best) < 0.25 * (most - best)


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_predicts_like_a_student_distribution(kind):
    """The conditional density is the joint one over the marginal, by scipy."""
    X, _ = rows_and_holes(60)
    mixture = TemperedVBGaussianMixture(covariance_type=kind).fit(X)
    family, components = mixture._answer().mixture.family, mixture._answer().state[1]
    degrees, root = family.of(components, 0)
    scale = root @ root.T / degrees
    found = mixture.conditional([[0.5, np.nan, np.nan]])
    gap = (0.5 - mixture.means_[0, 0]) / scale[0, 0]
    location = mixture.means_[0, 1:] + scale[0, 1:] * gap
    rest = scale[1:, 1:] - np.outer(scale[1:, 0], scale[0, 1:]) / scale[0, 0]
    rest *= (degrees + gap**2 * scale[0, 0]) / (degrees + 1)
    assert_allclose(found.mean[0], [0.5, *location], rtol=1e-9)
    law = multivariate_t(location, rest, degrees + 1)
    variances = (degrees + 1) / (degrees - 1) * np.diag(rest)
    assert_allclose(found.std[0], [0, *np.sqrt(variances)], rtol=1e-9)
    points = np.array([[0.5, 1.0, -2.0], [0.5, 0.0, 0.3]])
    ratio = mixture.score_samples(points) - mixture.score_samples(
        [[0.5, np.nan, np.nan]]
    )
    assert_allclose(law.logpdf(points[:, 1:]), ratio, rtol=1e-9)


def test_three_components_predict_like_a_grid():
    """Mean, standard deviation and draws, against the joint density on a grid."""
    X, _ = rows_and_holes(separation=3.0)
    mixture = TemperedVBGaussianMixture(3, random_state=0).fit(X)
    given = np.array([[0.5, np.nan, 0.1], [-1.0, np.nan, 2.0]])
    found = mixture.conditional(given)
    grid = np.linspace(-60, 60, 60_001)
    draws = found.sample(20_000, random_state=0)
    for i, row in enumerate(given):
        joint = np.tile(row, (len(grid), 1))
        joint[:, 1] = grid
        density = np.exp(mixture.score_samples(joint))
        density /= density.sum()
        mean = density @ grid
        std = np.sqrt(density @ (grid - mean) ** 2)
        assert_allclose([found.mean[i, 1], found.std[i, 1]], [mean, std], rtol=1e-3)
        cumulated = np.interp(draws[:, i, 1], grid, density.cumsum())
        assert abs(np.sort(cumulated) - np.linspace(0, 1, 20_000)).max() < 0.0138
        assert_array_equal(draws[:, i, [0, 2]], np.tile(row[[0, 2]], (20_000, 1)))
    filled = np.nan_to_num(given)
    by_number = mixture.conditional(filled, columns=[1])
    assert_array_equal(by_number.mean, found.mean)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    named = TemperedVBGaussianMixture(3, random_state=0).fit(frame)
    by_name = named.conditional(pd.DataFrame(filled, columns=list("abc")), ["b"])
    assert_array_equal(by_name.mean, found.mean)
    for columns in ([False, True, False], slice(1, 2), [-2], 1):
        assert_array_equal(mixture.conditional(filled, columns).mean, found.mean)
    for wrong in (3, -4, "b", [True, False]):
        with pytest.raises(ValueError, match=r"columns has .*, but X has 3 columns"):
            mixture.conditional(filled, wrong)
    for other in ({"prior": "factorized"}, {"covariance_type": "known"}):
        assert not hasattr(TemperedVBGaussianMixture(**other), "conditional")


@pytest.mark.slow
def test_missing_values_merge_no_components():
    """Wine, three components: each has a fifth of the rows.

    The bound alone prefers one component and two small ones.
    """
    X = StandardScaler().fit_transform(load_wine().data)
    holes = with_holes(X[np.random.default_rng(0).permutation(len(X))[:118]], 0.2, 12)
    fit = TemperedVBGaussianMixture(3, n_init=2, random_state=0).fit(holes)
    assert fit.weights_.min() > 0.2
