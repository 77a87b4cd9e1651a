"""Densities of a model's transition: checks, and derivation for additive noise.

Both rest on the change of variables from the noise `z` to the state ``transition(x, z,
t)``: its density is that of `z` over the absolute Jacobian determinant.
"""

import numpy as np

from .._base import warn_user

LOG_2_PI = np.log(2 * np.pi)
N_CHECKED = 8  # number of moves at which a density is checked
STEP = 1e-4  # of the noise, in a central difference
MOST_CHANGE = 1e-3  # largest change of a log determinant at twice this step
TOLERANCE = 1e-2  # in nats, far above the error of difference quotients
LOG_REACH, LOG_STEP = np.log(1e9), 0.1  # log grid for sums of a density
LOG_FEWER, LOG_WIDER = np.log(1e4), 0.3  # the same in two dimensions
FAR = 1e3, 1e6, 1e9  # in units of the row: distances at which a loss increases
MOST_COUNT = 400  # largest count in the sum of a density
ROUNDING = 1e-9  # of the largest value; sums on other devices may vary by less
NEAR_ONE = 2e-2  # tolerance of the integral of a density


def check_repeats(model, name, call):
    """Raise ValueError if a function of the model is not a function of its arguments.

    Parameters
    ----------
    model : CalledModel
        The state-space model.
    name : str
        Name of the function.
    call : callable
        Calls the function, each time with the same arguments.
    """
    first, second = (np.array(call()) for _ in range(2))
    size = np.abs(first[np.isfinite(first)]).max(initial=0.0)
    if not np.allclose(first, second, rtol=0, atol=ROUNDING * size, equal_nan=True):
        raise ValueError(
            f"{model.name}.{name} returned different values for the same arguments: it "
            "must not draw random numbers or depend on earlier calls. Random numbers "
            "come from z, n_noise standard normals for each particle."
        )


def check_initial(model, n_particles, past):
    """Raise ValueError if `initial` is not a function of its arguments."""
    noise = np.random.default_rng(0).standard_normal((n_particles, model.n_noise))
    check_repeats(model, "initial", lambda: model.initial(noise.copy(), past))


def check_transition(model, particles, time, past):
    """Raise ValueError if `transition` is not a function of its arguments."""
    noise = np.random.default_rng(0).standard_normal((len(particles), model.n_noise))
    check_repeats(
        model,
        "transition",
        lambda: model.transition(particles.copy(), noise.copy(), time, past),
    )


def check_observation(model, particles, n_features, time, past):
    """Raise ValueError if `observation` is not a function of its arguments."""
    check_repeats(
        model,
        "observation",
        lambda: model.observation(
            particles, n_features, time, past, np.random.default_rng(0)
        ),
    )


def check_log_likelihood(model, particles, row, time, past):
    """Raise ValueError if `log_likelihood` is not a function of its arguments."""
    check_repeats(
        model,
        "log_likelihood",
        lambda: model.log_likelihood(particles, row, time, past),
    )


def check_logarithm(model, particles, row, time, past):
    """Warn of a `log_likelihood` that cannot be one of a row.

    If it returns densities, the values are non-negative and integrate or sum to 1 over
    rows at every particle. If it returns a loss, the values increase without bound as
    the row moves away on either side. Checked for rows of one or two features, at the
    particles of the largest values.
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
    except Exception:  # an error of the model at rows that do not occur
        return
    if complaint:
        warn_user(f"{model.name}.log_likelihood returns {complaint}")


def _complaint(values_at, row, positive):
    """Return a sentence on what a log-likelihood seems to return, or None."""
    scale = np.abs(row).max() or 1.0
    near, far, farther = (
        np.array([values_at(row + side * reach * scale) for side in (-1, 1)])
        for reach in FAR
    )
    if (far > near + 1).all() and (farther > far + 1).all():
        return (
            "larger values for rows that are farther from the state, as a loss does. "
            "Return the logarithm of the density, which has the opposite sign."
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
    """Yield rows with the widths of their cells: far ones first, then counts."""
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
    """Return whether non-negative values sum to one at each particle."""
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
    """Raise ValueError if `log_transition` is not the density of `transition`.

    It is checked up to a constant, at a few moves, if there are as many normals as
    states and the Jacobian is invertible. It is not checked for a model with
    ``one_to_one = False``, or if the Jacobian depends on the step of the difference
    quotient, due to rounding errors.
    """
    if "log_transition" not in model.asks or not getattr(
        model.model, "one_to_one", True
    ):
        return
    n_states = particles.shape[1]
    if model.n_noise != n_states:
        return
    # spread over the cloud, independently of the order of the particles
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
        return np.linalg.slogdet(jacobian)[1]  # -inf if singular

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
            f"of x to the row of x_next, their difference varies by {error:.3g}. (If "
            "several values of the noise lead to one state, set one_to_one = False.)"
        )


def transition_density(model, particles, time, past):
    """Return the log density of moves, as a function; None if unknown.

    Parameters
    ----------
    model : CalledModel
        The state-space model. Without `log_transition`, its noise must be additive:
        ``transition(x, z, t) = f(x, t) + L(x, t) z`` with an invertible `L`.
    particles : ndarray of shape (n_particles, n_states)
        States at which additivity is checked.
    time : int
        Index of the row after the move.
    past : dict
        Further arguments of the functions.

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
    """Return f(x) and L(x) of a transition ``f(x) + L(x) z``."""
    n_noise = model.n_noise
    nothing = np.zeros((len(x), n_noise))
    centers = model.transition(x.copy(), nothing, time, past)
    factors = np.empty((*centers.shape, n_noise))
    for j in range(n_noise):
        unit = nothing.copy()
        unit[:, j] = 1.0
        factors[:, :, j] = model.transition(x.copy(), unit, time, past) - centers
    return centers, factors
