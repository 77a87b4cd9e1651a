"""Fewer neighbors for an observation at the edge of the simulations.

There the regression extrapolates: a curve that hardly matters among the neighbors moves
all draws. Draws without an adjustment are those of neighbors on one side. Lepski's rule
takes the largest number of neighbors whose means agree with those of each smaller
number, within their errors.
"""

import numpy as np

# Squared distance of an observation from its neighbors' mean, in their covariance, from
# which the regression extrapolates, over that on the surface of a uniform ball.
OUTSIDE = 1.0
OFF_CENTER = 0.1  # the same without an adjustment: means are wrong in proportion to it
FEWEST = 15  # least number of neighbors per coefficient in a comparison
DISAGREE = 2.0  # number of standard errors between means that disagree


def nearest_on_a_line(near, adjustment):
    """Return the nearest of some neighbors, as many as lie on a line.

    Parameters
    ----------
    near : Accepted
        The neighbors of an observation.
    adjustment : str or None
        The adjustment of the draws; None compares the means of the draws.

    Returns
    -------
    near : Accepted
        All of them unless the observation is outside of them, or off their center if
        there is no adjustment, and their mean there disagrees with those of the nearest
        half, quarter, eighth and so on.

    References
    ----------
    O. V. Lepski (1991), On a problem of adaptive estimation in Gaussian white noise,
    Theory of Probability and its Applications 35, 454-466.
    """
    n_directions = near.gaps.shape[1]
    least = OFF_CENTER if adjustment is None else OUTSIDE
    if near.squared_distance_of_mean() <= least * (n_directions + 2):
        return near
    candidates = [near]
    n_coefficients = 1 if adjustment is None else n_directions + 1
    while candidates[-1].n_neighbors >= 2 * FEWEST * n_coefficients:
        candidates.append(candidates[-1].nearest(candidates[-1].n_neighbors // 2))
    means, errors = zip(
        *(some.mean_with_error(adjustment) for some in candidates), strict=True
    )
    means, errors = np.array(means), np.array(errors)
    for place, some in enumerate(candidates):
        gaps = np.abs(means[place + 1 :] - means[place])
        if (gaps <= DISAGREE * errors[place + 1 :]).all():
            return some
    return candidates[-1]
