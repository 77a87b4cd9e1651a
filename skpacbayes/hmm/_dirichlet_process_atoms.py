"""Moves of rows between the atoms of a shape, whose parameters are summed out."""

import math

import numpy as np
from scipy.special import gammaln

from .._kernels.hmm_atoms import share_out

_SIGNS = np.array([1.0, 1.0, -1.0])  # of the groups' log densities


def split_or_merge(
    values, shapes, atoms, sizes, base, model, rounding, table, order, uniforms
):
    """Split an atom of a shape or merge two, by a Metropolis step [1]_.

    Two rows of one shape are chosen. If they have the same atom, the step proposes to
    split it, else to merge theirs. In a split the other rows are shared out one after
    the other by their predictive densities.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        Rows about the locations of their states.
    shapes, atoms : ndarray of shape (n_rows,)
        Shape and atom of each row; the latter is changed, and is negative for a row to
        leave out.
    sizes : ndarray of shape (n_shapes, n_atoms)
        Rows of each atom, changed.
    base : tuple of ndarray of shape (n_shapes, n_features)
        Origins and scales of the shapes.
    model : Model
        The prior.
    rounding : ndarray of shape (n_features,)
        What rounding adds to the square of a value.
    table : ndarray of shape (n_rows + 1,)
        Log ratio of the gamma functions of Student's density given n rows.
    order : ndarray of shape (n_rows,)
        A random permutation: the first row, and the next of its shape, are chosen.
    uniforms : ndarray of shape (n_rows + 2,)
        Decide about each row, the new atom, and the step.

    Returns
    -------
    accepted : bool
        Whether atoms were split or merged.

    References
    ----------
    .. [1] D. B. Dahl and S. Newcomb, "Sequentially allocated merge-split samplers for
       conjugate Bayesian nonparametric models", Journal of Statistical Computation and
       Simulation 92, 2022.
    """
    rows = (t for t in order if atoms[t] >= 0)
    first = next(rows, None)
    second = next((t for t in rows if shapes[t] == shapes[first]), None)
    if second is None:
        return False
    shape, here, there = shapes[first], atoms[first], atoms[second]
    split = bool(here == there)
    empty = np.flatnonzero(sizes[shape] == 0)
    if split and not len(empty):
        return False
    together = atoms == here if split else (atoms == here) | (atoms == there)
    together &= shapes == shape
    members = order[together[order]]
    to_first = atoms[members] == here
    if split:
        here = empty[int(uniforms[-2] * len(empty))]
        to_first[1:] = False
    n, d = len(members), values.shape[1]
    size = d if model.full else 1
    scales = base[1][shape]
    counts, means, factors = np.zeros((3, d)), np.empty((3, d)), np.empty((3, d, d))
    means[:], factors[:] = base[0][shape], np.diag(np.sqrt(2 * scales))
    log_choice = share_out(
        values.take(members, axis=0),
        to_first,
        split,
        uniforms.take(members),
        model.mean_count,
        model.shape,
        rounding,
        table,
        size,
        counts,
        means,
        factors,
        np.empty(d + 2),
    )
    n_first = np.count_nonzero(to_first)
    apart, joined = sizes[shape].copy(), sizes[shape].copy()
    apart[here], apart[there] = n_first, n - n_first
    joined[here], joined[there] = 0, n
    log_ratio = math.log(len(empty) + (not split)) - log_choice
    log_ratio += log_sticks(apart, model.concentration)
    log_ratio -= log_sticks(joined, model.concentration)
    log_ratio += log_gain(counts, factors, scales, model, size)
    log_ratio = log_ratio if split else -log_ratio
    if math.log(uniforms[-1] + 1e-300) >= log_ratio:
        return False
    sizes[shape] = apart if split else joined
    atoms[members] = np.where(to_first, here, there) if split else there
    return True


def log_gain(counts, factors, scales, model, size):
    """Log ratio of densities of the rows: in the first two groups, and in the third.

    The parameters of the groups are summed out. `counts` (3, n_features) and `factors`
    (3, n_features, n_features), of blocks of `size` features.
    """
    degrees = 2.0 * model.shape + size - 1.0
    half = 0.5 * (degrees - np.arange(len(scales)) % size)
    logs = gammaln(half + 0.5 * counts)
    logs -= (degrees + counts) * np.log(factors.diagonal(axis1=1, axis2=2))
    logs -= 0.5 * np.log(1.0 + counts / model.mean_count)
    logs[2] -= 0.5 * degrees * np.log(2.0 * scales) - gammaln(half)
    return float(_SIGNS @ logs @ np.ones(len(scales)))


def log_sticks(sizes, concentration):
    """Log probability of the numbers of rows of all atoms, but for a constant."""
    *pieces, after = sizes.tolist()
    total = 0.0
    for own in reversed(pieces):
        total += math.lgamma(1.0 + own) + math.lgamma(concentration + after)
        after += own
        total -= math.lgamma(1.0 + concentration + after)
    return total


def swap_neighbors(shapes, atoms, sizes, concentration, rng):
    """Exchange the places of neighbouring atoms on the stick, by Metropolis steps.

    The ratio of an exchange is that of the gamma functions of pieces of the stick, of
    which all but one of each cancel; the last piece has no stick to break. In plain
    Python, which for some tens of atoms costs less than to compile it.

    Parameters
    ----------
    shapes, atoms : ndarray of shape (n_rows,)
        Shape and atom of each row; the latter is changed, and is negative for a row to
        leave out.
    sizes : ndarray of shape (n_shapes, n_atoms)
        Rows of each atom, changed.
    concentration : float
        Of the Dirichlet process.
    rng : numpy.random.Generator
        Source of random numbers.
    """
    n_shapes, n_atoms = sizes.shape
    thresholds = -rng.standard_exponential((n_shapes, n_atoms - 1))
    order = np.array(
        [
            _swapped(own.tolist(), concentration, of_shape.tolist())
            for own, of_shape in zip(sizes, thresholds, strict=True)
        ]
    )
    places = order.argsort(axis=1)
    if ((places != np.arange(n_atoms)) & (sizes > 0)).any():
        sizes[:] = np.take_along_axis(sizes, order, axis=1)
        known = atoms >= 0
        atoms[known] = places[shapes[known], atoms[known]]


def _swapped(sizes, concentration, thresholds):
    """Return which atom stands in each place of a stick after the exchanges."""
    order, n_rows = list(range(len(sizes))), sum(sizes)
    last = len(sizes) - 1
    for a, threshold in enumerate(thresholds):
        own, other = sizes[a], sizes[a + 1]
        log_ratio = math.log(concentration + (n_rows - own))
        log_ratio -= math.log(concentration + (n_rows - other))
        if a + 1 == last:
            log_ratio = math.lgamma(concentration + own) - math.lgamma(1.0 + own)
            log_ratio -= math.lgamma(concentration + other)
            log_ratio += math.lgamma(1.0 + other)
        if threshold < log_ratio:
            sizes[a], sizes[a + 1] = other, own
            order[a], order[a + 1] = order[a + 1], order[a]
        n_rows -= sizes[a]
        if not n_rows:  # the other atoms are all empty
            break
    return order
