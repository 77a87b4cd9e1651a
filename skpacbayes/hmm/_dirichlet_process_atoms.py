"""Moves of rows between the atoms of a mixture, with parameters integrated out."""

import math

import numpy as np

from .._kernels.hmm_atom_moves import exchange_neighbors, share_out


def split_or_merge(
    values, shapes, atoms, sizes, base, model, rounding, table, order, uniforms
):
    """Split an atom of a mixture or merge two, by a Metropolis step [1]_.

    Two rows of one mixture are chosen. If they have the same atom, the proposal is to
    split it, otherwise to merge the two atoms. In a split the other rows are assigned
    one after the other by their predictive densities.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        Rows about the locations of their states.
    shapes, atoms : ndarray of shape (n_rows,)
        Mixture and atom of each row; atoms are changed in place, and negative for rows
        to leave out.
    sizes : ndarray of shape (n_shapes, n_atoms)
                Numbers of rows of the atoms, changed in place.
    base : tuple of ndarray of shape (n_shapes, n_features)
        Origins and scales of the shapes.
    model : Model
        The prior.
    rounding : ndarray of shape (n_features,)
        Variances of rounding errors.
    table : ndarray of shape (n_rows + 1,)
        Log ratio of the gamma functions of Student's density given n rows.
    order : ndarray of shape (n_rows,)
        A random permutation: the first row, and the next of its shape, are chosen.
    uniforms : ndarray of shape (n_rows + 2,)
        Uniform numbers for the rows, the new atom, and the acceptance.

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
    known = order[atoms[order] >= 0]
    of_shape = known[shapes[known] == shapes[known[:1]]]
    if len(of_shape) < 2:
        return False
    first, second = of_shape[:2]
    shape, here, there = shapes[first], atoms[first], atoms[second]
    split = bool(here == there)
    empty = np.flatnonzero(sizes[shape] == 0)
    if split and not len(empty):
        return False
    together = atoms == here if split else (atoms == here) | (atoms == there)
    members = of_shape[together[of_shape]]
    to_first = atoms[members] == here
    if split:
        here = empty[int(uniforms[-2] * len(empty))]
        to_first[1:] = False
    n, d = len(members), values.shape[1]
    size = d if model.full else 1
    counts, means, factors = np.zeros((3, d)), np.empty((3, d)), np.empty((3, d, d))
    means[:], factors[:] = base[0][shape], 0.0
    np.einsum("...ff->...f", factors)[:] = np.sqrt(2 * base[1][shape])
    log_ratio = share_out(
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
        np.empty((2, d)),
        np.empty(d + 2),
    )
    n_first = np.count_nonzero(to_first)
    apart, joined = sizes[shape].copy(), sizes[shape].copy()
    apart[here], apart[there] = n_first, n - n_first
    joined[here], joined[there] = 0, n
    log_ratio += math.log(len(empty) + (not split))
    log_ratio += log_sticks(apart, model.concentration)
    log_ratio -= log_sticks(joined, model.concentration)
    log_ratio = log_ratio if split else -log_ratio
    if math.log(uniforms[-1] + 1e-300) >= log_ratio:
        return False
    sizes[shape] = apart if split else joined
    atoms[members] = np.where(to_first, here, there) if split else there
    return True


def log_sticks(sizes, concentration):
    """Return the log probability of the numbers of rows, up to a constant."""
    *pieces, after = sizes.tolist()
    total = 0.0
    for own in reversed(pieces):
        total += math.lgamma(1.0 + own) + math.lgamma(concentration + after)
        after += own
        total -= math.lgamma(1.0 + concentration + after)
    return total


def swap_neighbors(shapes, atoms, sizes, concentration, rng):
    """Exchange neighbouring atoms in the stick-breaking order, by Metropolis steps.

    In the acceptance ratio of an exchange, all but one gamma function of each piece of
    the stick cancel.

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
    thresholds = -rng.standard_exponential((len(sizes), sizes.shape[1] - 1))
    order = np.empty(sizes.shape, dtype=np.int64)
    order[:] = np.arange(sizes.shape[1])
    if exchange_neighbors(sizes, thresholds, concentration, order):
        # Atom -1, of rows to leave out, is found in a last column, or the one before.
        places = np.full((len(sizes), 1 + sizes.shape[1]), -1)
        places[:, :-1] = order.argsort(axis=1)
        atoms[:] = places.take(shapes * places.shape[1] + atoms)
