"""Checks of serial dependence of rows given their states."""

from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

_STRONG = 0.5  # correlation of neighbours from which there is a warning
_STRONG_FAR = 0.4  # the same for rows farther apart, of which wrong states hide more
_TREND = 0.15  # correlation with time, most of which states can hide
_ERRORS = 5.0  # least number of standard errors
_FEWEST = 50  # least number of pairs of rows
_FARTHEST = 3.0  # residuals are clipped to this number of standard units
_SAME = 0.9  # lags with this share of the highest correlation count as equal
_LONGEST = 400  # largest lag, for a yearly season of daily rows
_SPANS = 1, 5, 20  # numbers of rows before a row whose residuals predict it
_MEMORY = 0.1  # correlation with these from which there is a warning
_FALSE_ALARMS = 1e-3  # probability that it is significant by chance
_LEAST_RANKED = 20  # least number of rows that are ranked


class Dependence(NamedTuple):
    """A correlation of residuals (0: none), and its lag."""

    correlation: float
    lag: int


class Memory(NamedTuple):
    """A correlation with the residuals of the `span` rows before (0: none)."""

    correlation: float
    span: int


def strongest_dependence(values, states, bounds):
    """Return the largest correlation of residuals of the rows of a sequence.

    Given the states, rows of a hidden Markov model are independent. Residuals are from
    the median of the state, by feature, and clipped for robustness. Neighbours are
    compared within each state, as in an autoregression of one regime; rows farther
    apart, as in a season, over all states.

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
    dependence : Dependence
        The largest significant correlation in absolute value; that of neighbours, if
        there is one.
    """
    neighbours = states[1:] == states[:-1]
    neighbours[bounds[1:-1] - 1] = False
    near = far = Dependence(0.0, 1)
    for column in values.T:
        for _, residuals in _residuals(column, states):
            near = _stronger(near, _of_neighbours(residuals, neighbours))
        far = _stronger(far, _of_lags(_pooled(column, states), bounds))
    return near if near.correlation else far


def strongest_trend(values, states, bounds):
    """Return the largest correlation of residuals with time; 0 if none is strong.

    The arguments are those of `strongest_dependence`; time is counted from the first
    row of each sequence.
    """
    lengths, strongest = np.diff(bounds), 0.0
    times = np.arange(len(values)) - np.repeat(bounds[:-1], lengths)
    for column in values.T:
        pooled = _pooled(column, states)
        known = ~np.isnan(pooled)
        if known.sum() < _FEWEST or not (pooled[known].std() > 0 < times[known].std()):
            continue
        found = float(np.corrcoef(times[known], pooled[known])[0, 1])
        least = max(_TREND, _ERRORS / np.sqrt(known.sum()))
        if abs(found) > max(least, abs(strongest)):
            strongest = found
    return strongest


def strongest_memory(values, paths, bounds):
    """Return the largest correlation of rows with the residuals of those before.

    The residual of a row is the normal score of its rank among the rows of its state.
    It is compared with the next row, ranked among all rows that follow the same state.
    If the rows are those of a hidden Markov model and the states are a draw from their
    posterior, both are independent given the states. So the correlation is zero in
    expectation, with a standard error of one over the root of the number of rows, for
    all emissions and durations. This does not hold for the most probable states, which
    truncate the residuals.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        Rows, NaN where missing; possibly without features.
    paths : list of ndarray of shape (n_rows,)
        Draws of the states. The correlation is the mean over draws.
    bounds : ndarray of shape (n_sequences + 1,)
        First row of each sequence, and the number of rows.

    Returns
    -------
    memory : Memory
        The largest significant correlation in absolute value.
    """
    if not values.shape[1]:
        return Memory(0.0, 1)
    means = np.mean([_memories(values, path, bounds) for path in paths], axis=0)
    least = -ndtri(0.5 * _FALSE_ALARMS / means[..., 0].size)
    strongest = Memory(0.0, 1)
    for span, of_span in zip(_SPANS, means, strict=True):
        for found, n_errors in of_span:
            if abs(n_errors) > least and abs(found) > _MEMORY:
                strongest = _stronger(strongest, Memory(float(found), span))
    return strongest


def _memories(values, path, bounds):
    """Return correlations and numbers of standard errors, (n_spans, n_tests, 2).

    The tests are those of each feature and, with several, of their sum. The standard
    error accounts for correlations of the features.
    """
    first = np.repeat(bounds[:-1], np.diff(bounds))
    before = np.append(-1, path[:-1])
    before[bounds[:-1]] = -1  # no state
    residuals = np.column_stack([_normal_scores(column, path) for column in values.T])
    following = np.column_stack([_normal_scores(column, before) for column in values.T])
    sums = np.vstack([np.zeros(values.shape[1]), residuals.cumsum(axis=0)])
    rows, found = np.arange(len(values)), []
    for span in _SPANS:
        past = sums[rows] - sums[np.maximum(rows - span, first)]
        products, norms = past * following, (past**2, following**2)
        if values.shape[1] > 1:
            products, *norms = map(_with_sum, (products, *norms))
        totals, squares = products.sum(axis=0), (products**2).sum(axis=0)
        scales = norms[0].sum(axis=0) * norms[1].sum(axis=0)
        enough = np.count_nonzero(products, axis=0) >= _FEWEST
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = np.array([totals / np.sqrt(scales), totals / np.sqrt(squares)])
        found.append(np.where(enough & (squares > 0), pairs, 0.0).T)
    return np.array(found)


def _with_sum(columns):
    """Append the sum of columns."""
    return np.column_stack([columns, columns.sum(axis=1)])


def _normal_scores(column, groups):
    """Return normal scores of the ranks of rows in their groups, with variance 1.

    The score is zero for missing values, for groups with few rows, and for group -1.
    """
    scores, seen = np.zeros(len(column)), ~np.isnan(column)
    for group in range(groups.max() + 1):
        rows = np.flatnonzero((groups == group) & seen)
        if len(rows) < _LEAST_RANKED:
            continue
        found = ndtri((rankdata(column[rows]) - 0.5) / len(rows))
        deviation = found.std()
        if deviation > 0:
            scores[rows] = (found - found.mean()) / deviation
    return scores


def _residuals(column, states):
    """Yield each state with enough rows, and residuals; NaN for other rows."""
    for state in np.unique(states):
        rows = np.where(states == state, column, np.nan)
        if np.count_nonzero(~np.isnan(rows)) < _FEWEST:
            continue
        low, middle, high = np.nanquantile(rows, [0.25, 0.5, 0.75])
        reach = _FARTHEST * (high - low)
        yield state, (rows - middle).clip(-reach, reach)


def _pooled(column, states):
    """Return residuals of all states, scaled by the standard deviation of each."""
    pooled = np.full(len(column), np.nan)
    for state, residuals in _residuals(column, states):
        deviation = np.nanstd(residuals)
        if deviation > 0:
            pooled[states == state] = residuals[states == state] / deviation
    return pooled


def _stronger(first, second):
    return max(first, second, key=lambda found: abs(found.correlation))


def _of_neighbours(residuals, neighbours):
    """Return the correlation of neighbours in a state, if significant."""
    before, after = residuals[:-1][neighbours], residuals[1:][neighbours]
    known = ~np.isnan(before + after)
    before, after = before[known], after[known]
    if len(before) < _FEWEST or not (before.std() > 0 and after.std() > 0):
        return Dependence(0.0, 1)
    found = float(np.corrcoef(before, after)[0, 1])
    strong = abs(found) > max(_STRONG, _ERRORS / np.sqrt(len(before)))
    return Dependence(found if strong else 0.0, 1)


def _of_lags(residuals, bounds):
    """Return the strongest correlation of rows two or more apart, by Fourier transform.

    Up to a third of the median length of the sequences, which are laid out with gaps.
    """
    lengths = np.diff(bounds)
    longest = min(int(np.median(lengths)) // 3, _LONGEST)
    known = ~np.isnan(residuals)
    if longest < 2 or np.count_nonzero(known) < _FEWEST:
        return Dependence(0.0, 1)
    places = np.arange(len(residuals)) + longest * np.repeat(
        np.arange(len(lengths)), lengths
    )
    size = next_fast_len(int(places[-1]) + 1 + longest, real=True)
    laid = np.zeros((2, size))
    laid[0, places[known]] = residuals[known] - residuals[known].mean()
    laid[1, places[known]] = 1.0
    sums, counts = irfft(abs(rfft(laid)) ** 2, size)[:, : longest + 1]
    counts = np.maximum(counts.round(), 1.0)
    if not sums[0] > 0:
        return Dependence(0.0, 1)
    found = sums / counts * (counts[0] / sums[0])
    least = np.maximum(_STRONG_FAR, _ERRORS / np.sqrt(counts))
    found[(abs(found) <= least) | (counts < _FEWEST)] = 0.0
    found[:2] = 0.0
    # The first of about the largest ones: a season has peaks at all multiples.
    sizes = found if (found > 0).any() else -found
    lag = int((sizes >= _SAME * sizes.max()).argmax())
    return Dependence(float(found[lag]), lag)
