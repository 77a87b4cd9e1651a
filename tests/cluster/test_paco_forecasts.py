"""`PACOClusterer` as a forecaster: its losses, its regret bound, merged summaries."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist
from scipy.stats import chisquare, kstest
from states import assert_same_state, changes, state_of

from skpacbayes import PACOClusterer, make_paco_model
from skpacbayes.cluster._paco_summary import checked_statistics

X, _ = make_paco_model(3, 60, random_state=1)
RADIUS = 2 * float(np.linalg.norm(X, axis=1).max())
REGRET = {
    "max_clusters": 6,
    "calibration": "regret",
    "radius": RADIUS,
    "refresh": 1,
    "n_iter": 20,
    "random_state": 0,
}
LOSSES = ["squared_euclidean", "manhattan"]


def paco(**parameters):
    return PACOClusterer(**{"n_iter": 50, "random_state": 0} | parameters)


def regret(**parameters):
    return PACOClusterer(**REGRET | parameters)


def loss_of(row, centers, loss):
    metric = "cityblock" if loss == "manhattan" else "sqeuclidean"
    return cdist(row[None], centers, metric).min()


# Forecasts.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("setting", [REGRET, {"refresh": 3, "n_iter": 20}])
def test_each_row_costs_its_loss_at_the_forecast_that_it_meets(setting, loss):
    model = PACOClusterer(**{"random_state": 0} | setting | {"loss": loss})
    model.partial_fit(X[:1])
    total = model.cumulative_loss_
    if setting is not REGRET:
        assert total == 0  # nothing is known before the first row
    for row in X[1:]:
        if len(model.draw_):
            total += loss_of(row, model.draw_, loss)
        model.partial_fit(row[None])
        assert model.cumulative_loss_ == pytest.approx(total, rel=1e-12)
    assert total > 0


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["uniform", "student"])
def test_first_forecast_is_a_draw_from_the_prior(prior):
    """400 draws; each test fails a correct sampler with probability 1e-5."""
    numbers, shares = [], []
    for seed in range(400):
        model = regret(refresh=2, prior=prior, random_state=seed, prior_scale=1e4)
        model.partial_fit(X[:1])
        draw = model.draw_
        expected = loss_of(X[0], draw, "squared_euclidean")
        assert model.cumulative_loss_ == pytest.approx(expected, rel=1e-12)
        numbers.append(len(draw))
        shares.append(np.linalg.norm(draw[0]) ** 2 / (2 * RADIUS) ** 2)
    law = np.exp(-np.arange(1.0, 7.0))
    law /= law.sum()
    counts = np.bincount(numbers, minlength=7)[1:]
    tail = 3  # numbers expected fewer than five times go together
    observed = np.append(counts[:tail], counts[tail:].sum())
    wanted = 400 * np.append(law[:tail], law[tail:].sum())
    assert chisquare(observed, wanted).pvalue > 1e-5
    assert kstest(shares, "uniform").pvalue > 1e-5  # a scale of 1e4: uniform as well


def test_student_prior_draws_near_the_origin():
    norms = []
    for seed in range(50):
        model = regret(refresh=2, prior="student", random_state=seed, prior_scale=0.01)
        norms.append(np.linalg.norm(model.partial_fit(X[:1]).draw_[0]))
    assert np.median(norms) < 0.1  # against RADIUS * sqrt(2) under the uniform prior


def test_a_callable_gives_the_inverse_temperature_of_each_refresh():
    times = []

    def schedule(t):
        times.append(t)
        return 0.3 / np.sqrt(t)

    for setting in ({}, {"calibration": "regret", "radius": RADIUS}):
        times.clear()
        model = paco(inverse_temperature=schedule, refresh=4, **setting)
        model.partial_fit(X[:22])
        assert sorted({*times} - {1.0}) == [4, 8, 12, 16, 20]
        assert model.inverse_temperature_ == pytest.approx(0.3 / np.sqrt(20))
    model = paco(inverse_temperature=schedule).fit(X)
    assert times[-1] == 60
    assert model.inverse_temperature_ == pytest.approx(0.3 / np.sqrt(60))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "hot", None])
def test_a_callable_that_returns_no_temperature_changes_nothing(value):
    def schedule(t):
        return 0.1 if t < 8 else value

    model = paco(inverse_temperature=schedule, refresh=2).partial_fit(X[:5])
    before = state_of(model)
    with pytest.raises(ValueError, match=r"finite numbers.* for t=8"):
        model.partial_fit(X[5:20])
    assert not changes(before, state_of(model))
    with pytest.raises(ValueError, match="t=60"):
        model.fit(X)
    assert not changes(before, state_of(model))


def test_inverse_temperature_of_corollary_3():
    model = regret().partial_fit(X)
    assert model.inverse_temperature_ == pytest.approx(4 / (2 * RADIUS**2 * 60**0.5))
    assert model.radius_ == RADIUS
    model = regret(loss="manhattan").partial_fit(X)
    assert model.inverse_temperature_ == pytest.approx(4 / (2 * RADIUS * 60**0.5))


# The certificate.


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", ["uniform", "student"])
def test_the_bound_holds_where_its_assumptions_do(seed, prior):
    """In expectation; on one stream it has a margin of many times the loss."""
    rows, _ = make_paco_model(3, 40, random_state=seed)
    model = regret(random_state=seed, prior=prior, radius=30.0).partial_fit(rows)
    certificate = model.certificate()
    assert set(certificate.assumptions.values()) == {True, None}
    assert certificate.observed == model.cumulative_loss_
    assert 0 < certificate.observed <= certificate.bound < np.inf
    assert certificate.bound == pytest.approx(sum(certificate.terms.values()))


BREACHES = {
    "the loss is the squared Euclidean distance": {"loss": "manhattan"},
    "the prior was fixed before the rows came": {"radius": "auto"},
    "the inverse temperature was fixed before the rows came": {"radius": "auto"},
    "the inverse temperature never increased": {"inverse_temperature": lambda t: t},
    "the variance term is that of Algorithm 2": {"variance_term": 0.5},
    "the chain ran after every row": {"refresh": 2},
    "every row is held": {"summary_size": 10},
}


@pytest.mark.parametrize("assumption", BREACHES)
def test_each_assumption_is_false_where_it_is_broken(assumption):
    kept = regret().partial_fit(X[:20]).certificate().assumptions
    broken = regret(**BREACHES[assumption]).partial_fit(X[:20]).certificate()
    assert kept[assumption] is True
    assert broken.assumptions[assumption] is False
    others = {
        name: value
        for name, value in broken.assumptions.items()
        if value is False and name != assumption
    }
    assert not others or BREACHES[assumption] == {"radius": "auto"}
    assert set(kept.values()) == {True, None}


def test_clusters_calibration_voids_the_certificate():
    assumptions = paco(radius=RADIUS).partial_fit(X[:20]).certificate().assumptions
    for name in (
        "the prior was fixed before the rows came",
        "the inverse temperature was fixed before the rows came",
        "the variance term is that of Algorithm 2",
    ):
        assert assumptions[name] is False


def test_rows_before_the_first_refresh_count_in_the_certificate():
    model = regret(refresh=10).partial_fit(X[:9])
    assert model.certificate().assumptions["the chain ran after every row"] is False


def test_a_row_beyond_the_radius_is_told_once():
    model = regret(refresh=2).partial_fit(X[:5])
    name = "radius covers the rows"
    assert model.certificate().assumptions[name] is True
    with pytest.warns(UserWarning, match=rf"norm 1000, more than radius={RADIUS:.6g}"):
        model.partial_fit([[600.0, 800.0]])
    assert model.certificate().assumptions[name] is False
    model.partial_fit([[600.0, 900.0]])  # no second warning: they are errors here
    model.partial_fit(X[5:])
    assert model.n_samples_seen_ == 62
    assert model.certificate().assumptions[name] is False


def test_no_certificate_without_forecasts():
    statistics = regret().sufficient_statistics(X)
    for model in (
        regret().fit(X),
        regret().fit(X).partial_fit(X),
        regret().absorb(statistics),
        regret().partial_fit(X).absorb(statistics),
    ):
        with pytest.raises(NotImplementedError, match="fit and absorb have no cert"):
            model.certificate()


# Summaries made elsewhere.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("summary_size", [None, 400])
def test_absorbed_partitions_are_the_union(loss, summary_size):
    """While every row is held: the same points in the same order, bit for bit."""
    rows, _ = make_paco_model(3, 200, random_state=0)
    model = paco(loss=loss, summary_size=summary_size)
    parts = [model.sufficient_statistics(part) for part in np.split(rows, [30, 130])]
    whole = model.sufficient_statistics(rows)
    np.testing.assert_array_equal(np.vstack(parts), whole)
    assert not hasattr(model, "n_features_in_")
    model.absorb(np.vstack(parts))
    alone = paco(loss=loss, summary_size=summary_size).absorb(whole)
    assert_same_state(model, alone)
    batch = paco(loss=loss).fit(rows)
    assert model.n_clusters_ == batch.n_clusters_ == 4
    gaps = cdist(model.cluster_centers_, batch.cluster_centers_).min(axis=1)
    assert gaps.max() < 0.3  # rows on the border; a centre's standard error is 0.14
    assert model.n_samples_seen_ == 200
    assert model.cumulative_loss_ == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_bounded_summaries_conserve_mass_and_moments(loss):
    rows, _ = make_paco_model(3, 600, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2, 600)
    model = paco(loss=loss, summary_size=50)
    parts = [model.sufficient_statistics(*part) for part in
             zip(np.split(rows, 3), np.split(weights, 3), strict=True)]  # fmt: skip
    assert [part.shape for part in parts] == [(52, 4)] * 3  # two directions each
    model.absorb(parts[0]).absorb(np.vstack(parts[1:]))
    assert model.n_clusters_ == 4
    assert model.n_samples_seen_ == pytest.approx(weights.sum())
    for table in (np.vstack(parts), model._stream.summary.statistics()):
        means, masses, squares = table[:, :2], table[:, 2], table[:, 3]
        assert masses.sum() == pytest.approx(weights.sum())
        np.testing.assert_allclose(masses @ means, weights @ rows, rtol=1e-10)
        second = (masses * (means**2).sum(axis=1) + squares).sum()
        assert second == pytest.approx((weights * (rows**2).sum(axis=1)).sum())
        directions = means[masses == 0]
        cross = (means * masses[:, None]).T @ means + directions.T @ directions
        np.testing.assert_allclose(cross, (rows * weights[:, None]).T @ rows)
    batch = paco(loss=loss).fit(rows, sample_weight=weights)
    gaps = cdist(model.cluster_centers_, batch.cluster_centers_).min(axis=1)
    assert gaps.max() < 0.3


def test_a_stream_goes_on_after_absorb():
    model = paco(refresh=5).absorb(paco().sufficient_statistics(X))
    model.partial_fit(X[:12])
    assert model.n_samples_seen_ == 72
    assert model.cumulative_loss_ > 0
    rest = paco(refresh=5).partial_fit(X[:12])
    lost = rest.cumulative_loss_
    rest.absorb(rest.sufficient_statistics(X))
    assert rest.n_samples_seen_ == 72
    assert rest.cumulative_loss_ == lost


@pytest.mark.parametrize(
    ("statistics", "words"),
    [
        (np.ones((3, 3)), r"statistics has 3 columns, but n_features \+ 2 = 4"),
        (np.ones((3, 5)), r"statistics has 5 columns, but n_features \+ 2 = 4"),
        ([[0.0, 1.0, 0.0, 0.0]], "must have a row of positive weight"),
        ([[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 2.0]], "in rows of weight 0"),
        ([[0.0, 1.0, 1.0, 2.0], [9.0, 0.0, 0.0, 0.0]], "weight 0 must sum to at most"),
        ([[0.0, 1.0, -1.0, 0.0]], "not have negative weights"),
        ([[0.0, 1.0, 1.0, -0.1]], "not have negative weights or sums"),
        ([[0.0, np.nan, 1.0, 0.0]], "contains NaN"),
        (np.ones(4), "Expected 2D array"),
    ],
)
def test_absorb_refuses_what_is_no_summary(statistics, words):
    model = paco(refresh=5).partial_fit(X[:7])
    before = state_of(model)
    with pytest.raises(ValueError, match=words):
        model.absorb(statistics)
    assert not changes(before, state_of(model))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shift", [0.0, 1e4, 1e12])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_summaries_of_rows_anywhere_are_summaries(loss, shift, unit):
    """The scatter of merged rows agrees with their squares, up to rounding."""
    rows = shift + unit * np.random.default_rng(0).normal(size=(60, 3))
    model = paco(loss=loss, summary_size=5)
    parts = [model.sufficient_statistics(part) for part in (rows[:40], rows[40:] * 2)]
    assert checked_statistics(np.vstack(parts), 3).shape[1] == 5


def test_an_unfitted_estimator_refuses_narrow_statistics():
    model = paco()
    before = state_of(model)
    with pytest.raises(ValueError, match=r"2 columns, but n_features \+ 2 = 3"):
        model.absorb(np.ones((3, 2)))
    assert not changes(before, state_of(model))


# A new group.


def groups(seed, n_new, *, sheared, n_rows):
    """Rows of four groups in random order, then `n_new` of a fifth one."""
    rng = np.random.default_rng(seed)
    centers = 12.0 * np.array([(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)])
    labels = np.append(rng.integers(4, size=n_rows), np.full(n_new, 4))
    rows = centers[labels] + rng.normal(size=(len(labels), 2))
    return rows @ [[1.0, 0.8], [0.0, 0.6]] if sheared else rows


@pytest.mark.filterwarnings("ignore:n_clusters_=")  # other numbers may be as good
@pytest.mark.parametrize(
    ("setting", "unit"),
    [({}, 1e6), ({"loss": "manhattan"}, 1e-3), ({"shape": "tied"}, 1e6)],
)
def test_a_new_group_is_found_at_the_end_of_a_stream(setting, unit):
    """Its rows are 1.5 or 3 % of the stream, which the chain meets after each 9 %."""
    n_new = 60 if "loss" in setting else 30  # as many as `fit` needs
    rows = unit * groups(0, n_new, sheared="shape" in setting, n_rows=2000)
    model = PACOClusterer(random_state=0, **setting).fit(rows[:1500])
    assert model.partial_fit(rows[1500:-n_new]).n_clusters_ == 4
    whole = copy.deepcopy(model).partial_fit(rows[-n_new:])
    assert whole.n_clusters_ == 5
    for row in rows[-n_new:]:
        model.partial_fit(row[None])
    for name in "cluster_centers_", "cluster_labels_", "cumulative_loss_":
        assert np.array_equal(getattr(model, name), getattr(whole, name))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_clusters_=")
def test_a_share_of_rows_that_no_cluster_explains_is_no_new_group(monkeypatch):
    """Of 10 chains to come, none runs before its turn."""
    rng = np.random.default_rng(3)
    rows = groups(3, 0, sheared=False, n_rows=1500)
    noise = rng.random(1500) < 0.05
    rows[noise] = rng.uniform(-20, 40, size=(noise.sum(), 2))
    positions = []
    refresh = PACOClusterer._refresh

    def recording(self):
        positions.append(self._stream.summary.n_rows)
        refresh(self)

    monkeypatch.setattr(PACOClusterer, "_refresh", recording)
    PACOClusterer(n_iter=20, random_state=0).partial_fit(rows)
    late = np.array([position for position in positions if position >= 500])
    assert len(late) > 10
    assert_array_equal(np.diff(late), np.floor(0.1 * (late[:-1] - 200)))


def test_few_chains_run_on_few_rows_in_random_order(monkeypatch):
    """Most rows are within a cluster, and chains wait until the rows have grown."""
    rows, _ = make_paco_model(3, 100, random_state=3)
    ran, refresh = [], PACOClusterer._refresh
    monkeypatch.setattr(
        PACOClusterer, "_refresh", lambda self: ran.append(self) or refresh(self)
    )
    assert PACOClusterer(n_iter=30, random_state=0).partial_fit(rows).n_clusters_ == 4
    assert 15 < len(ran) <= 35
