"""Choice among covariance types that the bound cannot compare: by cross-validation.

The prior of the covariances follows the covariance of all rows, and the bound does not
pay for its numbers. Where rows are few, it so prefers the types with most of them. The
Bayesian information criterion would charge half the logarithm of the number of rows for
each number. Where twice this price would change the order of two types, held-out rows
decide.
"""

import numpy as np

from .._chains import in_threads
from ._answers import log_densities
from ._diagnostics import components_of
from ._dual import in_dual_form, lifted
from ._search import from_labels
from ._selection import with_best_prior
from ._temperature import N_FOLDS, blocks_of

PRICE = 1.0  # of a number, in logarithms of the number of rows
COARSE = 10  # multiple of `tol` for the fits of a fold


def undecided(mixtures, criteria, X, sample_weight):
    """Return the numbers of the mixtures that may be the best, the best first.

    Parameters
    ----------
    mixtures : list of TemperedMixture
        With Gaussian families of several covariance types.
    criteria : list of float
        The best criterion of each.
    """
    total = X.shape[0] if sample_weight is None else sample_weight.sum()
    price = PRICE * np.log(max(total, 1.0))
    sizes = [prior_size(each.family, X.shape[1]) for each in mixtures]
    best = int(np.argmax(criteria))
    others = (
        i
        for i, size in enumerate(sizes)
        if size < sizes[best]
        and criteria[i] + price * (sizes[best] - size) > criteria[best]
    )
    return [best, *others]


def prior_size(family, n_features):
    """Return how many numbers the scale of the prior of the covariances has."""
    matrix = n_features * (n_features + 1) // 2
    sizes = {"full": matrix, "tied": matrix, "diag": n_features, "spherical": 1}
    return sizes[family.covariance_type]


def best_on_held_out_rows(learner, fits, X, sample_weight):
    """Return the number of the fit whose kind is best on held-out rows.

    In each fold, the mixture of each fit is begun anew, with the prior of the rows that
    are not held out, and from their components in that fit. Held-out rows so influence
    the start, and perhaps which maximum is reached; this is the same for all kinds.
    With fewer blocks of rows than folds it is the first.

    Parameters
    ----------
    learner : Learner
    fits : list of Fit
    """
    blocks = blocks_of(X, copies=True)
    if blocks.max() + 1 < N_FOLDS:
        return 0
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    labels = [components_of(fit, fit.mixture.family.encoded(X)) for fit in fits]
    held_out = [blocks % N_FOLDS == fold for fold in range(N_FOLDS)]
    calls = [(scores_of, learner, fits, labels, X, weight, rows) for rows in held_out]
    scores = np.empty((len(fits), len(X)))
    for rows, found in zip(held_out, in_threads(learner.n_jobs, calls), strict=True):
        scores[:, rows] = found
    return int((scores @ weight).argmax())


def scores_of(learner, fits, labels, X, weight, held_out):
    """Return the log densities of the rows held out, (n_fits, n_held_out)."""
    rows = X[~held_out], weight[~held_out]
    mixtures = learner.mixtures(*rows, fits[0].mixture.inverse_temperature)
    begun = {each.family.covariance_type: each for each in mixtures}
    to = {**learner.to, "tol": COARSE * learner.to["tol"]}
    found = []
    for fit, components in zip(fits, labels, strict=True):
        mixture = begun[fit.mixture.family.covariance_type]
        mixture = in_dual_form(mixture, *rows)
        own_rows = mixture.family.encoded(rows[0]), rows[1]
        own = from_labels(mixture, fit.n_components, *own_rows, components[~held_out])
        own = mixture.ascend(own, *own_rows, **to)
        own = lifted(with_best_prior(own, *own_rows, **to), *rows)
        found.append(log_densities(own.mixture.family, own.state, X[held_out]))
    return found
