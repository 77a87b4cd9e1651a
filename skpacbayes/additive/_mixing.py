"""Whether chains agree, and how sure the inclusion probabilities are."""

from typing import NamedTuple

import numpy as np

from .._chains import r_hat

N_BATCHES = 10  # of a chain, whose means give Monte Carlo errors
UNCERTAIN = 0.05, 0.95  # inclusion probabilities between which R-hat is computed


class Run(NamedTuple):
    """What one chain went through."""

    path: np.ndarray  # (n_draws,): number of the model of each draw
    columns: np.ndarray  # (n_models, largest): functions of each model, -1 fills rows
    values: np.ndarray  # (n_draws,): a number whose R-hat counts


class Mixing(NamedTuple):
    """How well chains mix."""

    r_hat: float  # the largest
    errors: np.ndarray  # (n_features,): Monte Carlo errors of inclusion probabilities
    runs: tuple  # what they went through


def mixing(runs, inclusion, width):
    """Compare chains.

    R-hat is that of the values, and of the presence of each variable whose inclusion
    probability is between .05 and .95. The Monte Carlo errors are those of the means of
    ten batches of each chain; infinite where there are fewer draws than batches.

    Parameters
    ----------
    runs : list of Run
        What the chains went through.
    inclusion : ndarray of shape (n_features,)
        Inclusion probabilities.
    width : int
        Number of functions of a variable.

    Returns
    -------
    found : Mixing
        The largest R-hat, and the errors.
    """
    n_draws = min(len(run.path) for run in runs)
    low, high = UNCERTAIN
    series = [[run.values[:n_draws] for run in runs]]
    for feature in np.flatnonzero((inclusion > low) & (inclusion < high)):
        first = feature * width  # the first function of a variable that is in
        series.append(
            [
                (run.columns == first).any(axis=1)[run.path[:n_draws]].astype(float)
                for run in runs
            ]
        )
    means = [batch_means(run, len(inclusion), width) for run in runs]
    errors = np.full(len(inclusion), np.inf)
    if n_draws >= N_BATCHES:
        means = np.concatenate(means)
        errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return Mixing(float(r_hat(np.array(series)).max()), errors, tuple(runs))


def batch_means(run, n_features, width):
    """Return shares of the draws that have a variable: (n_batches, n_features)."""
    features, places = np.divmod(run.columns, width)
    firsts = (run.columns >= 0) & (places == 0)
    models = np.nonzero(firsts)[0]
    means = np.zeros((N_BATCHES, n_features))
    for number, batch in enumerate(np.array_split(run.path, N_BATCHES)):
        counts = np.bincount(batch, minlength=len(run.columns))
        shares = counts[models] / max(len(batch), 1)
        means[number] = np.bincount(features[firsts], shares, minlength=n_features)
    return means


def variables_of(columns, n_features, width):
    """Return which variables each model has: booleans (n_models, n_features)."""
    models, places = np.nonzero((columns >= 0) & (columns % width == 0))
    present = np.zeros((len(columns), n_features), dtype=bool)
    present[models, columns[models, places] // width] = True
    return present
