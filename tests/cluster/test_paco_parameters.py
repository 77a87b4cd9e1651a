"""Each parameter of `PACOClusterer` matters as documented; chains; callbacks."""

import inspect
import io
import warnings

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import median_abs_deviation
from sklearn.exceptions import ConvergenceWarning
from states import assert_same_state

from skpacbayes import PACOClusterer, make_paco_model

# Few rows do not decide the number of clusters.
pytestmark = pytest.mark.filterwarnings("ignore:n_clusters_=")
X, _ = make_paco_model(3, 100, random_state=0)


def paco(**parameters):
    return PACOClusterer(**{"random_state": 0, "n_iter": 100} | parameters)


# One test a parameter. At `FLAT`, the chain samples the prior.

FLAT = {"inverse_temperature": 1e-9, "n_iter": 20000, "max_clusters": 4}


def max_clusters():
    assert paco().fit(X).n_clusters_ == 4
    with pytest.warns(ConvergenceWarning, match="all max_clusters=2"):
        assert paco(max_clusters=2).fit(X).n_clusters_ == 2


def shape():
    """Sheared groups are round in the coordinates of their common covariance."""
    sheared = X @ [[3.0, 2.5], [0.0, 0.5]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        round_ = paco(shape="round").fit(sheared)
    assert round_.n_clusters_ > 4
    for value in ("auto", "tied"):
        model = paco(shape=value).fit(sheared)
        assert model.n_clusters_ == 4
        assert model.shape_ == "tied"
    apart = sheared * [1000.0, 1.0]
    assert paco(shape="diagonal").fit(X * [1000.0, 1.0]).n_clusters_ == 4
    assert paco(shape="tied").fit(apart).n_clusters_ == 4
    for forbidden in ({"calibration": "regret"}, {"loss": "manhattan"}):
        with pytest.raises(ValueError, match="shape='tied' needs"):
            paco(shape="tied", **forbidden).fit(X)


def loss():
    """The median of a cluster withstands what moves its mean."""
    line = np.array([[0.0], [1.0], [2.0], [30.0]])
    means = paco(max_clusters=1).fit(line).cluster_centers_
    medians = paco(max_clusters=1, loss="manhattan").fit(line).cluster_centers_
    np.testing.assert_allclose(means, [[8.25]])
    assert 1 <= medians[0, 0] <= 2


def calibration():
    """Clusters: on sets of centres, q(k) over k!; regret: on tuples."""
    for setting, factor in (("clusters", [1, 2, 6, 24]), ("regret", [1, 1, 1, 1])):
        law = np.exp(-np.arange(1.0, 5.0)) / factor
        model = paco(**FLAT, calibration=setting).fit(X)
        apart = 0.5 * np.abs(model.n_clusters_posterior_ - law / law.sum()).sum()
        assert apart < 0.03  # 20,000 steps; autocorrelation of ten steps or so


def inverse_temperature():
    numbers = [
        paco(inverse_temperature=value).fit(X).n_clusters_ for value in (1e-4, 30.0)
    ]
    assert numbers[0] == 1
    assert numbers[1] > 8
    assert paco(inverse_temperature=0.2).fit(X).inverse_temperature_ == 0.2


def cluster_penalty():
    for penalty in (0.0, 3.0):
        model = paco(**FLAT, cluster_penalty=penalty).fit(X)
        law = np.exp(-penalty * np.arange(1.0, 5.0)) / [1, 2, 6, 24]
        apart = 0.5 * np.abs(model.n_clusters_posterior_ - law / law.sum()).sum()
        assert apart < 0.03
    fixed = {"inverse_temperature": 0.15}
    numbers = [
        paco(**fixed, cluster_penalty=value).fit(X).n_clusters_ for value in (0, 1000)
    ]
    assert numbers[0] >= 4
    assert numbers[1] == 1


def prior_scale():
    """A Student prior about the mean pulls the draws to it, and the more so if narrow.

    The draws of a chain at a temperature of next to nothing are draws from the prior.
    """
    flat = {"max_clusters": 1, "inverse_temperature": 1e-9, "prior": "student"}
    spread = {}
    for value in (0.01, 1.0, 100.0):
        draws = np.concatenate(
            [
                paco(**flat, prior_scale=value, random_state=seed).fit(X).draw_
                for seed in range(20)
            ]
        )
        spread[value] = np.linalg.norm(draws - X.mean(axis=0), axis=1).mean()
    assert spread[0.01] < 0.2 < spread[1.0] < spread[100.0]


def prior():
    """Against the uniform prior, the Student prior has its mass about the origin."""
    draws = {
        law: np.concatenate(
            [
                paco(
                    max_clusters=1,
                    inverse_temperature=1e-9,
                    prior=law,
                    random_state=seed,
                )
                .fit(X)
                .draw_
                for seed in range(20)
            ]
        )
        for law in ("uniform", "student")
    }
    norms = {
        law: np.linalg.norm(centers - X.mean(axis=0), axis=1)
        for law, centers in draws.items()
    }
    assert np.median(norms["student"]) < np.median(norms["uniform"]) / 3


def radius():
    """Centres live in the ball of twice the radius; automatic: 3 times the largest."""
    largest = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    assert paco().fit(X).radius_ == pytest.approx(3 * largest)
    regret = paco(calibration="regret").fit(X)
    assert regret.radius_ == pytest.approx(np.linalg.norm(X, axis=1).max())
    for value in (largest * 1.01, 50 * largest):
        model = paco(**FLAT, radius=value).fit(X)
        assert model.radius_ == value
        reach = np.linalg.norm(model.draw_ - X.mean(axis=0), axis=1).max()
        assert reach <= 2 * value


def variance_term():
    """The term makes states expensive that differ from forecasts which cost much."""
    plain = {"refresh": 1, "inverse_temperature": 0.2, "n_iter": 30}
    without = paco(**plain, variance_term=0.0).partial_fit(X[:40])
    with_term = paco(**plain, variance_term=1.0).partial_fit(X[:40])
    default = paco(**plain).partial_fit(X[:40])
    assert_same_state(without, default, apart_from=["variance_term", "_begun_with"])
    assert with_term.n_clusters_ < without.n_clusters_


def proposal():
    """The moves of Algorithm 3 as printed are accepted far less often."""
    matched, student = (
        paco(proposal=name, n_iter=2000, inverse_temperature=0.1).fit(X)
        for name in ("matched", "student")
    )
    assert 2 * student.acceptance_rate_ < matched.acceptance_rate_


def n_iter():
    for value in (1, 7, 250):
        model = paco(n_iter=value).fit(X)
        assert model.n_iter_ == value
        counts = model.n_clusters_posterior_ * value
        np.testing.assert_allclose(counts, counts.round(), atol=1e-9)


def n_chains():
    """The first of two chains is the chain of one; frequencies are pooled."""
    one, two = (paco(n_chains=count, n_iter=400).fit(X) for count in (1, 2))
    other = 400 * (2 * two.n_clusters_posterior_ - one.n_clusters_posterior_)
    np.testing.assert_allclose(other, other.round(), atol=1e-9)
    assert other.min() > -1e-9
    assert other.sum() == pytest.approx(400)
    assert not np.allclose(other / 400, one.n_clusters_posterior_)
    np.testing.assert_array_equal(two.draw_, one.draw_)
    assert two.n_iter_ == 400


def scale():
    """Half the noise, four times the inverse temperature; it is also that of scores."""
    models = [paco(scale=value).fit(X) for value in (1.0, 0.5)]
    assert [model.scale_ for model in models] == [1.0, 0.5]
    ratio = models[1].inverse_temperature_ / models[0].inverse_temperature_
    assert ratio > 2
    assert models[0].score(X) > paco(scale=5.0).fit(X).score(X)
    deviations = X - models[0].cluster_centers_[models[0].labels_]
    robust = median_abs_deviation(deviations.ravel(), scale="normal")
    assert paco().fit(X).scale_ == pytest.approx(robust, rel=0.2)


def summary_size():
    for size, points in ((None, 100), (7, 7), (99, 99)):
        model = paco(summary_size=size, refresh=100).partial_fit(X)
        elsewhere = paco(summary_size=size).sufficient_statistics(X)
        for statistics in (model._stream.summary.statistics(), elsewhere):
            assert np.sum(statistics[:, -2] > 0) == points


def refresh():
    """A chain after so many rows, and none between."""
    model, positions = paco(refresh=13, n_iter=5), []
    for row in X[:40]:
        before = vars(model).get("draw_")
        if model.partial_fit(row[None]).draw_ is not before:
            positions.append(model.n_samples_seen_)
    assert [t for t in positions if t > 1] == [13, 26, 39]
    model = paco(n_iter=2, max_clusters=2).partial_fit(np.tile(X, (3, 1))[:215])
    draw, position, steps = model.draw_, 215, []
    for row in np.tile(X, (4, 1)):
        if model.partial_fit(row[None]).draw_ is not draw:
            draw, step = model.draw_, model.n_samples_seen_ - position
            if position > 215:
                steps.append(step)
                grown = max(1, (position - 200) // 10)
                assert grown <= step <= max(grown, 20)
            position += step
    assert position > 550
    assert max(steps[:3]) > 1  # the clusters explain most rows
    model = paco(n_iter=2).partial_fit(X)
    draws = [model.partial_fit(rows).draw_ for rows in (X[:1], X[:1] + 1e3)]
    assert draws[0] is not draws[1]  # no cluster explains the last row
    wide, positions = paco(n_iter=2, max_clusters=2), []
    for row in np.tile(X[:20], (1, 25)):  # of 50 features: after every fifth row
        before = vars(wide).get("draw_")
        if wide.partial_fit(row[None]).draw_ is not before:
            positions.append(wide.n_samples_seen_)
    assert [t for t in positions if t > 1] == [5, 10, 15, 20]


def forgetting():
    """Groups that are gone are forgotten."""
    rows = np.vstack([X, X[:40] + np.array([60.0, 0.0])])
    numbers = [
        paco(forgetting=rate, refresh=20).partial_fit(rows).n_clusters_
        for rate in (0, 0.1)
    ]
    assert numbers[0] > numbers[1]


def random_state():
    draws = [paco(random_state=seed).fit(X).draw_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert draws[2].shape != draws[0].shape or np.any(draws[2] != draws[0])
    source = np.random.RandomState(3)
    draws = [paco(random_state=source).fit(X).draw_ for _ in range(2)]
    assert draws[0].shape != draws[1].shape or np.any(draws[0] != draws[1])


def n_jobs():
    """Threads change nothing."""
    parameters = {"n_chains": 3, "refresh": 30, "n_iter": 400}
    for method in ("fit", "partial_fit"):
        models = [
            getattr(paco(**parameters, n_jobs=count), method)(X)
            for count in (None, 1, 2)
        ]
        for model in models[1:]:
            assert_same_state(model, models[0], apart_from=["n_jobs", "_begun_with"])


MATTERS = [
    max_clusters,
    shape,
    loss,
    calibration,
    inverse_temperature,
    cluster_penalty,
    prior,
    prior_scale,
    radius,
    variance_term,
    proposal,
    n_iter,
    n_chains,
    scale,
    summary_size,
    refresh,
    forgetting,
    random_state,
    n_jobs,
]


@pytest.mark.parametrize("claim", MATTERS, ids=lambda claim: claim.__name__)
@pytest.mark.filterwarnings("ignore:The .* disagree")  # they are short
@pytest.mark.filterwarnings("ignore:all max_clusters=2 clusters are in use")
def test_parameter_matters(claim):
    claim()


def test_no_parameter_is_left_out():
    names = [claim.__name__ for claim in MATTERS]
    assert sorted(names) == sorted(inspect.signature(PACOClusterer).parameters)


# Several chains.


def test_chains_that_disagree_say_so():
    with pytest.warns(ConvergenceWarning, match="chains disagree: R-hat .* n_iter=2"):
        paco(n_chains=8, n_iter=2, inverse_temperature=0.01).fit(X)


def test_chains_that_agree_are_silent():
    paco(n_chains=4, n_iter=10_000).fit(X)  # warnings are errors


# Callbacks.


class Recorder:
    """Notes the tasks that begin and end; may stop after so many subtasks."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.begun.append("setup")

    def teardown(self, estimator, context):
        self.ended.append("teardown")

    def on_fit_task_begin(self, estimator, context, **kwargs):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.ended.append(context.task_name)
        return len(self.ended) == self.stop_after


@pytest.mark.usefixtures("callbacks")
def test_fit_shows_the_progress_of_the_chain():
    recorder = Recorder()
    model = paco().set_callbacks(recorder).fit(X)
    assert recorder.begun == ["setup", "fit", *["chain"] * 10]
    assert recorder.ended == [*["chain"] * 10, "fit", "teardown"]
    np.testing.assert_array_equal(model.draw_, paco().fit(X).draw_)


@pytest.mark.usefixtures("callbacks")
def test_partial_fit_shows_each_refresh():
    recorder = Recorder()
    model = paco(refresh=30).set_callbacks(recorder)
    for rows, refreshes in ((X[:95], 3), (X[:10], 0), (X[:15], 1)):
        recorder.begun, recorder.ended = [], []
        model.partial_fit(rows)
        assert recorder.begun[1:] == ["fit", *["refresh"] * refreshes] or not refreshes
        assert recorder.begun.count("refresh") == refreshes
        assert sorted(recorder.begun[1:]) == sorted(recorder.ended[:-1])
    rows = np.vstack([X[:95], X[:10], X[:15]])
    silent = paco(refresh=30).partial_fit(rows)
    np.testing.assert_array_equal(model.draw_, silent.draw_)


@pytest.mark.usefixtures("callbacks")
def test_a_callback_stops_the_chain():
    model = paco().set_callbacks(Recorder(stop_after=3)).fit(X)
    assert model.n_iter_ == 30
    assert model.n_clusters_posterior_.sum() == pytest.approx(1)
    assert model.predict(X).shape == (100,)


@pytest.mark.usefixtures("callbacks")
def test_a_callback_stops_the_stream_where_it_stands():
    model = paco(refresh=10).set_callbacks(Recorder(stop_after=2)).partial_fit(X)
    assert model.n_samples_seen_ == 20


def test_progress_bar(monkeypatch, callbacks):
    output = io.StringIO()
    monkeypatch.setattr("rich.progress.get_console", lambda: Console(file=output))
    for call in ("fit", "partial_fit"):
        model = paco(refresh=20).set_callbacks(callbacks.ProgressBar())
        getattr(model, call)(X)
        assert model.n_clusters_ >= 1
    assert "PACOClusterer - fit" in output.getvalue()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "manhattan"),
        ("summary_size", 50),
        ("inverse_temperature", 0.1),
        ("forgetting", 0.1),
    ],
)
def test_a_stream_keeps_its_parameters(name, value):
    """All but those of the chains: a change is refused, and taken back without harm."""
    model, whole = paco(refresh=25).partial_fit(X[:60]), paco(refresh=25).partial_fit(X)
    default = getattr(model, name)
    with pytest.raises(ValueError, match=f"{name} changed from"):
        model.set_params(**{name: value}).partial_fit(X[60:])
    assert_same_state(model.set_params(**{name: default}).partial_fit(X[60:]), whole)
    assert model.set_params(n_iter=50).partial_fit(X).n_iter_ == 50
    assert model.set_params(**{name: value}).fit(X).n_samples_seen_ == 100


@pytest.mark.parametrize("prior_scale", [1e-6, 1e-3, 0.1, 1.0, 1e3])
def test_the_prior_of_centers_does_not_change_the_number_of_the_mixture(prior_scale):
    """The inverse temperature outweighs a prior that is narrow for the data."""
    student = paco(prior="student", prior_scale=prior_scale)
    assert student.fit(X).n_clusters_ == 4
    frequencies = student.n_clusters_posterior_
    if prior_scale < 0.1:  # wider ones let centres without rows be
        assert frequencies[:4].argmax() == 3


@pytest.mark.slow
def test_the_prior_of_centers_does_not_change_the_number_of_a_stream():
    model = paco(prior="student", prior_scale=1e-3)
    for rows in np.array_split(X, 5):
        model.partial_fit(rows)
    assert model.n_clusters_ == 4
