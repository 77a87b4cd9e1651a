"""A tour of skpacbayes on real data: `make demo`.

Each stop is a function that prints what happens and draws it on a part of the figure.
"""

import time
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

from skpacbayes.cluster import PACOClusterer

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
        f"k-means, told {found[-1]} clusters and shown all pixels at once, "
        f"would have paid {hindsight / len(stream):.4f} a pixel.\n"
    )

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
    print("   pixels  clusters  loss paid  bound of the theorem")
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
        f"loss paid, and {share:.0%} of it is the price of drawing\nat random. What it "
        "shows is the rate: the bound for each pixel falls as the stream goes on.\n"
    )

    axes = figure.subplots()
    axes.plot(seen, bounds, label="bound of the theorem")
    axes.plot(seen, paid, label="loss paid by the forecasts")
    axes.set(yscale="log", xlabel="pixels read", ylabel="loss per pixel")
    axes.set_title('calibration="regret": the guarantee and what happened')
    axes.legend()
    axes.grid(alpha=0.3)


# Each stop, and the height of its part of the figure in inches.
TOUR = [(colours_of_a_picture, 3.0), (guarantee_on_a_stream, 3.0)]


def main():
    """Run every stop, then save the figure."""
    matplotlib.use("Agg")  # draws into a file: no display needed
    heights = [height for _, height in TOUR]
    figure = plt.figure(figsize=(12, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(TOUR), 1, height_ratios=heights)
    for (stop, _), part in zip(TOUR, np.atleast_1d(parts), strict=True):
        stop(part)
    figure.savefig(PICTURE, dpi=100)
    print(f"The plot is in {PICTURE.resolve()}")


if __name__ == "__main__":
    main()
