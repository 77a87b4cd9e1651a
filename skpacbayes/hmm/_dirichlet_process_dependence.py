"""Whether rows depend on the rows before them beyond what their states say."""

import numpy as np

_STRONG = 0.5  # correlation of neighbours above which the model is misleading
_ERRORS = 5.0  # standard errors that it must exceed, too
_FEWEST = 50  # pairs of neighbours
_FARTHEST = 3.0  # residuals are cut there, in units of their spread


def strongest_dependence(values, states, bounds):
    """Return the largest correlation of neighbouring rows in a state, 0 if none is.

    Given its states, rows of a hidden Markov model are independent. Residuals are those
    from the median of the state, each feature by itself, and cut so that outliers do
    not count more than others.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        Rows, NaN where missing.
    states : ndarray of shape (n_rows,)
        Most probable state of each.
    bounds : ndarray of shape (n_sequences + 1,)
        First row of each sequence, and the number of rows.

    Returns
    -------
    correlation : float
        The correlation that is farthest from 0 of all that are strong and certain.
    """
    neighbours = states[1:] == states[:-1]
    neighbours[bounds[1:-1] - 1] = False
    strongest = 0.0
    for column in values.T:
        for state in np.unique(states):
            rows = np.where(states == state, column, np.nan)
            if np.count_nonzero(~np.isnan(rows)) < _FEWEST:
                continue
            low, middle, high = np.nanquantile(rows, [0.25, 0.5, 0.75])
            reach = _FARTHEST * (high - low)
            residuals = (rows - middle).clip(-reach, reach)
            before, after = residuals[:-1][neighbours], residuals[1:][neighbours]
            known = ~np.isnan(before + after)
            before, after = before[known], after[known]
            if len(before) < _FEWEST or not (before.std() > 0 and after.std() > 0):
                continue
            found = np.corrcoef(before, after)[0, 1]
            least = max(_STRONG, _ERRORS / np.sqrt(len(before)))
            if abs(found) > max(least, abs(strongest)):
                strongest = float(found)
    return strongest
