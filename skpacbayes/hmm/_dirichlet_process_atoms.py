"""Draws of mixtures and locations, and moves of rows between the atoms of a mixture."""

import math
from typing import NamedTuple

import numpy as np

from .._kernels.hmm import add_moments
from .._kernels.hmm_atom_moves import exchange_neighbors, share_out
from .._kernels.hmm_atoms import draw_gaussians, draw_sticks
from ._dirichlet_process_model import precisions_of
from ._dirichlet_process_random import state_of


class Moments(NamedTuple):
    """Moments of the rows about the centres of their components.

    `sizes` (n_states, n_atoms): rows; `counts`: values observed, and `sums` (n_states,
    n_atoms, n_features); `products` (n_states, n_atoms, n_features, n_features), lower
    triangle or diagonal. Moments are about a centre for accuracy.
    """

    sizes: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def of_rows(cls, rows, states, atoms, locations, model):
        """Return the means of atoms about `locations`, and the moments about both.

        `rows` (n_rows, n_features), NaN where missing; `states` and `atoms` (n_rows,);
        `locations` (n_states, n_features). The means (n_shapes, n_atoms, n_features)
        are those of the rows of an atom, in all states if they share a shape. Products
        are squares only: `update_mixture` draws covariances.
        """
        shape = model.n_states, model.n_atoms, model.n_features
        near = np.zeros((model.n_shapes, *shape[1:]))
        parts = np.zeros(shape[:2]), np.zeros(shape), np.zeros(shape)
        found = cls(*parts, np.zeros((*shape, shape[2])))
        add_moments(rows, states, atoms, locations, near, False, *found)
        return near, found

    def of_shapes(self, shared):
        """Return the moments summed over states if they share a mixture."""
        if not shared:
            return self
        return Moments(*(part.sum(axis=0, keepdims=True) for part in self))


def sizes_of(states, atoms, model):
    """Return the number of rows of each atom, (n_shapes, n_atoms).

    Rows with a negative atom are left out.
    """
    shape = model.n_shapes, model.n_atoms
    components = atoms if model.shared else states * model.n_atoms + atoms
    found = np.bincount(components[atoms >= 0], minlength=shape[0] * shape[1])
    return found.reshape(shape).astype(float)


def draw_log_weights(sizes, concentration, rng):
    """Draw log weights of truncated stick-breaking distributions given rows.

    `sizes` (n_shapes, n_atoms): numbers of rows.
    """
    log_weights = np.empty(sizes.shape)
    draw_sticks(sizes, float(concentration), state_of(rng), log_weights)
    return log_weights


def draw_base(occupied, parameters, model, rng):
    """Draw origins and scales of mixtures with variances, given their atoms with rows.

    `occupied` (n_shapes, n_atoms). Atoms without rows are integrated out; they are
    drawn next.
    """
    precisions = precisions_of(parameters.factors, full=False)
    precisions *= occupied[..., None]
    total = np.add.reduce(precisions, axis=1)
    n_known = np.add.reduce(occupied, axis=1, keepdims=True)
    shapes = model.scale_shape + model.shape * n_known
    scales = rng.standard_gamma(shapes, total.shape) / (model.scale_rate + total)
    if model.shared:
        return parameters.origins, scales
    precision = 1 / model.location_variance + model.mean_count * total
    precisions *= parameters.means
    best = model.mean_count * np.add.reduce(precisions, axis=1) / precision
    return best + rng.standard_normal(total.shape) / np.sqrt(precision), scales


def draw_atoms(moments, means, origins, scales, model, rng):
    """Draw means and factors of atoms given their rows, from conjugate posteriors.

    The moments are of shapes, about `means` (n_shapes, n_atoms, n_features); `origins`
    and `scales` (n_shapes, n_features).
    """
    _, counts, sums, products = moments
    noise, means, d = rng.standard_normal(means.shape), means.copy(), means.shape[-1]
    factors, shapes = np.zeros(products.shape), model.shape + 0.5 * counts
    if model.full:
        factors = np.tril(rng.standard_normal(products.shape), -1)
        shapes += 0.5 * np.arange(d)
    chi_squares = 2.0 * rng.standard_gamma(shapes)
    np.einsum("...ff->...f", factors)[:] = np.sqrt(chi_squares)
    given = counts, sums, products, origins, scales, model.mean_count, model.full
    draw_gaussians(*given, noise, means, factors, np.empty((d + 3, d)))
    return means, factors


def draw_locations(moments, moved, parameters, model, rng):
    """Draw locations of the states given the atoms.

    `moved` (n_atoms, n_features): change of the means of the atoms since the moments
    were computed.
    """
    factors, locations = parameters.factors[0], parameters.locations
    precisions = factors.swapaxes(-1, -2) @ factors  # (n_atoms, d, d)
    residuals = moments.sums - moments.counts * moved  # (n_states, n_atoms, d)
    noise = rng.standard_normal(locations.shape)
    if model.full:
        prior = np.eye(model.n_features) / model.location_variance
        pull = np.einsum("lfg,jlg->jf", precisions, residuals)
        pull -= locations / model.location_variance
        precision = np.einsum("jl,lfg->jfg", moments.counts[..., 0], precisions) + prior
        root = np.linalg.inv(np.linalg.cholesky(precision))
        step = root @ pull[..., None] + noise[..., None]
        return locations + (root.swapaxes(-1, -2) @ step)[..., 0]
    diagonal = precisions.diagonal(axis1=-2, axis2=-1)
    pull = (diagonal * residuals).sum(axis=1) - locations / model.location_variance
    precision = (diagonal * moments.counts).sum(axis=1) + 1.0 / model.location_variance
    return locations + pull / precision + noise / np.sqrt(precision)


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
    counts, means, factors = np.zeros((5, d)), np.empty((5, d)), np.empty((5, d, d))
    means[:], factors[:] = base[0][shape], 0.0
    np.einsum("...ff->...f", factors)[:] = np.sqrt(2 * base[1][shape])
    apart, joined = sizes[shape].copy(), sizes[shape].copy()
    joined[here], joined[there] = 0, n
    log_uniform = math.log(uniforms[-1] + 1e-300)
    of_labels = math.log(len(empty) + (not split))
    of_labels -= log_sticks(joined, model.concentration)
    ceiling = math.inf
    if not split:
        of_labels += log_sticks(apart, model.concentration)
        ceiling = -log_uniform - of_labels
    log_ratio = share_out(
        values.take(members, axis=0),
        to_first,
        split,
        ceiling,
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
    if split:
        n_first = np.count_nonzero(to_first)
        apart[here], apart[there] = n_first, n - n_first
        of_labels += log_sticks(apart, model.concentration)
        accepted = log_uniform < log_ratio + of_labels
    else:
        accepted = log_ratio < ceiling
    if accepted:
        sizes[shape] = apart if split else joined
        atoms[members] = np.where(to_first, here, there) if split else there
    return accepted


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
    places = np.empty(sizes.shape, dtype=np.int64)
    exchange_neighbors(shapes, atoms, sizes, thresholds, concentration, places)
