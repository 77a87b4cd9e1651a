"""A tour of skpacbayes on real data: `make demo`.

Each stop is a function that prints what happens and draws it on a part of the figure.
"""

import textwrap
import time
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.cbook import get_sample_data
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_diabetes, load_digits, load_sample_image
from sklearn.decomposition import PCA

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.cluster import PACOClusterer, SSMCKMeansInit
from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import StochasticVolatility
from skpacbayes.hmm import DirichletProcessHMM
from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate
from skpacbayes.mixture import TemperedVBGaussianMixture
from skpacbayes.online import OnlineVIRegressor
from skpacbayes.plotting import PartialEffectsDisplay, RegimesDisplay

PICTURE = Path("skpacbayes_demo.png")


def pixels_in_random_order():
    """Return a photograph and its 273,280 colours, each from -1/2 to 1/2."""
    image = load_sample_image("china.jpg") / 255 - 0.5
    return image, np.random.default_rng(0).permutation(image.reshape(-1, 3))


def colours_of_a_picture(figure):
    """Find a palette on a stream of pixels; the number of colours is not said."""
    image, stream = pixels_in_random_order()
    print(f"The colours of a photograph: a stream of {len(stream):,} pixels")
    print("   pixels  clusters  loss per pixel so far  CPU seconds")
    clusterer = PACOClusterer(random_state=0)
    stops = np.unique(np.geomspace(10, len(stream), 60).astype(int))
    printed = [100, 1_000, 10_000, 100_000, len(stream)]
    seen, found = [], []
    start = time.process_time()
    for block in np.split(stream, np.union1d(stops, printed)[:-1]):
        clusterer.partial_fit(block)
        seen.append(clusterer.n_samples_seen_)
        found.append(clusterer.n_clusters_)
        if seen[-1] in printed:
            loss = clusterer.cumulative_loss_ / seen[-1]
            seconds = time.process_time() - start
            print(f"{seen[-1]:9,}  {found[-1]:8}  {loss:21.4f}  {seconds:11.1f}")
    hindsight = KMeans(found[-1], n_init=1, random_state=0).fit(stream).inertia_
    print(
        f"k-means, with {found[-1]} clusters given and all pixels at once: "
        f"{hindsight / len(stream):.4f} per pixel."
    )
    moving = PACOClusterer(forgetting="auto", n_iter=100, random_state=0)
    numbers = [
        moving.partial_fit(block).n_clusters_
        for block in np.array_split(image.reshape(-1, 3)[::200], 8)
    ]
    print(f"Colours from the sky down, forgetting what is above: {numbers}\n")

    palette = dict(
        zip(clusterer.cluster_labels_, clusterer.cluster_centers_ + 0.5, strict=True)
    )
    labels = clusterer.predict(image.reshape(-1, 3))
    painted = np.array([palette[label] for label in labels]).reshape(image.shape)
    original, repainted, curve = figure.subplots(1, 3)
    original.imshow(image + 0.5)
    original.set_title("the photograph")
    repainted.imshow(painted)
    repainted.set_title(f"in the {found[-1]} colours found on the stream")
    for axes in (original, repainted):
        axes.set_axis_off()
    curve.step(seen, found, where="post")
    curve.set(
        xscale="log", ylim=(0, None), xlabel="pixels read", ylabel="number of clusters"
    )
    curve.set_title("clusters along the stream")
    curve.grid(alpha=0.3)


def guarantee_on_a_stream(figure):
    """Compare the loss of the forecasts with the bound that holds for every stream."""
    _, stream = pixels_in_random_order()
    stream = stream[:300]
    radius = np.sqrt(3) / 2  # no colour is farther from grey: known beforehand
    clusterer = PACOClusterer(
        calibration="regret",
        radius=radius,
        refresh=1,
        n_iter=100,
        summary_size=None,
        random_state=0,
    )
    print(f"The guarantee, in the paper's setting, on {len(stream):,} of the pixels")
    print("   pixels  clusters       loss  bound of the theorem")
    seen, paid, bounds = [], [], []
    for block in np.array_split(stream, 30):
        clusterer.partial_fit(block)
        certificate = clusterer.certificate()
        seen.append(clusterer.n_samples_seen_)
        paid.append(certificate.observed / seen[-1])
        bounds.append(certificate.bound / seen[-1])
        if seen[-1] in (50, 100, 200, 300):
            print(
                f"{seen[-1]:9,}  {clusterer.n_clusters_:8}  {certificate.observed:9.1f}"
                f"  {certificate.bound:20.1f}"
            )
    print(certificate)
    share = certificate.terms["variance"] / certificate.bound
    print(
        f"The bound is loose: {certificate.bound / certificate.observed:.0f} times the "
        f"loss, and {share:.0%} of it is the cost of drawing\nat random. It "
        "shows a rate: the bound per pixel falls along the stream.\n"
    )

    axes = figure.subplots()
    axes.plot(seen, bounds, label="bound of the theorem")
    axes.plot(seen, paid, label="loss of the forecasts")
    axes.set(yscale="log", xlabel="pixels read", ylabel="loss per pixel")
    axes.set_title('calibration="regret": the guarantee and what happened')
    axes.legend()
    axes.grid(alpha=0.3)


def digits_as_a_mixture(figure):
    """Fit a Bayesian mixture to images of digits in one pass; how good is its bound?"""
    X = PCA(10, random_state=0).fit_transform(load_digits().data)
    print(f"\nA mixture of 10 Gaussians on {len(X):,} images of digits")
    streamed = TemperedVBGaussianMixture(10, block_size=300, random_state=0)
    n_rows, density = [], []
    for block in np.array_split(X, 12):
        streamed.partial_fit(block)
        n_rows.append(streamed.n_samples_seen_)
        density.append(streamed.score(X))
    batch = TemperedVBGaussianMixture(10, random_state=0).fit(X)
    print(
        f"   log density of all images: {density[-1]:.3f} after one pass over blocks,"
    )
    print(f"   {batch.score(X):.3f} by fit")
    axes = figure.subplots()
    axes.plot(n_rows, density, marker="o", label="one pass")
    axes.axhline(batch.score(X), color="tab:gray", label="fit")
    axes.set(xlabel="images read", ylabel="mean log density", title="digits")
    axes.legend()


def intervals_on_a_stream(figure):
    """Predict each patient before learning from it, with an interval of 90 %."""
    X, y = load_diabetes(return_X_y=True)
    print(f"\nThe progression of diabetes in {len(y)} patients, one after the other")
    regressor = OnlineVIRegressor(random_state=0).partial_fit(X[:20], y[:20])
    regressor.predict_quantiles(X[:1], [0.05, 0.5, 0.95])  # compiles what is timed
    bands = []
    start = time.process_time()
    for row, target in zip(X[20:, None], y[20:, None], strict=True):
        bands.append(regressor.predict_quantiles(row, [0.05, 0.5, 0.95])[0])
        regressor.partial_fit(row, target)
    seconds = time.process_time() - start
    low, middle, high = np.array(bands).T
    inside = np.mean((low <= y[20:]) & (y[20:] <= high))
    error = np.mean((y[20:] - middle) ** 2) / y.var()
    print(f"   {inside:.0%} inside their interval of 90 %, relative error {error:.2f},")
    print(f"   {1e6 * seconds / len(bands):.0f} us a patient to predict and to learn")
    axes = figure.subplots()
    axes.fill_between(np.arange(20, len(y)), low, high, alpha=0.3, label="90 %")
    axes.plot(np.arange(20, len(y)), y[20:], ".", markersize=3, label="patients")
    axes.set(xlabel="patients seen", ylabel="progression", title="diabetes")
    axes.legend()


def starts_of_k_means(figure):
    """Reduce the photograph to 64 colours by k-means, from two kinds of start."""
    _, stream = pixels_in_random_order()
    X = stream[:10_000]
    print(
        f"\n64 colours for {len(X):,} pixels by k-means, from five starts of each kind"
    )
    print("   start             1000 x loss per pixel   CPU ms of a start")
    axes = figure.subplots()
    starts = {
        "k-means++": lambda seed: kmeans_plusplus(X, 64, random_state=seed)[0],
        "SSMCKMeansInit": lambda seed: SSMCKMeansInit()(X, 64, seed),
    }
    for height, (name, start) in enumerate(starts.items()):
        losses, seconds = [], []
        start(0)  # compiles, or fills caches
        for seed in range(5):
            begin = time.process_time()
            centers = start(seed)
            seconds.append(time.process_time() - begin)
            fit = KMeans(64, init=centers, n_init=1).fit(X)
            losses.append(1e3 * fit.inertia_ / len(X))
        print(
            f"   {name:16}  {np.mean(losses):21.4f}   {1e3 * np.median(seconds):17.1f}"
        )
        axes.plot(losses, np.full(5, height), "o", label=name)
    axes.set(xlabel="loss per pixel, in thousandths, after k-means", ylim=(-1, 2))
    axes.set(yticks=[0, 1], yticklabels=list(starts), title="starts of k-means")
    axes.grid(alpha=0.3)


def nervousness_of_a_share(figure):
    """Follow the volatility of a share price, with days that are missing."""
    with get_sample_data("goog.npz") as file:
        prices = file["price_data"]
    returns = np.diff(np.log(prices["adj_close"]))[:, None]
    returns[700:710] = np.nan
    print(
        f"\nThe volatility of a share over {len(returns):,} days, ten of them missing"
    )
    model = StochasticVolatility(phi=0.9, sigma=0.4, beta=0.02)
    found = {}
    for method in ("bootstrap", "sqmc"):
        runs = [
            ClusteredParticleFilter(
                model, method=method, n_particles=1024, random_state=seed
            )
            for seed in range(10)
        ]
        start = time.process_time()
        for run in runs:
            run.fit(returns)
        spent = 1e6 * (time.process_time() - start) / (10 * len(returns))
        found[method] = np.std([run.log_likelihood_ for run in runs])
        print(
            f"   {method:9}: {spent:3.0f} us a day, log-likelihood "
            f"{runs[0].log_likelihood_:.1f} ± {found[method]:.2f}"
        )
    ratio = (found["bootstrap"] / found["sqmc"]) ** 2
    print(f"   the bootstrap would need about {ratio:.0f} times as many particles")
    means, stds = runs[0].fit_filter(returns)
    low, middle, high = (
        100 * model.beta * np.exp((means + s * stds) / 2)[:, 0] for s in (-2, 0, 2)
    )
    axes, days = figure.subplots(), prices["date"][1:]
    axes.plot(days, 100 * np.abs(returns), ".", markersize=3, label="|return|")
    axes.fill_between(days, low, high, alpha=0.3, label="two standard deviations")
    axes.plot(days, middle, label="volatility, filtered")
    axes.set(ylabel="% a day", ylim=(0, 9), title="a share price, 2004 to 2008")


def regimes_of_a_market(figure):
    """Find the calm and the nervous months of the S&P 500, and how long they last."""
    with get_sample_data("Stocks.csv") as file:
        table = np.genfromtxt(
            file, delimiter=",", names=True, dtype=None, encoding="utf-8", skip_header=1
        )
    table = table[np.char.endswith(table["Date"], "-01")]
    months, prices = table["Date"].astype("datetime64[D]"), table["GSPC"]
    returns = 100 * np.diff(np.log(prices))[:, None]
    print(f"\nRegimes of the S&P 500 over {len(returns)} months")
    start = time.process_time()
    model = DirichletProcessHMM(2, emission="per_state", random_state=0).fit(returns)
    seconds = time.process_time() - start
    laws = model.predict_proba(returns)
    swings = np.abs(returns[:, 0]) @ laws / laws.sum(axis=0)
    for name, state in zip(["calm", "nervous"], np.argsort(swings), strict=True):
        stays = 1 / (1 - model.transmat_samples_[:, state, state])
        low, middle, high = np.quantile(stays, [0.05, 0.5, 0.95])
        print(
            f"   {name:7}: {swings[state]:.1f} % up or down a month; lasts "
            f"{middle:.0f} months (90 %: {low:.0f} to {high:.0f})"
        )
    print(
        f"   {model.n_chains} chains of {model.n_iter_:,} sweeps in {seconds:.1f} s of "
        f"CPU time, R-hat {model.r_hat_:.2f}"
    )
    order = np.argsort(swings)
    display = RegimesDisplay(prices[1:], laws[:, order], times=months[1:])
    display.plot(ax=figure.subplots())
    display.ax_.set(yscale="log", title="the S&P 500, calm (0) and nervous (1)")
    display.ax_.set(xlabel="", ylabel="")


def posterior_without_a_likelihood(figure):
    """How infectious was the influenza in a boarding school of 763 boys, in 1978?"""
    in_bed = [3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4]

    def prior(n, rng):
        return rng.uniform([0.5, 0.5], [5.0, 5.0], size=(n, 2))

    def epidemic(theta, rng):
        rate, days_ill = theta.T
        ill, well, days = np.full(len(theta), 3), np.full(len(theta), 760), []
        for step in range(4 * len(in_bed)):  # four a day
            if step % 4 == 0:
                days.append(np.sqrt(ill))
            falling = rng.binomial(well, 1 - np.exp(-rate * ill / 763 / 4))
            ill = ill + falling - rng.binomial(ill, 1 - np.exp(-1 / days_ill / 4))
            well = well - falling
        return np.column_stack(days)

    print("\nAn epidemic: a simulator without a likelihood")
    start = time.process_time()
    X, y, _ = simulate(prior, epidemic, 20_000, random_state=0)
    simulated = time.process_time() - start
    posterior = ABCPosteriorKDE(
        parameter_transform="logit",
        bounds=(0.5, 5.0),
        random_state=0,
    ).fit(X, y)
    start = time.process_time()
    for _ in range(20):
        answer = posterior.predict_quantiles([np.sqrt(in_bed)], [0.05, 0.5, 0.95])
    answered = (time.process_time() - start) / 20
    low, middle, high = answer[0]
    for row, what in enumerate(["infections a boy a day", "days ill"]):
        print(f"   {what}: {middle[row]:.2f} ({low[row]:.2f} to {high[row]:.2f})")
    print(
        f"   {len(X):,} simulations in {simulated:.1f} s of CPU time, the posterior of "
        f"an observation in {1e3 * answered:.0f} ms"
    )
    draws = posterior.sample([np.sqrt(in_bed)], 100)[0]
    series = epidemic(draws, np.random.default_rng(1)) ** 2
    axes = figure.subplots()
    axes.plot(range(1, 15), series.T, color="tab:blue", alpha=0.1)
    axes.plot(range(1, 15), in_bed, "ko-", label="boys in bed")
    axes.set(xlabel="day", title="influenza: epidemics drawn from the posterior")
    axes.legend()


def what_matters_for_diabetes(figure):
    """Find the measurements that matter among a hundred columns of noise."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    permuted = [rng.permutation(X[name]) for _ in range(10) for name in X]
    X = X.join(pd.DataFrame(dict(enumerate(permuted))).add_prefix("noise "))
    print(
        f"\nWhat matters for diabetes: 10 measurements, 100 of noise, {len(y)} patients"
    )
    start = time.process_time()
    model = SparseAdditiveGibbsRegressor(random_state=0).fit(X, y)
    seconds = time.process_time() - start
    probabilities = model.inclusion_probabilities_
    likely = np.argsort(-probabilities)[:4]
    for feature in likely:
        name, probability = X.columns[feature], probabilities[feature]
        print(f"   {name:8} probability {probability:.2f}")
    print(
        f"   the most probable column of noise: {probabilities[10:].max():.2f}; "
        f"{seconds:.1f} s of CPU time"
    )
    PartialEffectsDisplay.from_estimator(
        model, X, features=likely.tolist(), figure=figure
    )


# Each stop, and the height of its part of the figure in inches.
TOUR = [
    (colours_of_a_picture, 3.0),
    (guarantee_on_a_stream, 3.0),
    (starts_of_k_means, 2.0),
    (digits_as_a_mixture, 3.0),
    (intervals_on_a_stream, 3.0),
    (nervousness_of_a_share, 3.0),
    (regimes_of_a_market, 3.0),
    (posterior_without_a_likelihood, 3.0),
    (what_matters_for_diabetes, 3.0),
]


def tell_last(caught):
    """Print how many warnings a stop gave, and the last one: a stream repeats them."""
    if caught:
        category, said = caught[-1].category.__name__, caught[-1].message
        others = f", the last of {len(caught)} along the way" if len(caught) > 1 else ""
        print(textwrap.fill(f"{category}{others}: {said}", 88) + "\n")


def main():
    """Run every stop, then save the figure."""
    matplotlib.use("Agg")  # draws into a file: no display needed
    heights = [height for _, height in TOUR]
    figure = plt.figure(figsize=(12, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(TOUR), 1, height_ratios=heights)
    for (stop, _), part in zip(TOUR, np.atleast_1d(parts), strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stop(part)
        tell_last(caught)
    figure.savefig(PICTURE, dpi=100)
    print(f"The plot is in {PICTURE.resolve()}")


if __name__ == "__main__":
    main()
