"""Regressions on time, a season and earlier rows, to compare with the states.

If rows follow a hidden Markov model, another model rarely predicts them better: its
likelihood, with parameters integrated out, exceeds that of the true model c times with
a probability of at most 1 / c. So a regression that does is a sign that the states cut
a season or a drift into pieces.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len, rfft
from scipy.signal import lfilter
from scipy.special import gammaln

_DECAYS = 0.0, 0.8, 0.95  # of averages of the rows before; 0 is the last row
_FINER = 4  # number of frequencies per Fourier frequency
_LEAST_PERIODS = 2  # least number of periods in the longest sequence
_DEGREES = np.inf, 4.0, 2.0  # of freedom, of the errors; infinite: normal
_N_WEIGHTS = 15  # weightings of the rows, for Student errors
_N_STEPS, _LOWEST = 8, 30.0  # Newton steps; lowest logarithm of a mean count
_LEAST = np.finfo(float).tiny
# Least number of rows for each coefficient. With fewer, a regression follows the rows,
# and the criterion takes this for evidence: of ten independent normal rows in 85 of 100
# draws.
_ROWS_PER_COEFFICIENT = 5


class Regression(NamedTuple):
    """A regression, and its gain in nats over the states; 0 without a gain.

    `period`: of the season, in rows, or None; `on_rows`: whether the rows before are
    among its variables.
    """

    gain: float
    period: float | None
    on_rows: bool


def best_regression(rows, kinds, log_likelihood):
    """Return the regression with the largest evidence.

    All features have the same variables: time, possibly a season of one or two
    harmonics and, of the feature itself, averages of the rows before. Counts have
    Poisson distributions, and other features normal or Student errors. The evidence is
    approximated by the Bayesian information criterion. Categories have equal
    probabilities at all times or, with the rows before, depend on the row before.

    Parameters
    ----------
    rows : Rows or ProductRows
        The rows.
    kinds : sequence of {"normal", "poisson", "categorical"}
        Kind of each feature.
    log_likelihood : float
        Of the rows under the model with states.

    Returns
    -------
    regression : Regression
        Its gain is over the states and over a regression without variables, whichever
        is smaller: states need not predict a constant feature as well.
    """
    names = [kind == "categorical" for kind in kinds]
    numbers = [kind for kind in kinds if kind != "categorical"]
    counts = np.array([kind == "poisson" for kind in numbers], dtype=bool)
    values, bounds = rows.numbers, rows.bounds
    rounding = np.zeros(len(counts))
    rounding[~counts] = getattr(rows, "normal", rows).rounding
    responses = [
        _Response(column, own, add)
        for column, own, add in zip(values.T, counts, rounding, strict=True)
    ]
    lengths = np.diff(bounds)
    times = np.arange(len(values)) - np.repeat(bounds[:-1], lengths)
    trend = [(times - times.mean()) / max(times.std(), 1.0)]
    frequency = _strongest_frequency(responses, bounds, trend)
    season = [
        wave(harmonic * frequency * times)
        for harmonic in (1, 2)
        for wave in (np.cos, np.sin)
    ]
    before = [own.averages(times) for own in responses]
    alone, chained = _log_evidence_of_names(rows.values[:, names], times)
    least = max(log_likelihood, alone + sum(own.log_evidence([]) for own in responses))
    best = Regression(0.0, None, False)
    for n_waves, on_rows in product((0, 2, 4), (False, True)):
        gain = (chained if on_rows else alone) - least
        gain -= np.log(len(values)) if n_waves else 0.0
        shared = trend + season[:n_waves]
        for own, averages in zip(responses, before, strict=True):
            gain += own.log_evidence(shared + averages if on_rows else shared)
        if gain > best.gain:
            period = 2 * np.pi / frequency if n_waves else None
            best = Regression(float(gain), period, on_rows)
    return best


class _Response:
    """A feature, of which `seen` are the rows in which it is known.

    `centered` (n_rows,): its deviations from the mean, of logarithms for counts; zero
    where missing.
    """

    def __init__(self, column, is_count, rounding):
        self.is_count, self.rounding = is_count, rounding
        self.seen = ~np.isnan(column)
        self.values = column[self.seen]
        self.centered = np.zeros(len(column))
        scaled = np.log1p(self.values) if is_count else self.values
        if len(scaled):
            self.centered[self.seen] = scaled - scaled.mean()

    def averages(self, times):
        """Return averages of the rows before, weighted geometrically.

        `times` (n_rows,): numbers of rows before in the same sequence.
        """
        found, first = [], np.arange(len(times)) - times
        for decay in _DECAYS:
            average = lfilter([0, 1 - decay], [1, -decay], self.centered)
            # Without the share of the sequences before.
            found.append(average - decay**times * average[first])
        return found

    def log_evidence(self, variables):
        """Return the approximate log evidence of a regression on variables.

        It is -inf if there are too few rows for the variables.
        """
        n = len(self.values)
        if not n:
            return 0.0
        if variables and n < _ROWS_PER_COEFFICIENT * (1 + len(variables)):
            return -np.inf
        design = np.column_stack([np.ones(n), *(own[self.seen] for own in variables)])
        penalty = 0.5 * design.shape[1] * np.log(n)
        if self.is_count:
            return _log_poisson(self.values, design) - penalty
        found = max(
            _log_student(self.values, design, degrees, self.rounding)
            for degrees in _DEGREES
        )
        return found - penalty - 0.5 * np.log(n) - np.log(len(_DEGREES))


def _log_evidence_of_names(codes, times):
    """Return the log evidence of categories, and that of a chain of categories.

    `codes` (n_rows, n_features) of the categories, NaN where missing; `times` as in
    `averages`. The probabilities of the categories, and in the chain of those after
    each category, have Jeffreys' prior. The chain may hold for none of the features.
    """
    alone = chained = 0.0
    for column in codes.T:
        before = np.where(times > 0, np.roll(column, 1), np.nan)
        seen, k = ~np.isnan(column), int(np.nan_to_num(column).max(initial=0)) + 1
        # The last row of the table has what follows no known row.
        after = np.where(np.isnan(before), k, before)[seen].astype(int)
        table = np.zeros((k + 1, k))
        np.add.at(table, (after, column[seen].astype(int)), 1.0)
        own = _log_multinomial(table.sum(axis=0))
        alone += own
        chain = sum(map(_log_multinomial, table))
        chained += max(own, chain) - np.log(2.0)
    return alone, chained


def _log_multinomial(counts):
    """Return the log evidence of categories in order, with Jeffreys' prior."""
    k = len(counts)
    prior = gammaln(0.5 * k) - k * gammaln(0.5)
    return float(prior + gammaln(counts + 0.5).sum() - gammaln(counts.sum() + 0.5 * k))


def _log_student(values, design, degrees, rounding):
    """Return the largest log-likelihood of a regression with Student errors, by EM.

    `degrees` of freedom, infinite for normal errors. The variance of rounding errors is
    added to the squares.
    """
    normal, n = np.isinf(degrees), len(values)
    weights = np.ones(n)
    for _ in range(1 if normal else _N_WEIGHTS):
        weighted = weights[:, None] * design
        found = np.linalg.lstsq(design.T @ weighted, weighted.T @ values)[0]
        squares = (values - design @ found) ** 2
        variance = max(np.mean(weights * (squares + rounding)), _LEAST)
        if not normal:
            weights = (degrees + 1.0) / (degrees + squares / variance)
    constant = -0.5 * np.log(2 * np.pi * variance)
    total = -0.5 * squares.sum() / variance
    if not normal:
        constant = gammaln(0.5 * (degrees + 1)) - gammaln(0.5 * degrees)
        constant -= 0.5 * np.log(degrees * np.pi * variance)
        total = -0.5 * (degrees + 1) * np.log1p(squares / (degrees * variance)).sum()
    return float(n * constant + total - 0.5 * weights.sum() * rounding / variance)


def _log_poisson(counts, design):
    """Return the largest log-likelihood of a Poisson regression, by Newton steps."""
    top = np.log(max(counts.max(), 1.0)) + 1.0
    found, best = np.log(counts + 0.5), -np.inf
    for _ in range(_N_STEPS):
        roots = np.exp(0.5 * found)
        target = roots * found + (counts - roots**2) / roots
        coefficients = np.linalg.lstsq(roots[:, None] * design, target)[0]
        found = (design @ coefficients).clip(-_LOWEST, top)
        log_likelihood = counts @ found - np.exp(found).sum()
        best = max(best, float(log_likelihood))
    return best - float(gammaln(counts + 1.0).sum())


def _strongest_frequency(responses, bounds, trend):
    """Return the angular frequency with the largest power in all features."""
    longest = int(np.diff(bounds).max())
    size = next_fast_len(_FINER * longest, real=True)
    design = np.column_stack([np.ones(len(trend[0])), *trend])
    power = np.zeros(size // 2 + 1)
    for own in responses:
        rest = own.centered - design @ np.linalg.lstsq(design, own.centered)[0]
        deviation = rest.std()
        if deviation > 0:
            for part in np.split(rest / deviation, bounds[1:-1]):
                power += abs(rfft(part, size)) ** 2
    first = min(-(-_LEAST_PERIODS * size // longest), size // 2)
    return 2 * np.pi * (first + int(power[first:].argmax())) / size
