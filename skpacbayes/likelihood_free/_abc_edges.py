"""Fewer neighbors for an observation at the edge of the simulations.

There the regression extrapolates: a curve that hardly matters among the neighbors moves
all draws, and their spread is that of the whole neighborhood, or an exponential of the
distance. Draws without an adjustment are those of neighbors on one side. Lepski's rule
takes the largest number of neighbors whose means and spreads agree with those of each
smaller number, within their errors.
"""

import numpy as np

# Squared distance of an observation from its neighbors' mean, in their covariance, from
# which the regression extrapolates, over that on the surface of a uniform ball.
OUTSIDE = 1.0
# Squared distance per direction of an observation at the end of a density, whose
# neighbors are on one side. In more than two directions, observations in the middle of
# all simulations are as far, and spreads that are compared make answers worse.
AT_THE_EDGE = 1.5
FEW_DIRECTIONS = 2
OFF_CENTER = 0.1  # the same without an adjustment: means are wrong in proportion to it
FEWEST = 15  # least number of neighbors per coefficient in a comparison
MANY = 60  # the same of spreads, and of means of an observation within OUTSIDE
DISAGREE = 2.0  # number of standard errors between means that disagree
SPREADS_DISAGREE = 3.0  # the same for the logs of spreads


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
        All of them unless the observation is at their edge, or off their center if
        there is no adjustment, and their mean there, or in one or two directions the
        spread of the adjusted draws, disagrees with those of the nearest half, quarter,
        eighth and so on.

    References
    ----------
    O. V. Lepski (1991), On a problem of adaptive estimation in Gaussian white noise,
    Theory of Probability and its Applications 35, 454-466.
    """
    n_directions = near.gaps.shape[1]
    few = adjustment is not None and n_directions <= FEW_DIRECTIONS
    surface = OUTSIDE * (n_directions + 2)
    least = AT_THE_EDGE * n_directions if few else surface
    if adjustment is None:
        least = OFF_CENTER * (n_directions + 2)
    distance = near.squared_distance_of_mean()
    if distance <= least:
        return near
    candidates = [near]
    n_coefficients = 1 if adjustment is None else n_directions + 1
    fewest = (FEWEST if distance > surface or not few else MANY) * n_coefficients
    while candidates[-1].n_neighbors >= 2 * fewest:
        candidates.append(candidates[-1].nearest(candidates[-1].n_neighbors // 2))
    spreads = [
        some.log_spread_with_error(adjustment)
        for some in candidates
        if few and some.n_neighbors >= MANY * n_coefficients
    ]
    means, errors = zip(
        *(some.mean_with_error(adjustment) for some in candidates), strict=True
    )
    means, errors = np.array(means), np.array(errors)
    for place, some in enumerate(candidates):
        gaps = np.abs(means[place + 1 :] - means[place])
        agree = (gaps <= DISAGREE * errors[place + 1 :]).all()
        if agree and _spreads_agree(spreads[place:]):
            return some
    return candidates[-1]


def _spreads_agree(spreads):
    """Return whether the first of some logs of spreads agrees with all others.

    spreads : list of pairs, each a log of the spread of each parameter and its error.
    """
    return all(
        (np.abs(spread - spreads[0][0]) <= SPREADS_DISAGREE * error).all()
        for spread, error in spreads[1:]
    )
