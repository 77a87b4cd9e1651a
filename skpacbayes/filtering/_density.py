"""Densities of a model's transition: checked where given, found where noise is added.

Both rest on the change of variables from the noise `z` to the state ``transition(x, z,
t)``: its density is that of `z` over the absolute Jacobian determinant.
"""

import numpy as np

from .._base import warn_user

LOG_2_PI = np.log(2 * np.pi)
N_CHECKED = 8  # moves at which a density is compared
STEP = 1e-4  # of the noise, in a central difference
MOST_CHANGE = 1e-3  # of a log determinant at twice this step: it is not rounding
TOLERANCE = 1e-2  # in nats; the difference quotients err by far less
LOG_REACH, LOG_STEP = np.log(1e9), 0.1  # of distances at which a density is summed
LOG_FEWER, LOG_WIDER = np.log(1e4), 0.3  # the same in two dimensions
FAR = 1e3, 1e6, 1e9  # in units of the row, where a loss grows
MOST_COUNT = 400  # whole numbers over which it is
NEAR_ONE = 2e-2  # from one, for a density's integral


def check_transition(model, particles, time, past):
    """Refuse a `transition` whose answer is not a function of what it is given."""
    noise = np.random.default_rng(0).standard_normal((len(particles), model.n_noise))
    first, second = (
        model.transition(particles.copy(), noise.copy(), time, past).copy()
        for _ in range(2)
    )
    if not np.array_equal(first, second):
        raise ValueError(
            f"{model.name}.transition returned other states for the same x, z and t: "
            "it draws random numbers itself, or remembers its calls. It should use the "
            "noise z, n_noise standard normals for each particle."
        )


def check_logarithm(model, particles, row, time, past):
    """Warn of a `log_likelihood` that cannot be one of a row.

    Of one that returns densities values are zero or more and, as the row varies, have
    the integral or the sum 1 at every particle, which no logarithm of a likelihood has
    but by intent. Of a loss they grow without end as the row moves away on either side.
    Checked for rows of one feature, or of two, at the particles of the largest values.
    """
    if len(row) > 2 or np.isnan(row).any():
        return
    values = model.log_likelihood(particles, row, time, past)
    some = particles[np.argsort(values)[-N_CHECKED:]]

    def values_at(y):
        return model.log_likelihood(some.copy(), np.array(y), time, past)

    try:
        with np.errstate(all="ignore"):
            positive = values.min() >= 0 and values.max() > 0
            complaint = _complaint(values_at, row, positive)
    except Exception:  # of a user, at rows that never come
        return
    if complaint:
        warn_user(f"{model.name}.log_likelihood returns {complaint}")


def _complaint(values_at, row, positive):
    """Return what is wrong with a log-likelihood; None if nothing is."""
    scale = np.abs(row).max() or 1.0
    near, far, farther = (
        np.array([values_at(row + side * reach * scale) for side in (-1, 1)])
        for reach in FAR
    )
    if (far > near + 1).all() and (farther > far + 1).all():
        return (
            "larger values the farther a row is from the state: a loss? Return the "
            "logarithm of the density, whose sign is the opposite."
        )
    if positive and any(
        _sum_is_one(values_at, *each) for each in _grids_about(row, scale)
    ):
        return (
            "densities, not their logarithms: its values are at least 0 and, over all "
            "rows y, sum to 1 at each particle. Return the logarithm."
        )
    return None


def _grids_about(row, scale):
    """Yield rows and the widths of their cells: far ones first, and counts."""
    reach, step = (LOG_REACH, LOG_STEP) if len(row) == 1 else (LOG_FEWER, LOG_WIDER)
    steps = np.exp(np.arange(reach, -reach, -step)) * scale
    offsets, widths = np.append(steps, -steps), step * np.tile(steps, 2)
    if len(row) == 2:
        pairs = np.indices((len(offsets), len(offsets))).reshape(2, -1)
        yield row + offsets[pairs.T], widths[pairs].prod(axis=0)
        return
    yield row + offsets[:, None], widths
    if row[0] >= 0 and row[0] == np.floor(row[0]) and row[0] < MOST_COUNT / 4:
        for n in (2, MOST_COUNT):
            yield np.arange(n)[:, None], np.ones(n)


def _sum_is_one(values_at, rows, widths):
    """Whether values, never negative, sum to one at each particle."""
    total = 0.0
    for y, width in zip(rows, widths, strict=True):
        values = values_at(y)
        if not values.min() >= 0:
            return False
        total = total + width * values
        if (total > 1 + NEAR_ONE).any():
            return False
    return np.abs(total - 1).max() < NEAR_ONE


def check_log_transition(model, particles, time, past):
    """Refuse a `log_transition` that is not the density of `transition`.

    Checked up to a constant, at a few moves, where there are as many normals as states
    and the Jacobian is invertible; not for a model with ``one_to_one = False``, nor
    where the Jacobian depends on the step of the difference quotient: a move that is
    tiny beside the state is mostly rounding error.
    """
    if "log_transition" not in model.asks or not getattr(
        model.model, "one_to_one", True
    ):
        return
    n_states = particles.shape[1]
    if model.n_noise != n_states:
        return
    # spread over the cloud, whatever the order of the particles
    some = particles[np.linspace(0, len(particles) - 1, N_CHECKED).astype(int)]
    noise = np.random.default_rng(0).standard_normal((len(some), n_states))
    moved = model.transition(some.copy(), noise, time, past)

    def log_determinants_by(step):
        jacobian = np.empty((len(some), n_states, n_states))
        for j in range(n_states):
            nudge = np.zeros(n_states)
            nudge[j] = step
            higher = model.transition(some.copy(), noise + nudge, time, past)
            lower = model.transition(some.copy(), noise - nudge, time, past)
            jacobian[:, :, j] = (higher - lower) / (2 * step)
        return np.linalg.slogdet(jacobian)[1]  # -inf where it is singular

    log_determinants, others = log_determinants_by(STEP), log_determinants_by(2 * STEP)
    if not np.isfinite(log_determinants + others).all():
        return
    if np.abs(log_determinants - others).max() > MOST_CHANGE:
        return
    expected = -0.5 * np.square(noise).sum(axis=1) - log_determinants
    gaps = model.log_transition(some.copy(), moved, time, past) - expected
    error = np.ptp(gaps) if np.isfinite(gaps).all() else np.inf
    if error > TOLERANCE * max(1.0, np.abs(expected).max()):
        raise ValueError(
            f"{model.name}.log_transition is not the log density of "
            f"{model.name}.transition: at {len(some)} moves into row {time}, each row "
            f"of x to the row of x_next, they differ by {error:.3g} more at one than "
            "at another. (A transition that moves several noises to one state cannot "
            "be checked so: set one_to_one = False.)"
        )


def transition_density(model, particles, time, past):
    """Return the log density of moves, as a function; None where it is not known.

    Parameters
    ----------
    model : CalledModel
        The state-space model. Without `log_transition`, its noise must be added:
        ``transition(x, z, t) = f(x, t) + L(x, t) z`` with an invertible `L`.
    particles : ndarray of shape (n_particles, n_states)
        States at which this is checked.
    time : int
        Row into which they move.
    past : dict
        What the functions ask for.

    Returns
    -------
    density : callable or None
        ``density(x, x_next, t, past)``, from each row of `x` to that of `x_next`.
    """
    if "log_transition" in model.asks:
        return model.log_transition
    if model.n_noise != particles.shape[1]:
        return None
    some = particles[np.linspace(0, len(particles) - 1, N_CHECKED).astype(int)]
    noise = np.random.default_rng(0).standard_normal((len(some), model.n_noise))
    centers, factors = _additive_parts(model, some, time, past)
    moved = model.transition(some.copy(), noise, time, past) - centers
    added = np.matmul(factors, noise[:, :, None])[:, :, 0]
    size = np.abs(moved).max()
    rounding = 1e-12 * np.abs(centers).max()
    if np.abs(moved - added).max() > 1e-6 * size + rounding or not size > 0:
        return None
    if np.any(np.linalg.slogdet(factors)[0] == 0):
        return None

    def density(x, x_next, t, given):
        centers, factors = _additive_parts(model, x, t, given)
        noise = np.linalg.solve(factors, (x_next - centers)[:, :, None])[:, :, 0]
        return (
            -0.5 * (np.square(noise).sum(axis=1) + noise.shape[1] * LOG_2_PI)
            - np.linalg.slogdet(factors)[1]
        )

    return density


def _additive_parts(model, x, time, past):
    """Center f(x) and factor L(x) of a transition ``f(x) + L(x) z``."""
    n_noise = model.n_noise
    nothing = np.zeros((len(x), n_noise))
    centers = model.transition(x.copy(), nothing, time, past)
    factors = np.empty((*centers.shape, n_noise))
    for j in range(n_noise):
        unit = nothing.copy()
        unit[:, j] = 1.0
        factors[:, :, j] = model.transition(x.copy(), unit, time, past) - centers
    return centers, factors
