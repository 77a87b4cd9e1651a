"""How far the descendants of a few particles cover the distribution of the state.

If a cloud descends from a few particles, it consists of as many clumps, one for each of
them. The noise of the transition spreads a clump. In a direction in which it hardly
does, as for a constant or a season, the clumps are points, and the values between them
are lost: later rows then weight a few wrong values. In one direction a few points are
enough, in many they are not. What is compared is the volume of the clumps with that of
the cloud, so the units and the coordinates of the state do not matter. Clumps that the
noise spreads in all directions alike may be the modes of the distribution: directions
are compared with the one in which clumps are widest.
"""

import math

import numpy as np

LEAST_SHARE = 0.1  # of the variance of a direction: points count as such clumps
ROUNDING, REDUNDANT = 1e-12, 1e-8  # shares of the size of a column, of the variance


def uncovered(particles, weights, roots):
    """Return the log of the volume of a cloud over that of its clumps, in nats.

    Both are in units of the widest direction of the clumps, as a share of the cloud.

    Parameters
    ----------
    particles : ndarray of shape (n_particles, n_states)
        The cloud.
    weights : ndarray of shape (n_particles,)
        Weights, which sum to 1.
    roots : ndarray of int of shape (n_particles,)
        The particle from which each one descends: those of a clump have the same.

    Returns
    -------
    excess : float
        0.0 if the clumps together have at least the volume of the cloud.
    """
    shares = np.bincount(roots, weights, minlength=len(roots))
    log_number = -math.log(shares @ shares)  # the effective number of clumps
    most = -0.5 * math.log(LEAST_SHARE)  # nats of a direction
    if particles.shape[1] * most <= log_number or not np.isfinite(particles).all():
        return 0.0
    # By powers of two, as squares of large and small columns are not representable.
    particles = np.ldexp(particles, -np.frexp(np.abs(particles).max(axis=0))[1])
    gaps = particles - weights @ particles
    deviations = np.sqrt(weights @ np.square(gaps))
    vary = deviations > ROUNDING * np.abs(particles).max(axis=0)
    gaps = gaps[:, vary] / deviations[vary]
    sums = [np.bincount(roots, weights * gap, minlength=len(roots)) for gap in gaps.T]
    if not sums:
        return 0.0
    means = np.array(sums).T / np.where(shares > 0.0, shares, 1.0)[:, None]
    sizes, directions = np.linalg.eigh((gaps.T * weights) @ gaps)
    kept = sizes > REDUNDANT
    unit = directions[:, kept] / np.sqrt(sizes[kept])
    gaps -= means[roots]
    within = np.linalg.eigvalsh(unit.T @ ((gaps.T * weights) @ gaps) @ unit)
    widest = within[-1] if within[-1] > REDUNDANT else 1.0
    logs = np.log(np.clip(within / widest, LEAST_SHARE, 1.0))
    return max(0.0, float(-0.5 * logs.sum() - log_number))
