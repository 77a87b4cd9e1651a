"""Random numbers within kernels.

A state is an array of one unsigned integer that is drawn for each call of a kernel: a
generator of NumPy as an argument costs more than most kernels, at each call, and its
gamma variables have a test of their arguments that takes longer than the draws.
"""

import math

import numpy as np

from . import kernel

_FACTOR, _WORD = np.uint64(4294883355), np.uint64(0xFFFFFFFF)
_HALF, _MORE, _FEWER = np.uint64(32), np.uint64(21), np.uint64(11)


@kernel
def uniform(state):
    """Draw from [0, 1), with 53 bits, by the generator MWC64X.

    This multiplies one half of the state by a constant and adds the other, the carry;
    the first 32 bits are the exclusive or of both (Thomas 2011), the others the first
    of that half. Its period is about 2^63.
    """
    low, carry = state[0] & _WORD, state[0] >> _HALF
    state[0] = low * _FACTOR + carry
    bits = ((low ^ carry) << _MORE) | (low >> _FEWER)
    return np.float64(bits) / 9007199254740992.0


@kernel
def gamma(shape, state):
    """Draw a gamma variable by the method of Marsaglia and Tsang (2000).

    A shape that is infinite or NaN is returned.
    """
    if not shape < math.inf:
        return shape
    factor = 1.0
    if shape < 1.0:
        factor = (1.0 - uniform(state)) ** (1.0 / shape)
        shape += 1.0
    least = shape - 1.0 / 3.0
    spread = 1.0 / math.sqrt(9.0 * least)
    while True:
        x = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
        x *= math.cos(2.0 * math.pi * uniform(state))
        root = 1.0 + spread * x
        if root > 0.0:
            v = root * root * root
            log_height = 0.5 * x * x + least * (1.0 - v + math.log(v))
            if math.log(1.0 - uniform(state)) < log_height:
                return factor * least * v


@kernel
def draw_gammas(shapes, log_rates, state, normalized, drawn):
    """Fill in gamma variables; if `normalized`, their shares of the totals of rows.

    `shapes`, `drawn` and, with rates that are not 1, `log_rates` (n_rows, n), else (0,
    0). Shares are right also if gamma variables underflow.
    """
    for i in range(shapes.shape[0]):
        highest, total = -math.inf, 0.0
        for j in range(shapes.shape[1]):
            shape, log_share = shapes[i, j], 0.0
            if normalized and shape < 1.0:
                log_share = math.log(1.0 - uniform(state)) / shape
                shape += 1.0
            drawn[i, j] = gamma(shape, state)
            if normalized:
                log_share += math.log(drawn[i, j])
                if log_rates.shape[0] > 0:
                    log_share -= log_rates[i, j]
                drawn[i, j] = log_share
                highest = log_share if log_share > highest else highest
        if normalized:
            for j in range(shapes.shape[1]):
                drawn[i, j] = math.exp(drawn[i, j] - highest)
                total += drawn[i, j]
            for j in range(shapes.shape[1]):
                drawn[i, j] /= total


@kernel
def gamma_above(shape, bound, state):
    """Draw a gamma variable given that it is at least `bound`.

    By rejection: of gamma variables if most are; else from an exponential distribution
    above `bound` or 1, and from a power distribution between `bound` and 1. NaN if an
    argument is.
    """
    if shape >= 1.0 and bound <= shape:
        drawn = gamma(shape, state)
        while drawn < bound:
            drawn = gamma(shape, state)
        return drawn
    start, more = max(bound, 1.0), max(shape - 1.0, 0.0)
    area = 0.0 if bound >= 1.0 else -math.expm1(shape * math.log(bound)) / shape
    while True:
        place = uniform(state) * (area + math.exp(-1.0))
        if place < area:
            drawn = math.exp(math.log1p(-shape * place) / shape)
            log_height = -drawn
        else:
            away = -math.log(1.0 - uniform(state)) / (1.0 - more / start)
            drawn = start + away
            log_height = (shape - 1.0) * math.log(drawn / start) - more * away / start
        if not math.log(1.0 - uniform(state)) >= log_height:  # also if it is NaN
            return drawn


@kernel
def draw_bounded_shares(alphas, rates, least, n_tries, state, row):
    """Fill in a row of normalised gamma variables given that no share is too small.

    Gamma variables with rate 1, divided by their sum, do not depend on this sum. So
    they have the same distribution given that the sum is at least its mean; then no
    gamma variable is below a bound. Gamma variables with these bounds are drawn until
    sum and shares are as required, at most `n_tries` times; then the row is NaN.
    """
    mean, highest, total = 0.0, 0.0, math.nan
    for j in range(row.shape[0]):
        mean += alphas[j]
        highest = max(highest, rates[j])
    for _ in range(n_tries):
        drawn, total, lowest = 0.0, 0.0, math.inf
        for j in range(row.shape[0]):
            bound = least * mean * rates[j] / highest
            variable = gamma_above(alphas[j], bound, state)
            drawn += variable
            row[j] = variable / rates[j]
            total += row[j]
            lowest = min(lowest, row[j])
        if drawn >= mean and lowest >= least * total:
            break
        total = math.nan
    for j in range(row.shape[0]):
        row[j] /= total


@kernel
def slice_pairs_of(row, alphas, pulls, least, n_pairs, state):
    """Update random pairs of entries with a fixed sum by slice sampling, in place.

    The density of `row` is proportional to the product of ``x ** (alpha - 1) *
    exp(-pull * x)`` over its entries, which stay at least `least`.
    """
    n = row.shape[0]
    for _ in range(n_pairs):
        i, j = int(n * uniform(state)), int((n - 1) * uniform(state))
        j += j >= i
        x, total, log_ratio = row[i], row[i] + row[j], math.log(1.0 - uniform(state))
        low, high, pull = least, total - least, pulls[i] - pulls[j]
        while high > low:
            drawn = low + (high - low) * uniform(state)
            gain = (alphas[i] - 1.0) * math.log(drawn / row[i])
            gain += (alphas[j] - 1.0) * math.log((total - drawn) / row[j])
            if gain - pull * (drawn - row[i]) >= log_ratio:
                x = drawn
                break
            if drawn < x:
                low = drawn
            else:
                high = drawn
        row[i], row[j] = x, total - x
