"""Exact draws of Pólya-Gamma variables of whole shape, by Devroye's series.

PG(1, c) is a quarter of the tilted Jacobi variable J*(1, c / 2), whose density is an
alternating series with two forms: one converges fast to the left of `CUT`, the other
to the right. A draw from the first term (inverse Gaussian on the left, exponential on
the right) is accepted as soon as the partial sums, which close in on the density from
both sides, decide: Polson, Scott and Windle (2013), Section 4.

Exponentials and normals are computed from uniforms: those of the generator are faster,
but take ten times as long to compile.
"""

import math

from . import kernel, part

CUT = 0.64
RIGHT_RATE = math.pi**2 / 8  # the density beyond the cut decays at this plus z^2 / 2


@part
def _left(z, rng):
    """Draw from the inverse Gaussian of mean 1 / z and shape 1, below `CUT`."""
    if z * CUT < 1.0:
        while True:
            first = -math.log(1.0 - rng.random())
            if first * first <= -2.0 * math.log(1.0 - rng.random()) / CUT:
                x = CUT / (1.0 + CUT * first) ** 2
                if rng.random() <= math.exp(-0.5 * z * z * x):
                    return x
    while True:
        square = -2.0 * math.log(1.0 - rng.random())
        square *= math.cos(math.pi * rng.random()) ** 2
        # The smaller root, in the form that loses no digits.
        x = 2.0 / (2.0 * z + square + math.sqrt(square * (square + 4.0 * z)))
        if rng.random() * (1.0 + z * x) > 1.0:
            x = 1.0 / (z * z * x)
        if x <= CUT:
            return x


@part
def _draw(z, right, rng):
    """Draw from J*(1, z)."""
    while True:
        if rng.random() < right:
            x = CUT - math.log(1.0 - rng.random()) / (RIGHT_RATE + 0.5 * z * z)
        else:
            x = _left(z, rng)
        rate = 2.0 / x if x <= CUT else 4.0 * RIGHT_RATE * x
        partial, sign, n = 0.5, 1.0, 0  # the series over a factor common to all terms
        level = rng.random() * partial
        while sign < 0.0 or level <= partial:
            n += 1
            sign = -sign
            partial += sign * (n + 0.5) * math.exp(-rate * n * (n + 1.0))
            if sign < 0.0 and level <= partial:
                return x


@kernel
def add_polya_gamma(counts, tilts, shares, rng, out):
    """Add to each `out[i]` a draw from PG(counts[i], tilts[i]).

    counts : (n,) of int64, the shapes, 0 for no draw; tilts : (n,), finite;
    shares : (n,), probability that the first term of the series draws beyond `CUT`.
    """
    for i in range(counts.shape[0]):
        z = 0.5 * abs(tilts[i])
        for _ in range(counts[i]):
            out[i] += 0.25 * _draw(z, shares[i], rng)
