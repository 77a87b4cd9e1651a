"""Lengths in units of powers of two: exact, and squares stay within floats."""

import math

import numpy as np


def exponent_of(values):
    """Power of two next above the largest absolute value; 0 if all are zero."""
    largest = np.abs(values).max(initial=0.0)
    return min(max(math.frexp(largest)[1], -1000), 1000) if largest > 0 else 0


def scaled(value, exponent):
    """`value` times 2^`exponent`: infinity or zero where floats end."""
    if isinstance(exponent, int) and -500 < exponent < 500:
        return value * 2.0**exponent  # exact, and faster than ldexp
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(value, exponent)
