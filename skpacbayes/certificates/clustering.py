"""Sparsity regret bounds of online clustering."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, gammaln, logsumexp

from .._compat import Interval, StrOptions
from .._validation import as_numbers
from ._constraints import COUNT, NOT_NEGATIVE, POSITIVE, as_losses, checked


@checked(
    {
        "oracle_losses": ["array-like"],
        "centers": ["array-like"],
        "max_clusters": COUNT,
        "n_samples": POSITIVE,
        "max_norm": NOT_NEGATIVE,
        "radius": POSITIVE,
        "last_temperature": POSITIVE,
        "temperature_sum": NOT_NEGATIVE,
        "cluster_penalty": [Interval(Real, None, None, closed="neither")],
        "ordered": ["boolean"],
        "prior": [StrOptions({"uniform", "student"})],
        "prior_scale": POSITIVE,
        "loss": [StrOptions({"squared_euclidean", "manhattan"})],
    }
)
def clustering_regret_terms(
    oracle_losses,
    centers,
    *,
    max_clusters,
    n_samples,
    max_norm,
    radius,
    last_temperature,
    temperature_sum,
    cluster_penalty=1.0,
    ordered=True,
    prior="uniform",
    prior_scale=1.0,
    loss="squared_euclidean",
):
    r"""Sparsity regret bound of online clustering, term by term.

    Bounds the expected cumulative loss of the forecaster that draws its centers for
    row t from the Gibbs quasi-posterior of rows 1 to t - 1 (Algorithm 2 of [1]_; at a
    constant inverse temperature, Algorithm 1).

    Parameters
    ----------
    oracle_losses : array-like of shape (n_candidates,)
        Cumulative loss of the rows at the best centers known with 1, 2, ...
        centers. Any centers give a valid bound, better ones a smaller bound.
    centers : sequence of arrays of shape (k, n_features), k = 1, ..., n_candidates
        The centers that have these losses, in the coordinates of the prior: the
        balls that carry it are centered at the origin.
    max_clusters : int
        Largest number of centers the prior allows; at least `n_candidates`.
    n_samples : float
        Number T of rows, or their weight.
    max_norm : float
        Largest Euclidean norm of the rows, in the coordinates of the prior.
    radius : float
        R, half the radius of the ball that carries the prior of each center.
    last_temperature : float
        Inverse temperature :math:`\lambda_T` after the last row.
    temperature_sum : float
        :math:`\lambda_0 + \dots + \lambda_{T-1}`, the inverse temperatures in the
        quadratic terms of rows 1, ..., T. They may not increase with t.
    cluster_penalty : float, default=1.0
        :math:`\eta` in the prior of the number k of centers.
    ordered : bool, default=True
        True for :math:`q(k) \propto e^{-\eta k}`, the prior of the paper; False
        for :math:`q(k) \propto e^{-\eta k} / k!`, which does not count the orders
        of the same centers as different.
    prior : {"uniform", "student"}, default="uniform"
        Prior of each center: uniform on the ball, or Student with 3 degrees of
        freedom cut to the ball.
    prior_scale : float, default=1.0
        :math:`\tau_0`, the scale of the Student prior.
    loss : {"squared_euclidean", "manhattan"}, default="squared_euclidean"
        Distance of a row to its nearest center. The paper proves nothing for
        `"manhattan"`; see Notes.

    Returns
    -------
    terms : dict of str to float
        Their sum is the bound; all in the unit of the loss. `oracle_loss`,
        `displacement` (price of moving the centers within small balls),
        `centers` (information of these balls against the prior), `n_clusters`
        (information of their number) and `variance` (price of drawing the forecast
        at random, which usually dwarfs the others).
    n_clusters : int
        Number of centers at which the bound is attained.

    Raises
    ------
    ValueError
        If an argument is not in its range; if `centers` does not hold 1, 2, ... centers
        of the same number of features, one array for each loss, or holds more arrays
        than `max_clusters`.

    Notes
    -----
    Theorem 2 of [1]_ bounds the expected cumulative loss, for every :math:`\rho`, by
    :math:`E_\rho \sum_t \ell(c, x_t) + K(\rho, \pi) / \lambda_T + \frac{C_1^2}{2}
    \sum_t \lambda_{t-1}`, where :math:`C_1 = (2R + \max_t |x_t|_2)^2` bounds the
    loss on the support of the prior. Take :math:`\rho` uniform on the product of
    balls of radius :math:`\xi` around centers :math:`m_1, \dots, m_k`. Then

    - the loss grows by at most :math:`T \xi^2 d / (d + 2)`;
    - for the uniform prior :math:`K(\rho_k, \pi_k) = d k \log(2R / \xi)`;
    - for the Student prior, by Jensen's inequality, :math:`K(\rho_k, \pi_k) \le
      k \log(C_{2R, \tau_0} / |B(\xi)|) + \frac{3 + d}{2} \sum_j \log(1 +
      (|m_j|^2 + \xi^2 d / (d + 2)) / (6 \tau_0^2))`, the normaliser
      :math:`C_{2R, \tau_0}` taken exactly.

    The total is convex in :math:`\log \xi` and minimised over all :math:`\xi` whose
    balls stay within the prior's. This is at most Corollaries 1 to 3 (uniform), which
    choose :math:`\xi^2 = (d + 2) / (2 \lambda T)`, with equality for one center, and at
    most Corollaries 4 to 6 (Student) at every proposal scale :math:`\tau`, since
    :math:`1 + (|m|^2 + \xi^2) / (6 \tau_0^2) \le (1 + \xi^2 / (6 \tau^2)) (1 + \tau /
    \tau_0 + |m| / (\sqrt{6} \tau_0))^2`. The information :math:`-\log q(k)` is exact
    where the paper bounds it by :math:`\eta (k - 1) + \log p`. In the paper as printed,
    Corollary 3 sets :math:`\lambda_0 = 1` where its proof needs :math:`\lambda_0 =
    \lambda_1`, and Corollaries 5 and 6 lose a factor :math:`k d` under a square root.

    The Manhattan loss, and the prior that divides by :math:`k!`, are not in the paper
    but follow from the same theorem: then :math:`C_1 = \sqrt{d} (2R + \max_t |x_t|_2)`,
    and the loss grows by at most T times the mean Manhattan norm of a uniform point of
    the ball.

    The bound holds for exact draws from the quasi-posterior and for inverse
    temperatures and a radius that do not depend on the data.

    References
    ----------
    .. [1] Li, L., Guedj, B. and Loustau, S. (2016). PAC-Bayesian Online Clustering.
       hal-01264233, Theorem 2 and Corollaries 1 to 6.

    Examples
    --------
    Two tight groups on a line, a hundred thousand rows, and the schedule of Corollary
    3. Two centers pay for themselves, a third does not.

    >>> import numpy as np
    >>> n_samples, radius, n_features = 100_000, 1.0, 1
    >>> steps = np.maximum(np.arange(n_samples + 1), 1)
    >>> temperatures = (n_features + 2) / (2 * radius**2 * np.sqrt(steps))
    >>> terms, n_clusters = clustering_regret_terms(
    ...     oracle_losses=[81_000, 1_000, 900],
    ...     centers=[[[0.0]], [[-0.9], [0.9]], [[-0.9], [0.8], [0.95]]],
    ...     max_clusters=20,
    ...     n_samples=n_samples,
    ...     max_norm=1.0,
    ...     radius=radius,
    ...     last_temperature=temperatures[-1],
    ...     temperature_sum=temperatures[:-1].sum(),
    ... )
    >>> n_clusters
    2
    >>> for name, value in terms.items():
    ...     print(f"{name:12} {value:6.0f}")
    oracle_loss    1000
    displacement    211
    centers        1360
    n_clusters      308
    variance      38394
    """
    oracle_losses = as_losses("oracle_losses", oracle_losses)
    centers = [as_numbers("centers", candidate) for candidate in centers]
    shapes = [candidate.shape for candidate in centers]
    if any(len(shape) != 2 or shape[1:] != shapes[0][1:] for shape in shapes):
        raise ValueError(
            "centers should hold arrays of shape (k, n_features), got arrays of shapes "
            f"{shapes}."
        )
    if [len(c) for c in centers] != [k + 1 for k in range(len(oracle_losses))]:
        raise ValueError(
            f"centers must hold 1, 2, ..., {len(oracle_losses)} centers, one array "
            f"for each of oracle_losses; they hold {[len(c) for c in centers]}."
        )
    if len(centers) > max_clusters:
        raise ValueError(
            f"max_clusters={max_clusters} is smaller than {len(centers)}, the number "
            "of candidates in centers."
        )
    center_prior = _center_prior(prior, prior_scale, radius, centers[0].shape[1])
    information = _cluster_number_information(max_clusters, cluster_penalty, ordered)
    candidates = []
    for k, (oracle_loss, candidate) in enumerate(
        zip(oracle_losses, centers, strict=True)
    ):
        displacement, divergence = _cheapest_balls(
            candidate, 2 * radius, last_temperature, n_samples, center_prior, loss
        )
        candidates.append(
            {
                "oracle_loss": float(oracle_loss),
                "displacement": displacement,
                "centers": divergence / last_temperature,
                "n_clusters": float(information[k]) / last_temperature,
            }
        )
    best = min(range(len(candidates)), key=lambda k: sum(candidates[k].values()))
    largest = largest_loss(radius, max_norm, centers[0].shape[1], loss == "manhattan")
    variance = float(temperature_sum * largest * largest / 2)
    return candidates[best] | {"variance": variance}, best + 1


def largest_loss(radius, max_norm, n_features, manhattan):
    """Return the largest loss of a row at a center, C_1 of the notes."""
    distance = 2 * radius + max_norm
    return distance * math.sqrt(n_features) if manhattan else distance * distance


class _CenterPrior(NamedTuple):
    """Density exp(-log_normaliser) (1 + |c|^2 / width)^-tail on a ball of radius 2R."""

    log_normaliser: float
    width: float
    tail: float


def _log_ball_volume(n_features, radius):
    """Return the logarithm of the volume of a Euclidean ball."""
    half = n_features / 2
    unit = half * math.log(math.pi) - gammaln(half + 1)
    return float(unit + n_features * math.log(radius))


def _center_prior(prior, prior_scale, radius, n_features):
    """Return the prior of one center, (7) or (22) of Li, Guedj and Loustau (2016)."""
    log_ball = _log_ball_volume(n_features, 2 * radius)
    if prior == "uniform":
        return _CenterPrior(log_ball, 1.0, 0.0)
    width, tail = 6 * prior_scale**2, (3 + n_features) / 2
    half = n_features / 2
    log_whole = half * math.log(math.pi * width) + gammaln(1.5) - gammaln(tail)
    share = 1 / (1 + width / (2 * radius) ** 2)
    mass = betainc(half, 1.5, share)  # of the Student within the ball
    # Where the mass underflows, the kernel's maximum, 1, bounds its integral.
    log_cut = float(log_whole) + math.log(max(mass, np.finfo(float).tiny))
    return _CenterPrior(min(log_cut, log_ball), width, tail)


def _cluster_number_information(max_clusters, cluster_penalty, ordered):
    """Return -log q(k) for k = 1, ..., max_clusters, (6) of the same paper."""
    n_clusters = np.arange(1, max_clusters + 1)
    energy = cluster_penalty * n_clusters
    if not ordered:
        energy = energy + gammaln(n_clusters + 1)
    return energy + logsumexp(-energy)


def _cheapest_balls(centers, support, temperature, n_samples, prior, loss):
    """Return what the best balls around `centers` cost: in loss, and in divergence.

    The sum of temperature * loss and divergence is convex in the logarithm of the
    radius of the balls: its slope increases, and changes sign between the two ends.
    """
    n_clusters, n_features = centers.shape
    squares = (centers**2).sum(axis=1)
    room = support - math.sqrt(squares.max())
    if room <= 0:
        return 0.0, math.inf
    square_moment = n_features / (n_features + 2)  # of a uniform point of the unit ball
    if loss == "manhattan":
        power, moment = 1, n_features**2 / (n_features + 1) / math.sqrt(math.pi)
        moment *= math.exp(gammaln(n_features / 2) - gammaln((n_features + 1) / 2))
    else:
        power, moment = 2, square_moment
    gain = n_features * n_clusters  # of divergence, per unit of the logarithm
    price = power * moment * temperature * n_samples
    spread = square_moment / (prior.width + squares)

    def slope(log_radius):
        share = spread / (spread + math.exp(-2 * log_radius))
        loss_slope = price * math.exp(power * log_radius)
        return loss_slope + 2 * prior.tail * share.sum() - gain

    log_radius = math.log(gain / price) / power
    if prior.tail > 0:
        low = math.log(gain / (4 * prior.tail * spread.sum())) / 2
        low = min(low, math.log(gain / (2 * price)) / power)
        # Wider by 1 at both ends, where rounding cannot change the sign of the slope.
        log_radius = brentq(slope, low - 1.0, log_radius + 1.0)
    log_radius = min(log_radius, math.log(room))
    ball = math.exp(log_radius)
    tails = np.log1p((squares + square_moment * ball**2) / prior.width).sum()
    divergence = prior.log_normaliser - _log_ball_volume(n_features, ball)
    divergence = n_clusters * divergence + prior.tail * float(tails)
    return n_samples * moment * ball**power, divergence
