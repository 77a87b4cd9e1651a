"""`covariance_type="auto"`: what it chooses, on streams too, and what warns instead."""

import pickle
import re
import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture
from skpacbayes.mixture._selection import Choice
from skpacbayes.plotting import EllipsesDisplay

TYPES = ["full", "tied", "diag", "spherical"]
FACTORS = np.array([[[3.0, 2.5], [0.0, 0.8]], [[0.5, -0.4], [0.0, 2.0]]])


def rows(kind, n_samples=160, seed=0):
    """Two groups whose covariances are of one type, 12 standard deviations apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_samples) % 2
    factors = {
        "full": FACTORS,
        "tied": FACTORS[[0, 0]],
        "diag": np.array([np.diag([4.0, 0.5]), np.diag([0.5, 2.0])]),
        "spherical": np.array([np.eye(2), 3 * np.eye(2)]),
    }[kind]
    X = np.einsum("ij,ijk->ik", rng.normal(size=(n_samples, 2)), factors[labels])
    return X + 36.0 * labels[:, None]


def auto(n_components=2, **parameters):
    parameters = {"n_init": 2, "random_state": 0, **parameters}
    return TemperedVBGaussianMixture(n_components, covariance_type="auto", **parameters)


@pytest.mark.parametrize("number", [2, "auto"])
@pytest.mark.parametrize("kind", TYPES)
def test_auto_is_the_fit_of_the_type_with_the_largest_criterion(kind, number):
    """Bit for bit; the odds against the other types are 20 to 1 or more.

    Under a common prior scale, equal "full" covariances are nearly as good as "tied".
    """
    X = rows(kind)
    found = auto(number, max_components=3).fit(X)
    assert found.covariance_type_ == kind
    assert found.n_components_ == 2
    criteria = {}
    for each in TYPES:
        own = found.__sklearn_clone__().set_params(covariance_type=each)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            criteria[each] = max(own.fit(X).elbo_path_.values())
        assert own.covariance_type_ == each
        if each == kind:
            assert_array_equal(found.covariances_, own.covariances_)
            assert found.elbo_path_ == own.elbo_path_
    assert kind == max(criteria, key=criteria.get)
    rivals = {
        each for each in TYPES if each != kind and (kind, each) != ("tied", "full")
    }
    assert criteria[kind] - max(criteria[each] for each in rivals) > 3


def test_the_other_options_choose_too():
    """Missing values, weights, outliers, one column, tempering, a display, a pickle."""
    X = rows("tied")
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    assert auto().fit(holes).covariance_type_ == "tied"
    assert auto(inverse_temperature="auto").fit(X).covariance_type_ == "tied"
    assert auto().fit(X[:, :1]).covariance_type_ in ("full", "tied")
    assert auto(1).fit(X).covariance_type_ == "full"
    X = rows("diag")
    weight = 1.0 + np.arange(len(X)) % 3
    weighted = auto().fit(X, sample_weight=weight)
    repeated = auto().fit(np.repeat(X, weight.astype(int), axis=0))
    assert weighted.covariance_type_ == repeated.covariance_type_ == "diag"
    assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-6)
    far = np.vstack([X, np.random.default_rng(2).uniform(-200, 200, (12, 2))])
    found = auto(outliers=True).fit(far)
    assert found.covariance_type_ == "diag"
    assert (found.predict(far)[-12:] == -1).sum() >= 10
    loaded = pickle.loads(pickle.dumps(weighted))
    assert loaded.covariance_type_ == "diag"
    display = EllipsesDisplay.from_estimator(weighted)
    assert_allclose(display.covariances[:, [0, 1], [0, 1]], weighted.covariances_)


def test_statistics_of_the_chosen_type_are_absorbed():
    X = rows("diag")
    found = auto().fit(X)
    parts = [found.sufficient_statistics(part) for part in (X[:50], X[50:])]
    again = found.__sklearn_clone__().fit(X).absorb(sum(parts), memory=0.0)
    assert again.covariance_type_ == "diag"
    assert_allclose(again.means_, found.means_, rtol=1e-3)


def test_a_stream_keeps_the_type_of_its_first_block():
    """However it is cut; the later blocks are of another type."""
    X = np.vstack([rows("diag", 100), rows("full", 200)])
    streams = [auto(block_size=100, window=100) for _ in range(2)]
    streams[0].partial_fit(X)
    for start in range(0, 300, 60):
        streams[1] = pickle.loads(pickle.dumps(streams[1]))
        streams[1].partial_fit(X[start : start + 60])
    assert streams[0].covariance_type_ == streams[1].covariance_type_ == "diag"
    assert_array_equal(streams[0].covariances_, streams[1].covariances_)
    assert auto().partial_fit(X[:100]).covariance_type_ == "diag"


def test_a_stream_refuses_missing_values_once_the_type_takes_none():
    """In the call that fills the first block, and in later ones."""
    X, message = rows("diag", 250), "learned are 'diag', and take no"
    X[220, 0] = np.nan
    at_once = auto(block_size=100).partial_fit(X[:50])
    with pytest.raises(ValueError, match=message):
        at_once.partial_fit(X[50:])
    assert at_once.n_samples_seen_ == 50
    later = auto(block_size=100).partial_fit(X[:200])
    with pytest.raises(ValueError, match=message):
        later.partial_fit(X[200:])
    assert later.n_samples_seen_ == 200
    X[3, 1] = np.nan  # in the first block: full and tied are compared
    found = auto(block_size=100).partial_fit(X)
    assert found.covariance_type_ in ("full", "tied")
    assert found.n_samples_seen_ == 250


@pytest.mark.parametrize("learned", [*TYPES, "auto"])
def test_the_learned_type_decides_about_missing_values(learned):
    """Whatever the parameters are set to later: none answers NaN in silence."""
    X = rows("diag", 60)
    holes = X.copy()
    holes[3, 1] = np.nan
    asks = "predict", "score_samples", "sufficient_statistics"
    pairs = list(product([*TYPES, "auto"], [False, True]))
    for outliers in (False, True):
        own = {"covariance_type": learned, "outliers": outliers}
        mixture = TemperedVBGaussianMixture(2, random_state=0, **own).fit(X)
        pending = mixture.__sklearn_clone__().partial_fit(X)
        takes = mixture.covariance_type_ in ("full", "tied") and not outliers
        checks = [(mixture, kind, now, ask) for kind, now in pairs for ask in asks]
        for each, kind, now, ask in [(pending, *own.values(), asks[0]), *checks]:
            each.set_params(covariance_type=kind, outliers=now)
            if takes:
                assert np.isfinite(getattr(each, ask)(holes)).all()
                continue
            with pytest.raises(ValueError, match="X contains NaN"):
                getattr(each, ask)(holes)


def test_priors_of_one_type_are_refused():
    for own in ({"covariance_prior": 2.0}, {"degrees_of_freedom_prior": 9.0}):
        with pytest.raises(ValueError, match="must be None with covariance_type="):
            auto(**own).fit(rows("full"))
    with pytest.raises(ValueError, match="got 'auto'"):
        auto(prior="factorized").fit(rows("full"))


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_columns_given_others_without_covariances(kind):
    """Mean, deviation and draws, against the joint density on a grid.

    The distance of 20,000 draws from the grid's distribution exceeds 1.95 / sqrt(n)
    with probability .001.
    """
    X = rows(kind, 30)
    mixture = TemperedVBGaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    given = np.array([[16.0, np.nan], [np.nan, 20.0]])
    found = mixture.conditional(given)
    assert_allclose(found.weights.sum(axis=1), 1.0)
    draws = found.sample(20_000, random_state=0)
    grid = np.linspace(-300, 300, 60_001)
    for i, column in enumerate([1, 0]):
        joint = np.tile(given[i], (len(grid), 1))
        joint[:, column] = grid
        density = np.exp(mixture.score_samples(joint))
        density /= density.sum()
        mean = density @ grid
        std = np.sqrt(density @ (grid - mean) ** 2)
        assert_allclose(found.mean[i, column], mean, rtol=1e-3)
        assert_allclose(found.std[i, column], std, rtol=3e-3)
        cumulated = np.interp(draws[:, i, column], grid, density.cumsum())
        assert abs(np.sort(cumulated) - np.linspace(0, 1, 20_000)).max() < 0.0138
    whole = mixture.conditional(np.full((1, 2), np.nan))
    assert_allclose(whole.weights[0], mixture.weights_)
    if kind == "spherical":  # the two columns share a variance, and "diag" do not
        return
    both = whole.sample(20_000, random_state=1)[:, 0]
    one = both[(abs(both - mixture.means_[0]) < 12).all(axis=1)] - mixture.means_[0]
    assert abs(np.corrcoef(one.T**2)[0, 1]) < 0.05  # five standard errors are .05


@pytest.mark.parametrize("degrees", [None, 15.0])
def test_a_warning_names_a_type_that_is_better(degrees):
    """What it promises is a lower bound of what a fit of that type gains.

    What it recommends is not refused: the same call with that type gives the bound.
    """
    own = {"degrees_of_freedom_prior": degrees, "random_state": 0}
    rng = np.random.default_rng(0)
    spread = np.exp(rng.normal(size=(2, 10)))[np.arange(80) % 2]
    X = rng.normal(size=(80, 10)) * spread + 9.0 * (np.arange(80) % 2)[:, None]
    with pytest.warns(UserWarning, match="rows are few for covariance_type=") as w:
        full = TemperedVBGaussianMixture(2, **own).fit(X)
    assert ("'auto'" in str(w[0].message)) == (degrees is None)
    message = re.search(r"with '(\w+)' .* is ([\d.]+) nats", str(w[0].message))
    kind, gain = message.groups()
    better = TemperedVBGaussianMixture(2, covariance_type=kind, **own).fit(X)
    assert kind == "diag"
    assert better.elbo_ - full.elbo_ >= 0.99 * float(gain) > 16
    if degrees is not None:
        return
    X = rows("full", 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperedVBGaussianMixture(2, random_state=0).fit(X)
        TemperedVBGaussianMixture(2, random_state=0).fit(rows("diag", 400))
        holes = np.where(rng.random(X.shape) < 0.05, np.nan, X)
        TemperedVBGaussianMixture(2, random_state=0).fit(holes)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(("n_samples", "weight"), [(1, None), (1, 20.0), (5, None)])
def test_rows_without_spread_speak_of_no_type(covariance_type, n_samples, weight):
    X = np.repeat(np.random.default_rng(0).normal(size=(1, 5)), n_samples, axis=0)
    weights = None if weight is None else [weight]
    mixture = TemperedVBGaussianMixture(covariance_type=covariance_type)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture.fit(X, sample_weight=weights)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_samples", [20, 45])
def test_few_rows_do_not_make_directions_without_width(n_samples):
    """In 40 columns; rows of fewer lie in a subspace, of which new rows know nothing.

    New rows lose at most .35 nats a column, and gain where columns depend on
    each other. With the covariance of the rows alone they lost 4 to 8 nats a column.
    """
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(2, 40))
    for independent in (True, False):
        X = rng.normal(size=(200 + n_samples, 40))
        if not independent:
            X = 0.3 * X + X[:, :2] @ factors
        train, test = X[:n_samples], X[n_samples:]
        scores = {}
        for kind in ("full", "tied", "diag"):
            mixture = TemperedVBGaussianMixture(covariance_type=kind, n_init=1)
            scores[kind] = mixture.fit(train).score(test)
        student = TemperedVBMixture("student", n_init=1, max_iter=50).fit(train)
        least = scores["diag"] - 14 if independent else scores["diag"] + 5
        assert min(scores["full"], scores["tied"], student.score(test)) > least


def beside_noise(n_samples, n_noise, kind, seed):
    """Rows of three groups in two columns, beside columns that tell nothing."""
    rng = np.random.default_rng([31, seed])
    labels = rng.integers(0, 3, n_samples)
    noise = rng.normal(size=(n_samples, n_noise))
    if kind == "mixed":
        noise = noise @ rng.normal(size=(n_noise, n_noise)) / np.sqrt(n_noise)
    if kind == "one factor":
        noise = 0.5 * noise + rng.normal(size=(n_samples, 1))
    groups = 6.0 * np.eye(3)[labels, :2] + rng.normal(size=(n_samples, 2))
    X = np.hstack([groups, noise])
    if kind == "rotated":
        X = X @ rng.normal(size=(n_noise + 2, n_noise + 2))
    return X


def messages_of(mixture, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X)
    return [str(each.message) for each in caught if "The rows are few" in str(each)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_samples"),
    [("independent", 700), ("mixed", 1200), ("one factor", 1200), ("rotated", 700)],
)
def test_groups_hidden_by_columns_of_noise_are_told(kind, n_samples):
    """Full covariances find one or two groups; what the warning names finds three."""
    X = beside_noise(n_samples, 20, kind, 1)
    options = {"max_components": 6, "n_init": 1, "random_state": 0}
    mixture = TemperedVBGaussianMixture("auto", **options)
    (message,) = messages_of(mixture, X)
    assert mixture.n_components_ < 3
    better = TemperedVBGaussianMixture("auto", covariance_type="auto", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        better.fit(X)
    assert better.n_components_ == 3
    assert better.elbo_ > mixture.elbo_
    if "one covariance" in message:
        assert 'choose covariance_type="tied"' in message
        assert "each has 275 parameters" in message


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize(
    ("kind", "n_samples", "n_features", "gap"),
    [("full", 300, 30, 6.0), ("tied", 150, 30, 6.0), ("diag", 200, 300, 5.0)],
)
def test_two_round_groups_in_many_columns_are_told(
    kind, n_samples, n_features, gap, unequal
):
    """The bound prefers one component of the type; what the warning names finds two."""
    rng = np.random.default_rng([33, n_features, unequal])
    labels = np.arange(n_samples) % 2
    X = rng.normal(size=(n_samples, n_features))
    X += gap / np.sqrt(n_features) * labels[:, None]
    scales = np.exp(3 * rng.normal(size=n_features)) if unequal else 1.0
    options = {"max_components": 6, "n_init": 1, "random_state": 0}
    mixture = TemperedVBGaussianMixture("auto", covariance_type=kind, **options)
    (message,) = messages_of(mixture, X * scales)
    assert mixture.n_components_ == 1
    assert "but 2 components" in message
    named = re.search(r'covariance_type="(\w+)"( of standardised)?', message)
    better = TemperedVBGaussianMixture("auto", covariance_type=named[1], **options)
    Z = X / X.std(axis=0) if named[2] else X * scales
    found = better.fit(Z).predict(Z)
    assert better.n_components_ == 2
    assert max(np.mean(found == labels), np.mean(found != labels)) > 0.98


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_a_group_with_tails_or_correlated_columns_is_not_told_of_others(kind):
    """Components may differ in their widths, or divide the group: neither is told."""
    options = {"max_components": 6, "n_init": 1, "random_state": 0}
    mixture = TemperedVBGaussianMixture("auto", covariance_type=kind, **options)
    rng = np.random.default_rng([34, 0])
    tails = rng.normal(size=(150, 10)) / np.sqrt(rng.chisquare(8, (150, 1)) / 8)
    mixed = rng.normal(size=(100, 30)) @ rng.normal(size=(30, 30))
    for X in (tails, mixed):
        found = messages_of(mixture, X)
        assert not any("n_components='auto' chose" in each for each in found)


@pytest.mark.parametrize("alike", [True, False])
def test_groupings_of_other_types_are_improved_where_this_may_suffice(
    alike, monkeypatch
):
    """Groups that overlap and have one shape are told; thin ones are left early."""
    improved = []

    def recorded(self, fit, *arguments):
        improved.append(fit.mixture.family.covariance_type)
        return on_window(self, fit, *arguments)

    on_window = Choice.on_window
    monkeypatch.setattr(Choice, "on_window", recorded)
    rng = np.random.default_rng(2)
    if alike:
        spreads = np.exp(0.3 * rng.normal(size=(8, 10)))[:1]
        X = rng.normal(size=(8, 13, 10)) * spreads
        X += 2.2 * rng.normal(size=(8, 1, 10))
    else:
        X = rng.normal(size=(4, 20, 4)) * [1.0, 1.0, 1e-2, 1e-2]
        X = X @ rng.normal(size=(4, 4, 4)) + 9.0 * rng.normal(size=(4, 1, 4))
    mixture = TemperedVBGaussianMixture("auto", random_state=0)
    found = messages_of(mixture, X.reshape(-1, X.shape[2]))
    assert mixture.n_components_ > 2
    assert len(improved) == len(found) == alike


@pytest.mark.slow
def test_few_rows_of_full_covariances_alone_do_not_warn():
    """One group, and three with covariances of their own."""
    options = {"max_components": 6, "n_init": 1, "random_state": 0}
    for seed in range(2):
        rng = np.random.default_rng([32, seed])
        one = rng.normal(size=(150, 6)) @ rng.normal(size=(6, 6))
        three = [
            rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + 9 * np.eye(4)[k]
            for k in range(3)
        ]
        for X in (one, np.vstack(three)):
            assert messages_of(TemperedVBGaussianMixture("auto", **options), X) == []


@pytest.mark.parametrize("unit", [1.0, 30.0, 1e9])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore:n_components:sklearn.exceptions.ConvergenceWarning")
def test_spherical_components_tell_of_unequal_units(unit, seed):
    """Beside columns of large units the others are nothing, and groups are cut."""
    rng = np.random.default_rng(seed)
    X = np.array([[0, 0], [8, 0], [0, 8]])[rng.integers(0, 3, 240)]
    X = (X + rng.normal(size=(240, 2))) * [1.0, unit]
    mixture = TemperedVBGaussianMixture(
        "auto", covariance_type="spherical", max_components=6, random_state=0
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X)
    unequal = ["unequally" in str(each.message) for each in caught]
    assert any(unequal) == (unit > 1)
    assert unit > 1 or mixture.n_components_ == 3
