"""Displays show what the estimators say, on axes that are given or new."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

import skpacbayes
from skpacbayes import (
    ABCPosteriorKDE,
    ChoiceDisplay,
    ClusterCountDisplay,
    ClusteredParticleFilter,
    DirichletProcessHMM,
    EllipsesDisplay,
    EmissionsDisplay,
    FilterDisplay,
    OnlineVIClassifier,
    OnlineVIRegressor,
    PACOClusterer,
    PartialEffectsDisplay,
    ParticlesDisplay,
    ProgressiveLossDisplay,
    RegimesDisplay,
    SparseAdditiveGibbsRegressor,
    SSMCKMeansInit,
    StreamDisplay,
    TemperedVBGaussianMixture,
    TraceDisplay,
    make_paco_model,
)
from skpacbayes._chains import r_hat

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The .* disagree")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2)) + np.repeat([[0.0, 0.0], [8.0, 0.0]], 60, axis=0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.figure().subplots()


@pytest.mark.parametrize("name", skpacbayes.plotting.__all__)
def test_displays_follow_the_convention(name):
    display = getattr(skpacbayes.plotting, name)
    drawn_on = {"ax", "figure"}
    for method in (display.from_estimator, display.plot):
        parameters = inspect.signature(method).parameters
        (place,) = drawn_on & parameters.keys()
        assert parameters[place].default is None
        assert parameters[place].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.fixture(scope="module")
def clusterer():
    return PACOClusterer(random_state=0).fit(X)


def test_posterior_of_the_number_of_clusters(clusterer, ax):
    model = clusterer
    display = ClusterCountDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == pytest.approx(1.0)
    assert heights[1] == model.n_clusters_posterior_[1]
    dark = [bar.get_facecolor() for bar in ax.patches]
    assert dark[model.n_clusters_ - 1] not in dark[model.n_clusters_ :]


@pytest.mark.slow
def test_clusters_along_a_stream():
    rows, group = make_paco_model(6, random_state=0)
    model = PACOClusterer(random_state=0)
    display = StreamDisplay.from_estimator(
        model, rows[:90], every=40, truth=group[:90] + 1
    )
    np.testing.assert_array_equal(display.n_rows, [40, 80, 90])
    np.testing.assert_array_equal(display.truth, group[[39, 79, 89]] + 1)
    expected = PACOClusterer(random_state=0)
    for start, stop, found in zip(
        [0, 40, 80], [40, 80, 90], display.values, strict=True
    ):
        assert expected.partial_fit(rows[start:stop]).n_clusters_ == found
    assert not hasattr(model, "n_clusters_")  # a clone has learnt
    np.testing.assert_array_equal(display.ax_.lines[1].get_ydata(), display.values)
    alone = StreamDisplay(display.n_rows, display.values).plot(label="PACO")
    assert alone.ax_.get_legend().get_texts()[0].get_text() == "PACO"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"truth": np.arange(7)}, ValueError, "inconsistent numbers of samples"),
        ({"truth": 3}, TypeError, "array-like"),
        ({"attribute": "cluster_centers_"}, ValueError, "cluster_centers_ must be a"),
        ({"attribute": "nonsense_"}, TypeError, "has no nonsense_"),
        ({"every": 0}, ValueError, "every == 0"),
    ],
)
def test_a_display_of_a_stream_names_a_wrong_argument(arguments, error, message):
    rows = make_paco_model(6, random_state=0)[0][:30]
    with pytest.raises(error, match=message):
        StreamDisplay.from_estimator(PACOClusterer(), rows, **{"every": 15} | arguments)


@pytest.mark.filterwarnings("ignore:The behavior of obj")  # pandas 2
@pytest.mark.parametrize("index", [0.5 * np.arange(60), np.arange(60)[::-1], None])
def test_displays_of_streams_read_frames_row_by_row(index):
    """Whatever their index is, here seconds, numbers that fall, and days."""
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.sin(X[:, 0])
    index = pandas.date_range("2020", periods=60) if index is None else index
    table, targets = pandas.DataFrame(X, index=index), pandas.Series(y, index=index)
    model = OnlineVIRegressor(n_fourier=0)
    of_frame = ProgressiveLossDisplay.from_estimator(model, table, targets)
    of_array = ProgressiveLossDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(of_frame.losses, of_array.losses)


@pytest.mark.parametrize("smooth", [True, False])
def test_band_of_a_filter(smooth, ax):
    series = np.cumsum(RNG.normal(size=(50, 1)), axis=0)
    model = ClusteredParticleFilter(n_particles=100, random_state=0)
    times = np.datetime64("2020-01-01") + np.arange(50)
    display = FilterDisplay.from_estimator(
        model, series, smooth=smooth, times=times, rows=True, n_stds=3, ax=ax
    )
    follow = model.fit_smooth if smooth else model.fit_filter
    means, stds = follow(series)
    np.testing.assert_array_equal(display.means, means[:, 0])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx((means + 3 * stds).max())


@pytest.fixture(scope="module")
def regimes():
    series = np.random.default_rng(1).normal(size=(120, 1)) + X[:, :1]
    model = DirichletProcessHMM(2, n_iter=20, burn_in=20, random_state=0)
    return series, model.fit(series)


@pytest.mark.parametrize("dated", [True, False])
def test_regimes(dated, regimes, monkeypatch):
    series, model = regimes
    times = np.datetime64("2020-01-01") + np.arange(120) if dated else None
    display = RegimesDisplay.from_estimator(model, series, times=times)
    shades = display.ax_.collections[0].get_array()[0]
    assert np.abs(shades[10] - shades[110]).max() > 0.2
    np.testing.assert_allclose(shades[10], shades[11], atol=0.05)
    low, high = display.ax_.get_xlim()
    assert high - low == pytest.approx(119)
    higher = RegimesDisplay(series[:, 0] + 1000, display.probabilities).plot()
    assert higher.ax_.get_ylim()[0] > 900
    monkeypatch.setattr(type(model), "predict_proba", None)  # is not called
    with pytest.raises(ValueError, match="feature=3 should be from 0 to"):
        RegimesDisplay.from_estimator(model, series, feature=3)


def test_regimes_of_a_model_with_inputs():
    inputs = X[:, 1:]
    model = DirichletProcessHMM(2, n_iter=5, burn_in=5, n_chains=1, random_state=0)
    model.fit(X[:, :1], inputs=inputs)
    display = RegimesDisplay.from_estimator(model, X[:, :1], inputs=inputs)
    np.testing.assert_array_equal(
        display.probabilities, model.predict_proba(X[:, :1], inputs=inputs)
    )


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_ellipses_have_the_covariances(kind):
    model = TemperedVBGaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    display = EllipsesDisplay.from_estimator(model, X, n_stds=1.5)
    theirs = GaussianMixture(2, covariance_type=kind, means_init=model.means_).fit(X)
    expected = EllipsesDisplay.from_estimator(theirs)
    np.testing.assert_allclose(
        display.covariances, expected.covariances, rtol=0.3, atol=0.1
    )
    for ellipse, covariance in zip(
        display.ax_.patches, display.covariances, strict=True
    ):
        halves = np.array([ellipse.width, ellipse.height]) / 2 / 1.5
        np.testing.assert_allclose(
            np.sort(halves**2), np.linalg.eigvalsh(covariance), rtol=1e-9
        )
        angle = np.radians(ellipse.angle)
        first = np.array([np.cos(angle), np.sin(angle)]) * halves[0]
        second = np.array([-np.sin(angle), np.cos(angle)]) * halves[1]
        found = np.outer(first, first) + np.outer(second, second)
        np.testing.assert_allclose(found, covariance, atol=1e-9)
    del theirs.covariance_type
    if kind == "full":  # what the covariances say without it
        found = EllipsesDisplay.from_estimator(theirs).covariances
        np.testing.assert_array_equal(found, expected.covariances)
    else:
        with pytest.raises(TypeError, match="GaussianMixture has no covariance_type"):
            EllipsesDisplay.from_estimator(theirs)


def test_ellipses_of_clusters(clusterer):
    model = clusterer
    display = EllipsesDisplay.from_estimator(model, X)
    assert len(display.ax_.patches) == model.n_clusters_ == 2
    within = X[:60] - X[:60].mean(axis=0)
    own = display.covariances[model.predict(X[:1])[0]]
    np.testing.assert_allclose(own, np.cov(within.T), atol=0.6)


@pytest.mark.slow
def test_curves_of_a_choice():
    mixture = TemperedVBGaussianMixture("auto", max_components=4, random_state=0).fit(X)
    display = ChoiceDisplay.from_estimator(mixture)
    places, scores = display.curves["bound"]
    assert places[scores.argmax()] == display.chosen == mixture.n_components_
    posterior = ABCPosteriorKDE(random_state=0, n_validation=20)
    posterior.fit(X, X[:, 0] + RNG.normal(size=120))
    display = ChoiceDisplay.from_estimator(posterior)
    best = max(scores.max() for _, scores in display.curves.values())
    assert best == posterior.cv_table_["mean_score"].max()
    hmm = DirichletProcessHMM("auto", n_iter=10, burn_in=10, random_state=0)
    display = ChoiceDisplay.from_estimator(hmm.fit(X[:, :1]))
    assert len(display.curves["score"][0]) == len(hmm.n_states_scores_)


def test_traces_begin_with_the_worst():
    model = DirichletProcessHMM(2, n_iter=30, burn_in=0, n_chains=3, random_state=0)
    model.fit(X[:, :1])
    display = TraceDisplay.from_estimator(model, n_variables=3)
    values = list(display.r_hat_.values())
    assert values == sorted(values, reverse=True)
    every = TraceDisplay.from_estimator(model, n_variables=99)
    assert max(every.r_hat_.values()) == values[0]
    expected = r_hat(model.log_likelihoods_[:, -30:])
    assert every.r_hat_["log_likelihood"] == pytest.approx(float(expected))
    assert len(display.axes_[0].lines) in (1, 3)


def test_losses_and_the_certificate():
    y = X @ [1.0, -2.0]
    model = OnlineVIRegressor(prior_scale="auto", random_state=0)
    display = ProgressiveLossDisplay.from_estimator(model, X, y)
    expected = clone(model).partial_fit(X, y)
    assert display.losses[-1] == pytest.approx(expected.cumulative_loss_ / 120)
    assert display.n_rows[-1] == 120
    (bound,) = (
        line.get_ydata()[0]
        for line in display.ax_.lines
        if line.get_linestyle() == "--"
    )
    assert bound == pytest.approx(expected.certificate().bound / 120)


def test_losses_of_labels_without_a_certificate():
    model = OnlineVIClassifier("oga", loss="hinge", prior_scale=1.0, forgetting=0.0)
    labels = np.repeat(["a", "b"], 60)
    order = RNG.permutation(120)
    display = ProgressiveLossDisplay.from_estimator(model, X[order], labels[order])
    assert display.certificate is None
    assert len(display.ax_.lines) == 1


def test_function_of_a_filtered_state(ax):
    series = np.cumsum(RNG.normal(size=(50, 1)), axis=0) / 5
    model = ClusteredParticleFilter(n_particles=100, random_state=0)
    display = FilterDisplay.from_estimator(model, series, function=np.exp, ax=ax)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    high = np.exp(display.means + 2 * display.stds)
    assert band.max() == pytest.approx(high.max())
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.exp(display.means))


def test_particles_have_areas_by_their_weights(ax, monkeypatch):
    model = ClusteredParticleFilter(n_particles=80, random_state=0).fit(X[:20])
    display = ParticlesDisplay.from_estimator(model, states=(1, 0), ax=ax)
    (cloud,) = ax.collections
    np.testing.assert_array_equal(cloud.get_offsets(), model.particles_[:, ::-1])
    np.testing.assert_allclose(cloud.get_sizes(), 10 * 80 * display.weights)
    weights = np.array([0.9, 0.08, 0.02])  # the heaviest does not hide all others
    heavy = ParticlesDisplay(np.eye(3)[:, :2], weights).plot().ax_.collections[0]
    np.testing.assert_allclose(heavy.get_sizes() / weights, 30, rtol=1e-12)
    assert ax.get_xlabel() == "state 1"
    with pytest.raises(ValueError, match=r"states=\(0, 5\) needs .* 6 coord"):
        ParticlesDisplay.from_estimator(model, states=(0, 5))
    monkeypatch.setattr(ClusteredParticleFilter, "fit_smooth", None)  # is not called
    with pytest.raises(ValueError, match="state=6 should be from 0 to 1"):
        FilterDisplay.from_estimator(model, X[:20], state=6)
    for states in (0, 0), (-1, 0), (0,), ("level", 0), (0.5, 1):
        with pytest.raises(ValueError, match="should be two different numbers"):
            ParticlesDisplay.from_estimator(model, states=states)


LACKING = {  # what each display misses of an online regressor
    "ChoiceDisplay": "n_states_scores_",
    "ClusterCountDisplay": "n_clusters_posterior_",
    "EllipsesDisplay": "means_",
    "EmissionsDisplay": "emission_density",
    "FilterDisplay": "fit_smooth",
    "PartialEffectsDisplay": "partial_effects",
    "ParticlesDisplay": "particles_",
    "ProgressiveLossDisplay": "cumulative_loss_",
    "RegimesDisplay": "predict_proba",
    "StreamDisplay": "n_clusters_",
}


@pytest.mark.parametrize("name", skpacbayes.plotting.__all__)
def test_an_estimator_of_another_kind_is_refused_by_what_it_lacks(name):
    draw = getattr(skpacbayes.plotting, name).from_estimator
    stranger = OnlineVIRegressor(random_state=0).fit(X, X[:, 0])
    if name == "ProgressiveLossDisplay":
        stranger = SSMCKMeansInit(2, random_state=0).fit(X)
    rows = [X] if "X" in inspect.signature(draw).parameters else []
    targets = {"y": X[:, 0]} if "y" in inspect.signature(draw).parameters else {}
    said = f"{type(stranger).__name__} has .*{LACKING.get(name)}"
    if name == "TraceDisplay":  # what it reads is private
        said = f"that samples by Markov chains, such as .*got {type(stranger).__name__}"
    with pytest.raises((TypeError, ValueError), match=said):
        draw(stranger, *rows, **targets)


@pytest.mark.parametrize("feature", range(3))
@pytest.mark.parametrize("emission", [["normal", "poisson", "categorical"], None])
def test_emission_densities_of_each_kind(emission, feature, ax):
    """Over the values that a feature can have, they sum to nearly one."""
    places = np.repeat([2.0, 30.0], 60)
    names = np.where(RNG.random(120) < places / 40, 7.0, 3.0)
    rows = np.column_stack([RNG.normal(places), RNG.poisson(20 * places), names])
    if emission is None:  # of all columns
        emission = ["translated", "poisson", "categorical"][feature]
        rows, feature = rows[:, [feature]], 0
    model = DirichletProcessHMM(
        2, emission=emission, n_iter=20, burn_in=20, random_state=0
    ).fit(rows)
    display = EmissionsDisplay.from_estimator(
        model, rows, feature=feature, rows=True, ax=ax
    )
    grid = display.grid
    assert len(grid) <= 200
    total = display.densities.sum(axis=0)
    if len(grid) > 2:
        total = np.trapezoid(display.densities, grid, axis=0)
    np.testing.assert_allclose(total, 1.0, atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [False, True])
def test_emission_densities(counts, ax):
    places = np.repeat([2.0, 12.0], 60)
    rows = np.column_stack([RNG.poisson(places), RNG.poisson(places)]).astype(float)
    if not counts:
        rows += RNG.normal(size=rows.shape) / 4
    rows[3, 1] = np.nan
    model = DirichletProcessHMM(2, n_iter=20, burn_in=20, random_state=0).fit(rows)
    first, second = np.argsort(model.locations_[:, 1])
    display = EmissionsDisplay.from_estimator(
        model, rows, feature=1, states=[second, first], rows=True, ax=ax
    )
    peaks = display.grid[display.densities.argmax(axis=0)]
    np.testing.assert_allclose(peaks, [12, 2], atol=4)
    low, high = display.bands
    assert ((low <= high) & (low < display.densities.max())).all()
    inside = (low <= display.densities) & (display.densities <= high)
    assert inside.mean() > 0.9  # a mean may lie outside of an interval of quantiles
    assert (np.diff(display.grid) == 1).all() == counts
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[-2:] == [f"state {second}", f"state {first}"]
    total = np.trapezoid(display.densities, display.grid, axis=0)
    empty = np.full_like(rows, np.nan)
    for table, wrong in (
        (rows, {"feature": 3}),
        (rows, {"names": ["slow"]}),
        (empty, {"feature": 1}),
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            EmissionsDisplay.from_estimator(model, table, **wrong)
    assert (total > 0.8).all()
    assert (total < 1.1).all()


def test_features_of_a_display_have_columns_and_names():
    frame = pd.DataFrame(X, columns=["length", "weight"])
    mixture = TemperedVBGaussianMixture(2, random_state=0).fit(frame)
    named = EllipsesDisplay.from_estimator(mixture, features=("weight", "length"))
    assert named.ax_.get_xlabel() == "weight"
    assert_allclose(named.means, mixture.means_[:, ::-1])
    model = DirichletProcessHMM(2, n_iter=20, burn_in=10, random_state=0)
    model.fit(frame.iloc[::4])
    for display in (EmissionsDisplay, RegimesDisplay):
        by_name = display.from_estimator(model, frame, feature="weight")
        assert by_name.name == "weight"
        with pytest.raises(ValueError, match=r"feature='width' is not one of"):
            display.from_estimator(model, frame, feature="width")
    with pytest.raises(ValueError, match=r"'weight' is not known: features had no na"):
        EllipsesDisplay.from_estimator(
            TemperedVBGaussianMixture(2, random_state=0).fit(X), features=("weight", 0)
        )


def test_numbers_of_clusters_have_whole_ticks_and_one_value_is_seen(ax):
    once = StreamDisplay.from_estimator(PACOClusterer(random_state=0), X, every=500)
    (line,) = once.ax_.lines
    assert line.get_marker() not in ("", "None", None)
    more = StreamDisplay(np.arange(3), np.array([1, 2, 1])).plot(ax=ax)
    for display in (once, more):
        display.figure_.canvas.draw()
        ticks = display.ax_.get_yticks()
        assert np.array_equal(ticks, np.round(ticks))
    scaled = plt.figure().subplots()
    scaled.set_yscale("log")  # the ticks are not ours
    StreamDisplay(np.arange(3), np.array([1, 2, 1])).plot(ax=scaled)


def test_effects_of_categories_are_points_with_bars():
    """A line would say something of values between two categories."""
    rng = np.random.default_rng(0)
    table = np.column_stack([10.0 * rng.integers(0, 4, 150), rng.uniform(size=150)])
    model = SparseAdditiveGibbsRegressor(
        categorical_features=[0], n_iter=100, burn_in=50, random_state=0
    ).fit(table, table[:, 0] % 3 + np.sin(5 * table[:, 1]) + 0.1 * rng.normal(size=150))
    display = PartialEffectsDisplay.from_estimator(model, table, features=[0, 1])
    assert display.categorical == [True, False]
    points, line = (axes.lines[0] for axes in display.axes_)
    assert (points.get_linestyle(), line.get_linestyle()) == ("None", "-")
    assert_allclose(points.get_xdata(), [0.0, 10.0, 20.0, 30.0])
    (bars,) = display.axes_[0].containers
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    assert_allclose(np.diff(ends, axis=1)[:, 0], 4 * display.stds[0])
    assert_allclose(ends.mean(axis=1), display.effects[0])


def test_probabilities_of_categories_are_points_with_bars(ax):
    """A line would say something of values between two categories."""
    pairs = np.random.default_rng(0).integers(0, 2, size=(80, 1))
    rows = 3 * (2 * (np.arange(80)[:, None] // 20 % 2) + pairs)
    model = DirichletProcessHMM(
        2, emission="categorical", n_iter=20, burn_in=10, random_state=0
    ).fit(rows)
    display = EmissionsDisplay.from_estimator(model, rows, rows=True, ax=ax)
    assert [line.get_linestyle() for line in ax.lines] == ["None", "None"]
    for j, (line, bars) in enumerate(zip(ax.lines, ax.collections, strict=True)):
        assert_allclose(line.get_xdata(), [0, 3, 6, 9], atol=0.5)
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        assert_allclose(ends.T, display.bands[:, :, j])


def test_one_row_and_dates_of_regimes(regimes, ax):
    series, model = regimes
    one = RegimesDisplay.from_estimator(model, series[:1], ax=ax)
    assert np.diff(ax.collections[0].get_coordinates()[0, :, 0]) == 1.0
    assert one.probabilities.shape == (1, 2)
    narrow = plt.figure(figsize=(3, 2), layout="constrained").subplots()
    times = np.datetime64("2020-01-01") + np.arange(120)
    RegimesDisplay.from_estimator(model, series, times=times, ax=narrow)
    narrow.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in narrow.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def style_keywords(display):
    """Return the keywords of `plot` that are styles."""
    keywords = inspect.signature(display.plot).parameters
    return [name for name in keywords if name.endswith("_kwargs")]


def is_red(artist):
    """Return whether a line, a face or an edge is red, whatever its transparency."""
    parts = ("get_color", "get_facecolor", "get_edgecolor")
    found = [getattr(artist, part)() for part in parts if hasattr(artist, part)]
    rgb = [np.ravel(matplotlib.colors.to_rgba_array(color)[:, :3]) for color in found]
    return any(np.array_equal(color, [1, 0, 0]) for color in rgb)


PAIR, STEPS = np.eye(3)[:, :2], np.arange(3)
DISPLAYS = {
    "ChoiceDisplay": lambda: ChoiceDisplay(
        {"a": (STEPS, STEPS), "b": (STEPS, -STEPS)}, 1, xlabel="size", ylabel="score"
    ),
    "ClusterCountDisplay": lambda: ClusterCountDisplay(np.array([0.3, 0.7]), 2),
    "EllipsesDisplay": lambda: EllipsesDisplay(
        PAIR, np.tile(np.eye(2), (3, 1, 1)), np.ones(3) / 3, rows=PAIR, labels=STEPS
    ),
    "EmissionsDisplay": lambda: EmissionsDisplay(STEPS, PAIR),
    "FilterDisplay": lambda: FilterDisplay(STEPS, np.ones(3)),
    "PartialEffectsDisplay": lambda: PartialEffectsDisplay(
        [0, 1],
        [STEPS, STEPS],
        [STEPS, STEPS],
        [np.ones(3), np.ones(3)],
        probabilities=[1.0, 0.5],
        names=["x0", "x1"],
        categorical=[False, True],
    ),
    "ParticlesDisplay": lambda: ParticlesDisplay(PAIR, np.ones(3) / 3),
    "PosteriorDisplay": lambda: skpacbayes.PosteriorDisplay(X),
    "ProgressiveLossDisplay": lambda: ProgressiveLossDisplay(STEPS + 1, STEPS),
    "RegimesDisplay": lambda: RegimesDisplay(STEPS, PAIR),
    "StreamDisplay": lambda: StreamDisplay(STEPS, STEPS, truth=STEPS),
    "TraceDisplay": lambda: TraceDisplay({"a": np.arange(16.0).reshape(2, 8)}),
}


@pytest.mark.parametrize(
    "name", [name for name in skpacbayes.__all__ if name.endswith("Display")]
)
def test_styles_reach_the_artists_of_every_display(name):
    """A new display needs an entry in `DISPLAYS`, and a keyword for its style."""
    display = DISPLAYS[name]()
    keywords = style_keywords(type(display))
    assert keywords
    assert keywords == [
        key
        for key in inspect.signature(type(display).from_estimator).parameters
        if key.endswith("_kwargs")
    ]
    for keyword in keywords:
        style = {"lw": 3.5, "color": "red", "gid": "styled"}  # over other names' too
        drawn = display.plot(**{keyword: style}).figure_.findobj(
            lambda artist: artist.get_gid() == "styled"
        )
        assert drawn
        for artist in drawn:
            assert np.all(np.asarray(artist.get_linewidth()) == 3.5)
            assert is_red(artist)
        with pytest.raises((AttributeError, TypeError), match="nonsense"):
            display.plot(**{keyword: {"nonsense": 1}})
        plain = display.plot().figure_
        assert not plain.findobj(lambda artist: artist.get_gid() == "styled")


@pytest.mark.filterwarnings("ignore::UserWarning")  # of small tables
def test_styles_given_to_from_estimator(clusterer, regimes, monkeypatch):
    """They are handed to `plot`, whatever the display."""
    frame = pd.DataFrame(X[:40, :1])
    tracker = ClusteredParticleFilter(n_particles=20, random_state=0)
    online = OnlineVIRegressor(random_state=0)
    additive = SparseAdditiveGibbsRegressor(n_iter=20, burn_in=5, random_state=0)
    abc = ABCPosteriorKDE(random_state=0, n_validation=20)
    abc.fit(X, X[:, 0] + np.random.default_rng(0).normal(size=120))
    arguments = {
        "ChoiceDisplay": (abc,),
        "ClusterCountDisplay": (clusterer,),
        "EllipsesDisplay": (clusterer, X),
        "EmissionsDisplay": (regimes[1], regimes[0]),
        "FilterDisplay": (tracker, frame),
        "PartialEffectsDisplay": (additive.fit(X, X[:, 0]),),
        "ParticlesDisplay": (clone(tracker).fit(X[:20]),),
        "PosteriorDisplay": (abc, X[:1]),
        "ProgressiveLossDisplay": (online, X, X[:, 0]),
        "RegimesDisplay": (regimes[1], regimes[0]),
        "StreamDisplay": (PACOClusterer(), X[:20]),
        "TraceDisplay": (regimes[1],),
    }
    assert arguments.keys() == DISPLAYS.keys()
    for name, given in arguments.items():
        display = getattr(skpacbayes, name)
        styles = {key: {"gid": key} for key in style_keywords(display)}
        options = {"every": 20} if name == "StreamDisplay" else {}
        monkeypatch.setattr(display, "plot", lambda self, **handed: handed)
        handed = display.from_estimator(*given, **options, **styles)
        assert {key: handed[key] for key in styles} == styles, name


def words(ax):
    """Return the texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_filter_says_which_state_and_what_the_band_is(ax):
    tracker = ClusteredParticleFilter(n_particles=200, random_state=0)
    ax.plot([0, 1], [0, 1])  # the band keeps the color of the mean all the same
    FilterDisplay.from_estimator(tracker, X[:20], state=1, n_stds=3, ax=ax)
    assert words(ax) == ["smoothed state 1", "± 3 standard deviations"]
    assert ax.get_ylabel() == "smoothed state 1"
    band, line = ax.collections[0].get_facecolor()[0], ax.lines[1].get_color()
    assert matplotlib.colors.same_color(band[:3], line)
    alone = FilterDisplay.from_estimator(tracker, X[:20, :1], n_stds=0, smooth=False)
    assert words(alone.ax_) == ["filtered state"]
    assert not alone.ax_.collections
    for function, what in ((np.exp, "exp"), (lambda state: 2 * state, "function")):
        display = FilterDisplay(STEPS, np.ones(3), function=function).plot()
        assert display.ax_.get_ylabel() == f"{what} of the state"
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FilterDisplay.from_estimator(tracker, X[:20], times=np.arange(5))


def test_times_of_regimes_of_another_length_are_refused(regimes):
    series, model = regimes
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RegimesDisplay.from_estimator(model, series, times=np.arange(5))


def test_one_row_of_a_filter_is_seen(ax):
    FilterDisplay(np.array([2.0]), np.array([0.5])).plot(ax=ax)
    assert ax.lines[0].get_marker() == "o"
    assert ax.collections[0].get_linewidth()[0] > 0
    low, high = ax.get_ylim()
    assert low < 1 < 3 < high


@pytest.mark.parametrize("step", ["D", "m", "s"])
def test_dates_of_a_filter_do_not_overlap(step):
    times = np.datetime64("2020-01-01", step) + 13 * np.arange(120)
    narrow = plt.figure(figsize=(4, 2), layout="constrained").subplots()
    FilterDisplay(np.zeros(120), np.ones(120), times=times).plot(ax=narrow)
    narrow.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in narrow.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_a_choice_has_whole_ticks_and_says_what_is_chosen():
    scores = {"score": (np.array([1, 2]), np.array([0.0, 1.0]))}
    display = ChoiceDisplay(scores, 2, xlabel="states", ylabel="score").plot()
    display.figure_.canvas.draw()
    ticks = display.ax_.get_xticks()
    assert np.array_equal(ticks, np.round(ticks))
    assert words(display.ax_) == ["score", "chosen: 2"]
    posterior = ABCPosteriorKDE(random_state=0, n_validation=20)
    posterior.fit(X, X[:, 0] + np.random.default_rng(0).normal(size=120))
    display = ChoiceDisplay.from_estimator(posterior)
    assert display.ax_.get_xscale() == "log"
    (chosen,) = (name for name in display.curves if name.endswith(", chosen"))
    assert chosen == f"adjustment: {posterior.adjustment_}, chosen"


def test_traces_have_names_of_features_and_numbers_of_chains():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(60, 2)), columns=["length", "weight"])
    model = SparseAdditiveGibbsRegressor(n_iter=50, burn_in=10, random_state=0)
    model.fit(frame, np.sin(6 * frame["length"]) + 0.1 * rng.normal(size=60))
    display = TraceDisplay.from_estimator(model, n_variables=99)
    assert {"included[length]", "included[weight]"} <= display.series.keys()
    n_chains = len(display.series["n_variables"])
    assert display.axes_[-1].get_xlabel() == f"draw of each of {n_chains} chains"
    one = TraceDisplay({"n_clusters": np.tile([[1.0, 2.0]], (1, 8))}).plot()
    assert one.axes_[0].get_xlabel() == "draw"
    one.figure_.canvas.draw()
    ticks = one.axes_[0].get_yticks()
    assert np.array_equal(ticks, np.round(ticks))
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"n_variables == {wrong}"):
            TraceDisplay.from_estimator(model, n_variables=wrong)
