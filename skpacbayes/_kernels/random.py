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
