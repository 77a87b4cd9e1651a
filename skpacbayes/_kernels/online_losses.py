"""Expected losses of a score under a Gaussian posterior, and their implicit steps.

The score of a row is f ~ N(a, v); labels are -1 and 1.
"""

import math

import numpy as np

from . import kernel, part
from .aggregation import ABSOLUTE, HINGE, LOG, SQUARED
from .online_state import SMALLEST


def _normal_nodes(n_nodes):
    """Return nodes and weights of Gauss-Hermite quadrature, (2, n_nodes)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return np.stack([nodes, weights / weights.sum()])


# For standard deviations up to SMALL_DEVIATION few nodes are exact to 2e-11.
_NODES, _FEW_NODES = _normal_nodes(20), _normal_nodes(8)
SMALL_DEVIATION = 0.3


@kernel
def _normal_cdf(u):
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-u * 0.7071067811865476)


@kernel
def _normal_pdf(u):
    """Return the standard normal density."""
    return 0.3989422804014327 * math.exp(-0.5 * u * u)


@kernel
def _logistic_gradients(y, a, v):
    """Return `expected_gradients` of the logistic loss, by Gauss-Hermite quadrature."""
    sd = math.sqrt(v)
    slope = 0.0
    curvature = 0.0
    nodes = _NODES if sd > SMALL_DEVIATION else _FEW_NODES
    for k in range(nodes.shape[1]):
        p = 1.0 / (1.0 + math.exp(y * (a + sd * nodes[0, k])))
        slope += nodes[1, k] * p
        curvature += nodes[1, k] * p * (1.0 - p)
    return -y * slope, 0.5 * curvature


@kernel
def expected_gradients(loss, y, a, v, up=1.0, down=1.0):
    """Return the derivatives in a and v of the loss expected under f ~ N(a, v).

    up, down : slopes of the absolute loss where y is above f, and below.
    """
    if loss == SQUARED:
        return -2.0 * (y - a), 1.0
    if loss == LOG:
        return _logistic_gradients(y, a, v)
    margin = 1.0 - y * a if loss == HINGE else y - a
    if v > SMALLEST:
        sd = math.sqrt(v)
        cdf = _normal_cdf(margin / sd)
        pdf = _normal_pdf(margin / sd) / sd
    else:
        cdf = 1.0 if margin > 0.0 else 0.0
        if loss == ABSOLUTE and margin == 0.0:
            cdf = down / (up + down)
        pdf = 0.0
    if loss == HINGE:
        return -y * cdf, 0.5 * pdf
    return down - (up + down) * cdf, 0.5 * (up + down) * pdf


@kernel
def _solve_probit(target, slope, cdf, pdf):
    """Return Phi(q) at the root q of q + slope * Phi(q) = target.

    cdf, pdf : Phi(target), and its derivative. Halley's method from there; bisection if
    that leaves the bracket or does not converge.
    """
    low, high = target - slope, target
    if high < -9.0:  # Phi(q) < 2e-19
        return 0.0
    q = target
    step = 0.0
    last = math.inf
    for i in range(200):
        if i > 0:
            cdf = _normal_cdf(q)
            pdf = _normal_pdf(q)
        excess = q - target + slope * cdf
        if excess > 0.0:
            high = q
        else:
            low = q
        first = 1.0 + slope * pdf
        step = excess / (first + 0.5 * excess * q * slope * pdf / first)
        if not low <= q - step <= high or abs(step) > 0.5 * last:
            step = q - 0.5 * (low + high)
        last = abs(step)
        q -= step
        if abs(step) <= 1e-5 / (1.0 + abs(q)):
            break  # the next step would be of the order of its cube
    if slope > 1.0:
        return (target - q) / slope
    return cdf - step * pdf * (1.0 + 0.5 * step * q)


@kernel
def _solve_logistic(y, a, v, strength, slope, half_curvature):
    """Return dL/da at the root a' of a' = a - strength * v * dL(a', v)/da.

    slope, half_curvature : `_logistic_gradients` at a.
    """
    low, high = a - strength * v, a + strength * v
    point = a
    step = 0.0
    last = math.inf
    for i in range(200):
        if i > 0:
            slope, half_curvature = _logistic_gradients(y, point, v)
        excess = point - a + strength * v * slope
        if excess > 0.0:
            high = point
        else:
            low = point
        step = excess / (1.0 + 2.0 * strength * v * half_curvature)
        if not low <= point - step <= high or abs(step) > 0.5 * last:
            step = point - 0.5 * (low + high)
        last = abs(step)
        point -= step
        if abs(step) <= 1e-6 * (1.0 + abs(point)):
            break  # the next step would be of the order of its square
    if strength * v > 1.0:
        return (a - point) / (strength * v)
    return slope - 2.0 * half_curvature * step


@part
def implicit_logistic(y, a, v, strength):
    """Return `implicit_gradients` of the logistic loss."""
    da, dv = _logistic_gradients(y, a, v)
    return _solve_logistic(y, a, v, strength, da, dv), dv


@kernel
def implicit_gradients(loss, y, a, v, strength, up=1.0, down=1.0):
    """Return `expected_gradients`, that in a taken after the step of the mean.

    The step ends at the root a' of a' = a - strength * v * dL(a', v)/da.
    """
    if loss == SQUARED:
        return -2.0 * (y - a) / (1.0 + 2.0 * strength * v), 1.0
    if loss == LOG:
        return implicit_logistic(y, a, v, strength)
    da, dv = expected_gradients(loss, y, a, v, up, down)
    sd = math.sqrt(v)
    if loss == HINGE:
        margin, pdf = (1.0 - y * a) / sd, 2.0 * sd * dv
        return -y * _solve_probit(margin, strength * sd, -y * da, pdf), dv
    target, slope = (y - a) / sd + down * strength * sd, (up + down) * strength * sd
    cdf = _solve_probit(target, slope, _normal_cdf(target), _normal_pdf(target))
    return down - (up + down) * cdf, dv
