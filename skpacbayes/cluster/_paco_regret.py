"""The regret bound of a stream that `PACOClusterer` has read."""

import numpy as np

from ..certificates import Certificate, clustering_regret_terms
from ..certificates.clustering import largest_loss
from ._paco_path import Path


def regret_certificate(setting, stream, observed, radius):
    """Return Corollaries 1 to 6 of Li, Guedj and Loustau (2016) for a stream.

    Parameters
    ----------
    setting : Setting
    stream : Stream
    observed : float
        Cumulative loss of the forecasts.
    radius : float
        R.

    Returns
    -------
    certificate : Certificate
    """
    summary = stream.summary
    statistics = summary.statistics()
    points, weights = np.ascontiguousarray(statistics[:, :-2]), statistics[:, -2].copy()
    path = Path.find(
        points,
        weights,
        setting.largest_prior,
        setting.manhattan,
        np.random.default_rng(0),
    )
    found = range(1, path.n_found + 1)
    centers = [path.centers[k - 1, :k] for k in found]
    squares = statistics[:, -1]  # largest extra loss of merged rows over their means
    merged = np.sqrt(points.shape[1] * weights * squares)
    losses = path.losses[: path.n_found]
    losses = losses + (merged.sum() if setting.manhattan else squares.sum())
    prior = {"prior": "student", "prior_scale": setting.prior_scale}
    if np.isinf(setting.prior_scale):
        prior = {"prior": "uniform"}
    terms, n_clusters = clustering_regret_terms(
        losses,
        centers,
        max_clusters=setting.largest_prior,
        n_samples=summary.n_rows,
        max_norm=float(summary.largest_norm),
        radius=radius,
        last_temperature=stream.temperature,
        temperature_sum=float(summary.temperature_sum),
        cluster_penalty=setting.cluster_penalty,
        ordered=setting.regret,
        **prior,
        loss="manhattan" if setting.manhattan else "squared_euclidean",
    )
    given = setting.radius != "auto"
    largest = largest_loss(
        radius, float(summary.largest_norm), points.shape[1], setting.manhattan
    )
    return Certificate(
        "Li, Guedj and Loustau (2016), Theorem 2 and Corollaries 1 to 6, at "
        + ("1 cluster" if n_clusters == 1 else f"{n_clusters} clusters"),
        observed,
        sum(terms.values()),
        terms,
        {
            "the loss is the squared Euclidean distance": not setting.manhattan,
            "the distance was fixed before the rows came": setting.shapes == ("round",),
            "the prior was fixed before the rows came": setting.regret and given,
            "radius covers the rows": bool(summary.largest_norm <= radius),
            "the inverse temperature was fixed before the rows came": (
                not setting.calibrated
                and (given or setting.inverse_temperature != "auto")
            ),
            "the inverse temperature never increased": bool(stream.decreasing),
            "the variance term is that of Algorithm 2": setting.variance_term == 1.0,
            "the chain ran after every row": bool(stream.every_row),
            "every row is held": summary.exact,
            "the forecasts are draws from the quasi-posterior": None,
        },
        largest=summary.n_rows * largest,
    )
