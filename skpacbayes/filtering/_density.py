"""Densities of a model's transition: checks, and derivation for additive noise.

Both rest on the change of variables from the noise `z` to the state ``transition(x, z,
t)``: its density is that of `z` over the absolute Jacobian determinant.
"""

import numpy as np

from .._base import warn_user

LOG_2_PI = np.log(2 * np.pi)
N_CHECKED = 8  # number of moves at which a density is checked
SMALL_AND_LARGE = 0.1, 5.0  # noise that gives different rows, if they depend on it
STEP = 1e-4  # of the noise, in a central difference
MOST_CHANGE = 1e-3  # largest change of a log determinant at twice this step
TOLERANCE = 1e-2  # in nats, far above the error of difference quotients
NOT_ADDED = 0.01  # largest share of states to which noise is not added, as at a bound
LOG_CLOSE = np.log(1e-6)  # of a determinant of unit rows, if it may be that of rounding
LOG_REACH, LOG_STEP = np.log(1e9), 0.1  # log grid for sums of a density
LOG_FEWER, LOG_WIDER = np.log(1e4), 0.3  # the same in two dimensions
# Distances at which a loss increases, in units of the row: so many that the values of a
# function of an angle, which goes up and down with the distance, are in no order.
FAR = 10.0 ** np.arange(3, 10)
MOST_COUNT = 400  # largest count in the sum of a density
ROUNDING = 1e-9  # of the largest value; sums on other devices may vary by less
NEAR_ONE = 2e-2  # tolerance of the integral of a density


def check_rows(model, name, call, *arrays):
    """Raise ValueError if a function of the model mixes particles, or does not repeat.

    Each row of its result may depend on the same row of the arrays only. The function
    is called again with half of the rows, twice each, in the opposite order.

    Parameters
    ----------
    model : CalledModel
        The state-space model.
    name : str
        Name of the function.
    call : callable
        Calls the function with copies of the arrays.
    *arrays : ndarray of shape (n_particles, ...) or None
        The arguments that have a row for each particle. Without any, particles may
        depend on each other.
    """

    def call_with(places):
        taken = (a if a is None else a[places] for a in arrays)
        return np.array(call(*taken))

    def are_equal(some, others):
        return np.allclose(some, others, rtol=0, atol=ROUNDING * size, equal_nan=True)

    every = np.arange(max((len(a) for a in arrays if a is not None), default=0))
    mixed = every[::-1] // 2  # half of the particles, in the opposite order
    first = call_with(every)
    size = np.abs(first[np.isfinite(first)]).max(initial=0.0)
    second = call_with(mixed)
    if are_equal(second, first[mixed] if arrays else first):
        return
    if arrays and are_equal(call_with(every), first):
        raise ValueError(
            f"{model.name}.{name} returned different values for a particle when the "
            "other particles were different: each row of its result may depend on the "
            "same row of its arguments only, as z[:, 0] does, but not z[0] or z.mean()."
        )
    raise ValueError(
        f"{model.name}.{name} returned different values for the same arguments: it "
        "must not draw random numbers or depend on earlier calls. Random numbers "
        "come from z, n_noise standard normals for each particle."
    )


def check_initial(model, n_particles, past):
    """Raise ValueError if `initial` is not a function of its arguments.

    It may place particles by their number, as on a grid.
    """
    noise = np.random.default_rng(0).standard_normal((n_particles, model.n_noise))
    check_rows(model, "initial", lambda: model.initial(noise.copy(), past))


def check_transition(model, particles, time, past):
    """Raise ValueError if `transition` is not a function of each particle."""
    noise = np.random.default_rng(0).standard_normal((len(particles), model.n_noise))
    check_rows(
        model,
        "transition",
        lambda x, z: model.transition(x, z, time, past),
        *(particles, noise),
    )


def check_observation(model, particles, n_features, time, past):
    """Raise ValueError if `observation` is not a function of each particle."""
    noise = model.noise_of_rows(len(particles), n_features, np.random.default_rng(0))
    has_rows = np.ndim(past["y_prev"]) == 2  # a row of each particle

    def call(x, z, x_prev, y_prev):
        given = {**past, "x_prev": x_prev}
        if has_rows:
            given["y_prev"] = y_prev
        return model.observation(x, z, n_features, time, given)

    check_rows(
        model,
        "observation",
        call,
        *(particles, noise, past["x_prev"], past["y_prev"] if has_rows else None),
    )


def check_density_of_rows(model, particles, n_features, time, past):
    """Warn if `observation` does not draw rows by the density of `log_likelihood`.

    It is checked up to a constant, at a few rows, if there are as many normals as
    features, and rows seem to be a smooth one-to-one function of the normals.
    """
    places = np.repeat(np.linspace(0, len(particles) - 1, N_CHECKED).astype(int), 2)
    noise = model.noise_of_rows(len(places), n_features, np.random.default_rng(0))
    if noise.shape[1] != n_features:
        return
    some, given = particles[places], {**past, "x_prev": past["x_prev"][places]}
    if np.ndim(past["y_prev"]) == 2:
        given["y_prev"] = past["y_prev"][places]

    def rows_by(z):
        return model.observation(some.copy(), z, n_features, time, given)

    if np.array_equal(*(rows_by(np.full(noise.shape, z)) for z in SMALL_AND_LARGE)):
        warn_user(
            f"{model.name}.observation returns the same rows for different noise z: "
            "forecasts have the spread of the states only. Add noise by z, as many "
            "standard normals as features or n_noise_observation."
        )
        return
    drawn = rows_by(noise)
    expected, signs = _densities_of(rows_by, noise)
    if expected is None or abs(signs.sum()) < len(signs):
        return
    found = np.empty(len(places))
    for i, row in enumerate(drawn):
        each = {**past, "x_prev": given["x_prev"][i : i + 1]}
        if np.ndim(given["y_prev"]) == 2:
            each["y_prev"] = given["y_prev"][i]
        found[i] = model.log_likelihood(some[i : i + 1], row, time, each)[0]
    gaps = found - expected
    error = np.ptp(gaps) if np.isfinite(gaps).all() else np.inf
    if error > TOLERANCE * max(1.0, np.abs(expected).max()):
        warn_user(
            f"{model.name}.observation does not draw rows by the density of "
            f"{model.name}.log_likelihood: at {len(drawn)} rows drawn, the difference "
            f"of the log densities varies by {error:.3g}. Forecasts use observation, "
            "the filter log_likelihood."
        )


def check_log_likelihood(model, particles, row, time, past):
    """Raise ValueError if `log_likelihood` is not a function of each particle."""
    check_rows(
        model,
        "log_likelihood",
        lambda x, x_prev: model.log_likelihood(
            x, row, time, {**past, "x_prev": x_prev}
        ),
        *(particles, past["x_prev"]),
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
    if all(_increases(values_at, row, side * scale) for side in (-1, 1)):
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


def _increases(values_at, row, scale):
    """Return whether values at every particle increase without bound along a row."""
    values = np.array([values_at(row + scale * reach) for reach in FAR])
    return (values[1:] > values[:-1] + 1).all()


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

    expected, _ = _densities_of(
        lambda z: model.transition(some.copy(), z, time, past), noise
    )
    if expected is None:
        return
    gaps = model.log_transition(some.copy(), moved, time, past) - expected
    error = np.ptp(gaps) if np.isfinite(gaps).all() else np.inf
    if error > TOLERANCE * max(1.0, np.abs(expected).max()):
        raise ValueError(
            f"{model.name}.log_transition is not the log density of "
            f"{model.name}.transition: at {len(some)} moves into row {time}, each row "
            f"of x to the row of x_next, their difference varies by {error:.3g}. (If "
            "several values of the noise lead to one state, set one_to_one = False.)"
        )


def _densities_of(call, noise):
    """Return log densities of `call` of standard normal noise, by change of variables.

    Parameters
    ----------
    call : callable
        Maps noise to values, each of shape (n, k), row by row.
    noise : ndarray of shape (n, k)
        The noise.

    Returns
    -------
    log_densities : ndarray of shape (n,) or None
        None if the Jacobian is singular, or depends on the step of the difference
        quotient, due to rounding errors.
    signs : ndarray of shape (n,)
        Signs of the Jacobian determinants.
    """

    def log_determinants_by(step):
        jacobian = np.empty((*noise.shape, noise.shape[1]))
        for j in range(noise.shape[1]):
            nudge = np.zeros(noise.shape[1])
            nudge[j] = step
            jacobian[:, :, j] = (call(noise + nudge) - call(noise - nudge)) / (2 * step)
        return np.linalg.slogdet(jacobian)  # -inf if singular

    (signs, found), (_, others) = map(log_determinants_by, (STEP, 2 * STEP))
    if not np.isfinite(found + others).all():
        return None, signs
    if np.abs(found - others).max() > MOST_CHANGE:
        return None, signs
    normals = np.square(noise).sum(axis=1) + noise.shape[1] * LOG_2_PI
    return -0.5 * normals - found, signs


def transition_density(model, particles, time, past):
    """Return the log density of moves into a row, as a function; None if unknown.

    Parameters
    ----------
    model : CalledModel
        The state-space model. Without `log_transition`, its noise must be additive:
        ``transition(x, z, t) = f(x, t) + L(x, t) z`` with an invertible `L`.
    particles : ndarray of shape (n_particles, n_states)
        States before the move, at which additivity is checked: a share of them,
        `NOT_ADDED`, may move otherwise.
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
    noise = np.random.default_rng(0).standard_normal((len(particles), model.n_noise))
    centers, factors = _additive_parts(model, particles, time, past)
    moved = model.transition(particles.copy(), noise, time, past) - centers
    added = np.matmul(factors, noise[:, :, None])[:, :, 0]
    size = np.abs(moved).max()
    rounding = 1e-12 * np.abs(centers).max()
    others = (np.abs(moved - added) > 1e-6 * size + rounding).any(axis=1)
    others |= _are_singular(factors, centers)
    if others.mean() > NOT_ADDED or not size > 0:
        return None

    def density(x, x_next, t, given):
        centers, factors = _additive_parts(model, x, t, given)
        signs, log_sizes = np.linalg.slogdet(factors)
        factors[signs == 0] = np.eye(model.n_noise)
        noise = np.linalg.solve(factors, (x_next - centers)[:, :, None])[:, :, 0]
        squares = np.square(noise).sum(axis=1) + noise.shape[1] * LOG_2_PI
        return np.where(signs == 0, -np.inf, -0.5 * squares - log_sizes)

    return density


def are_added(model, x, x_next, time, past):
    """Return which moves from rows of `x` to those of `x_next` add noise, (n,).

    The noise that would be added is that of no other move, such as a rare jump, if the
    transition makes the same move by it.
    """
    centers, factors = _additive_parts(model, x, time, past)
    singular = np.linalg.slogdet(factors)[0] == 0
    factors[singular] = np.eye(model.n_noise)
    steps = x_next - centers
    noise = np.linalg.solve(factors, steps[:, :, None])[:, :, 0]
    gaps = np.abs(model.transition(x.copy(), noise, time, past) - x_next)
    rounding = 1e-9 * np.abs(centers).max()
    return singular | (gaps <= 1e-6 * np.abs(steps).max() + rounding).all(axis=1)


def is_singular(model, particles, time, past):
    """Return whether single normals move states in fewer directions than states have.

    The model has as many normals as states.
    """
    centers, factors = _additive_parts(model, particles, time, past)
    return _are_singular(factors, centers).mean() > NOT_ADDED


def _are_singular(factors, centers):
    """Return which factors, (n, d, d), are singular but for errors of rounding.

    A factor is a difference from a center, (n, d), and has rounding errors of its size.
    """
    signs, log_sizes = np.linalg.slogdet(factors)
    singular, norms = signs == 0, np.linalg.norm(factors, axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        close = log_sizes - np.log(norms).sum(axis=1) < LOG_CLOSE
    close &= ~singular
    if close.any():
        norms = norms[close]
        smallest = np.linalg.svd(factors[close] / norms[:, :, None], compute_uv=False)
        errors = 1.0 + (np.abs(centers[close]) / norms).max(axis=1)
        errors *= factors.shape[1] * 10 * np.finfo(float).eps
        singular[close] = smallest[:, -1] <= errors
    return singular


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
