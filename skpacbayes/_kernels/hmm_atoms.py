"""Hidden Markov models: weights, means and covariances of the atoms, and their rows.

The atoms are those of the emission mixtures. `update_mixture` draws the parameters of
atoms and the atoms of rows in turn; the other kernels draw parameters once.
"""

import math

from . import kernel, part, shared
from .hmm import _HALF_LOG_2_PI, LOWEST, _exp, emission_densities
from .random import gamma, uniform

_HIGHEST = 700.0  # exponents are lowered to it
_CERTAIN = 50.0  # a Poisson variable with this mean is not 0
_LOG_CERTAIN = math.log(_CERTAIN)
_LEAST = 1e-300
_ROUNDING = 1e-10  # share of a variance that keeps a matrix positive definite


@kernel
def draw_sticks(sizes, concentration, state, log_weights):
    """Draw log weights of truncated stick-breaking distributions given rows.

    `sizes` and `log_weights` (n_shapes, n_atoms): the rows of each atom, and the
    result. Each piece of the stick is beta, drawn as a ratio of gamma variables, so
    that the remaining stick is accurate.
    """
    n_shapes, n_atoms = sizes.shape
    for shape in range(n_shapes):
        passed, rest = 0.0, 0.0
        for a in range(n_atoms):
            rest += sizes[shape, a]
        for a in range(n_atoms - 1):
            rest -= sizes[shape, a]
            taken = gamma(1.0 + sizes[shape, a], state)
            left = gamma(concentration + rest, state)
            left = left if left > _LEAST else _LEAST
            log_sum = math.log(taken + left)
            log_weights[shape, a] = passed + (math.log(taken) - log_sum)
            passed += math.log(left) - log_sum
        log_weights[shape, n_atoms - 1] = passed


@shared
def draw_gaussians(
    counts,
    sums,
    products,
    origins,
    scales,
    mean_count,
    full,
    noise,
    means,
    factors,
    work,
):
    """Draw means and factors of atoms given their rows; factors are full or diagonal.

    The moments `counts`, `sums` (n_shapes, n_atoms, n_features) and `products`, of
    which the lower triangles are read, are about `means`, which the draws replace; with
    `full` factors, the features of an atom have the same count.
    `origins` and `scales` (n_shapes, n_features): the prior. `noise` (n_shapes,
    n_atoms, n_features): normal variables. `factors` (n_shapes, n_atoms, n_features,
    n_features): Bartlett's lower triangles, of normal variables under roots of
    chi-squares; they are multiplied by the inverse of the Cholesky factor of the
    scatter, which is diagonal unless `full`. `work` (n_features + 3, n_features) is
    work space.
    """
    n_shapes, n_atoms, n_features = means.shape
    step, gaps, move = work[n_features], work[n_features + 1], work[n_features + 2]
    for shape in range(n_shapes):
        for a in range(n_atoms):
            factor, count, mean = factors[shape, a], counts[shape, a], means[shape, a]
            for f in range(n_features):
                n, total, gap = count[f], sums[shape, a, f], mean[f] - origins[shape, f]
                step[f] = (total - mean_count * gap) / (mean_count + n)
                gaps[f] = gap + step[f]
                move[f] = noise[shape, a, f]
                for g in range(0 if full else f, f + 1):
                    # The scatter about the new mean, and about the origin.
                    value = products[shape, a, f, g] + n * step[f] * step[g]
                    value -= step[f] * sums[shape, a, g] + step[g] * total
                    value += mean_count * gaps[f] * gaps[g]
                    if g == f:
                        value = (value + 2.0 * scales[shape, f]) * (1.0 + _ROUNDING)
                    least = _ROUNDING * value
                    for h in range(0 if full else g, g):
                        value -= work[f, h] * work[g, h]
                    if g == f:
                        work[f, f] = math.sqrt(value if value > least else least)
                    else:
                        work[f, g] = value / work[g, g]
            for f in range(n_features):
                for g in range(f, -1 if full else f - 1, -1):
                    value = factor[f, g]
                    for h in range(g + 1, f + 1):
                        value -= factor[f, h] * work[h, g]
                    factor[f, g] = value / work[g, g]
                for g in range(0 if full else f, f):
                    move[f] -= factor[f, g] * move[g]
                move[f] /= factor[f, f]
                mean[f] += step[f] + move[f] / math.sqrt(mean_count + count[f])


@part
def _draw_label_without_rows(
    t, of_rows, order, n_known, full, chance, factors, means, density, atoms
):
    """Give row t one of the atoms without rows if `chance` is below their share.

    These are ``order[n_known:]``. `density` is that of the row by the other atoms, over
    exp(highest); `of_rows` is that of `_draw_labels`.
    """
    n_features, n_atoms = means.shape[2], means.shape[1]
    highest, constants = of_rows[n_features, t], of_rows[n_features + 2]
    passed, total = of_rows[n_features + 3], 0.0
    for i in range(n_known, n_atoms):
        a, square = order[i], 0.0
        factor, mean = factors[0, a], means[0, a]
        for f in range(n_features):
            value = 0.0
            for g in range(0 if full else f, f + 1):
                value += factor[f, g] * (of_rows[g, t] - mean[g])
            square += value * value
        exponent = constants[a] - 0.5 * square - highest
        total += math.exp(exponent if exponent < _HIGHEST else _HIGHEST)
        passed[i] = total
    threshold = chance * (density + total)
    if threshold < total:
        i = n_known
        while passed[i] <= threshold:
            i += 1
        atoms[0, t] = order[i]


@part
def _draw_labels(
    of_rows,
    rounding,
    full,
    uniforms,
    mixture,
    atoms,
    order,
    densities,
    nowhere,
    work,
    state,
):
    """Draw the atoms of rows given the parameters of the atoms.

    Atoms without rows usually have small weights. The number of events of a Poisson
    process, whose rate is a bound of their odds at a row, is at least one with at least
    the probability of these atoms: only at such rows their densities are computed. The
    other atoms are drawn by `uniforms` (n_rows,).

    With n the larger of n_rows and n_atoms, `of_rows` (n_features + 4, n) begins with
    the columns of the rows; its last rows are work space: the largest log density and
    the rate of each row, the log density of each atom at its mean, and sums of
    densities. `mixture` is that of `update_mixture`; `atoms` (1, n) is overwritten;
    `nowhere` (1, n_features) is zero. `order` (n,), `densities` (1, n) and `work`
    (n_atoms + 2, any) are work space.
    """
    sizes, log_weights, factors, means, _, _ = mixture
    n_features, n_atoms, n_rows = means.shape[2], means.shape[1], uniforms.shape[0]
    highest, rates = of_rows[n_features], of_rows[n_features + 1]
    constants = of_rows[n_features + 2]
    n_known, bound = 0, 0.0
    for a in range(n_atoms):
        if sizes[0, a] > 0.0:
            order[n_known] = a
            n_known += 1
            continue
        order[n_atoms - 1 - (a - n_known)] = a
        factor = factors[0, a]
        constant = log_weights[0, a] - n_features * _HALF_LOG_2_PI
        for f in range(n_features):
            constant += math.log(factor[f, f])
            for g in range(0 if full else f, f + 1):
                entry = factor[f, g]
                constant -= 0.5 * entry * entry * rounding[g]
        bound += math.exp(constant if constant < _HIGHEST else _HIGHEST)
        constants[a] = constant
    emission_densities(
        of_rows,  # the first of them are columns
        factors,
        means,
        nowhere,
        log_weights,
        rounding,
        full,
        order[:n_known],
        uniforms,
        highest,
        densities,
        atoms,
        work,
    )
    for t in range(n_rows):
        atoms[0, t] = order[atoms[0, t]]
    if n_known == n_atoms:
        return
    log_bound = math.log(bound + _LEAST)
    for t in range(n_rows):
        # The density of the atoms with rows is at least exp(highest).
        exponent = log_bound - highest[t] - _LOG_CERTAIN
        exponent = exponent if exponent < 0.0 else 0.0
        rates[t] = _CERTAIN * _exp(exponent if exponent > LOWEST else LOWEST)
    wait = -math.log(1.0 - uniform(state))
    for t in range(n_rows):
        wait -= rates[t]
        if wait < 0.0:
            wait = -math.log(1.0 - uniform(state))
            chance = uniform(state) * (1.0 - math.exp(-rates[t]))
            _draw_label_without_rows(
                t,
                of_rows,
                order,
                n_known,
                full,
                chance,
                factors,
                means,
                densities[0, t],
                atoms,
            )


@part
def _draw_scales(sizes, full, prior, noise, factors, means, origins, scales, state):
    """Draw the scale of a mixture and, with a prior precision, its origin.

    The atoms with rows determine them, by `factors` and `means`; the others are
    integrated out. Each feature of the origin is drawn given the others. `sizes` (1,
    n_atoms): rows of each atom; `noise` (n_features,); `origins` and `scales` (1,
    n_features).
    """
    n_atoms, n_features = means.shape[1:]
    mean_count, shape, scale_shape, scale_rate, _, rigidity = prior
    origin = origins[0]
    # A Wishart distribution counts half its degrees of freedom for each feature.
    per_atom = shape + (0.5 * (n_features - 1) if full else 0.0)
    for f in range(n_features):
        degrees, total, pull = scale_shape, 0.0, 0.0
        for a in range(n_atoms):
            if sizes[0, a] == 0.0:
                continue
            degrees += per_atom
            factor, mean = factors[0, a], means[0, a]
            for h in range(f, n_features if full else f + 1):
                residual, entry = 0.0, factor[h, f]
                for g in range(0 if full else f, h + 1):
                    residual += factor[h, g] * (mean[g] - origin[g])
                total += entry * entry
                pull += entry * residual
        scales[0, f] = gamma(degrees, state) / (scale_rate + total)
        if rigidity > 0.0:
            precision = rigidity + mean_count * total
            step = (mean_count * pull - rigidity * origin[f]) / precision
            origin[f] += step + noise[f] / math.sqrt(precision)


@part
def _center_means(n_rows, of_rows, known, sizes, sums, means):
    """Move the mean of each atom with rows to that of its rows; `sums` stay zero."""
    n_atoms, n_features = means.shape[1:]
    for t in range(n_rows):
        total = sums[0, known[0, t]]
        for f in range(n_features):
            total[f] += of_rows[f, t]
    for a in range(n_atoms):
        n, total, mean = sizes[0, a], sums[0, a], means[0, a]
        for f in range(n_features):
            if n > 0.0:
                mean[f] = total[f] / n
            total[f] = 0.0


@part
def _draw_factors(shape, full, rounding, triangles, sizes, moments, factors, state):
    """Draw Bartlett's triangles; give each feature the count of its atom.

    The squares of `moments` get the variances of rounding errors.
    """
    counts, _, products = moments
    n_atoms, n_features = counts.shape[1:]
    for a in range(n_atoms):
        n, count, product = sizes[0, a], counts[0, a], products[0, a]
        factor = factors[0, a]
        for f in range(n_features):
            count[f] = n
            product[f, f] += n * rounding[f]
            chi = gamma(shape + 0.5 * (n + (f if full else 0.0)), state)
            for g in range(f if full else 0):
                factor[f, g] = triangles[a, f, g]
            factor[f, f] = math.sqrt(2.0 * chi)


@kernel
def update_mixture(
    rows,
    states,
    own_state,
    atoms,
    locations,
    rounding,
    prior,
    full,
    draws,
    start,
    mixture,
    state,
    work,
):
    """Draw the parameters of a mixture and the atoms of its rows, in turn.

    The first update draws weights, means and factors given the atoms. Each further
    update begins with the atoms of the rows, the scales and the origin; with one atom
    the first draws these, too. Conditionals are those of `_dirichlet_process_atoms`.

    `rows` (n_rows, n_features), of which those without missing values have an atom;
    `states` (n_rows,); `atoms` (n_rows,), which is changed, is negative for a row to
    leave out. The mixture is that of the rows about the `locations` (n_states,
    n_features) of their states: those of `own_state`, or all rows if it is negative.
    `rounding` (n_features,): variances of rounding errors. `prior`: mean count, shape,
    shape and rate of the scales, concentration, and the precision of the origin, which
    is not drawn if that is 0.

    `draws` are uniforms (n_updates - 1, n_rows), of which each update after the first
    uses one for each row of the mixture, from column `start`; normal variables
    (n_updates, 1, n_atoms + 1, n_features); and, if `full`, normal variables
    (n_updates, n_atoms, n_features, n_features). `state` (1,): of the generator of all
    others.

    The `mixture` is overwritten: sizes (1, n_atoms), by the numbers of rows; log
    weights (1, n_atoms), factors (1, n_atoms, n_features, n_features), means (1,
    n_atoms, n_features), origins and scales (1, n_features). `work` is work space, with
    n the larger of n_rows and n_atoms: known (1, n), integers (2, n), of rows
    (n_features + 4, n), densities (1, n); counts, sums and products, of the shapes of
    means and of factors; of factors (n_features + 3, n_features), nowhere (1,
    n_features), which is zero, and of blocks (n_atoms + 2, any). Returns the number of
    rows of the mixture.
    """
    sizes, log_weights, factors, means, origins, scales = mixture
    uniforms, noise, triangles = draws
    known, integers, of_rows, densities, moments, of_factors, nowhere, of_blocks = work
    counts, sums, products = moments
    n_features, n_atoms = rows.shape[1], sizes.shape[1]
    mean_count, shape, _, _, concentration, _ = prior
    members, order, gaps = integers[0], integers[1], of_factors[0]
    n_rows = 0
    for t in range(rows.shape[0]):
        if atoms[t] >= 0 and (own_state < 0 or states[t] == own_state):
            known[0, n_rows] = atoms[t]
            members[n_rows] = t
            for f in range(n_features):
                of_rows[f, n_rows] = rows[t, f] - locations[states[t], f]
            n_rows += 1
    for u in range(noise.shape[0]):
        if u > 0:
            _draw_labels(
                of_rows,
                rounding,
                full,
                uniforms[u - 1, start : start + n_rows],
                mixture,
                known,
                order,
                densities,
                nowhere,
                of_blocks,
                state,
            )
        for a in range(n_atoms):
            sizes[0, a] = 0.0
            total, product = sums[0, a], products[0, a]
            for f in range(n_features):
                total[f] = 0.0
                for g in range(n_features):
                    product[f, g] = 0.0
        for t in range(n_rows):
            sizes[0, known[0, t]] += 1.0
        if u > 0 or n_atoms == 1:
            more = noise[u, 0, n_atoms]
            _draw_scales(
                sizes, full, prior, more, factors, means, origins, scales, state
            )
        if u == 0:
            # Labels that were moved: moments are about the means of the rows.
            _center_means(n_rows, of_rows, known, sizes, sums, means)
        # Rows are near the means by which their labels were drawn.
        for t in range(n_rows):
            a = known[0, t]
            total, product, mean = sums[0, a], products[0, a], means[0, a]
            for f in range(n_features):
                gap = of_rows[f, t] - mean[f]
                gaps[f] = gap
                total[f] += gap
                for g in range(0 if full else f, f + 1):
                    product[f, g] += gap * gaps[g]
        draw_sticks(sizes, concentration, state, log_weights)
        _draw_factors(
            shape, full, rounding, triangles[u], sizes, moments, factors, state
        )
        draw_gaussians(
            counts,
            sums,
            products,
            origins,
            scales,
            mean_count,
            full,
            noise[u],
            means,
            factors,
            of_factors,
        )
    for i in range(n_rows):
        atoms[members[i]] = known[0, i]
    return n_rows
