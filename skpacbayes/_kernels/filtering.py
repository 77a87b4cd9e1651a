"""Weighting and resampling of a cloud of particles."""

import math

import numpy as np

from . import kernel


@kernel
def multiply(log_weights, log_likelihoods, products, excesses):
    """Write log-likelihoods plus log-weights to `products`; return the largest sum.

    `excesses` become the products less the largest, if that is finite: safe to
    exponentiate. NaN is returned where a log-likelihood is NaN or +inf.
    """
    highest = -math.inf
    legal = True
    for i in range(log_weights.shape[0]):
        legal &= log_likelihoods[i] < math.inf
        products[i] = log_weights[i] + log_likelihoods[i]
        highest = max(highest, products[i])
    if not legal:
        return math.nan
    if highest > -math.inf:
        for i in range(log_weights.shape[0]):
            excesses[i] = products[i] - highest
    return highest


@kernel
def normalise(weights, log_weights, highest):
    """Normalise weights in place; return log of their sum, and effective sample size.

    `weights` are the exponentials of `log_weights` less `highest`.
    """
    total = 0.0
    squares = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
        squares += weights[i] * weights[i]
    evidence = highest + math.log(total)
    inverse = 1.0 / total
    for i in range(weights.shape[0]):
        weights[i] *= inverse
        log_weights[i] -= evidence
    return evidence, total * total / squares


@kernel
def sum_by_root(roots, weights, start, shares):
    """Write the weights of the descendants of each root to `shares`.

    Returns the sum of squares of the shares, and of their differences from `start`.
    """
    for i in range(shares.shape[0]):
        shares[i] = 0.0
    for i in range(weights.shape[0]):
        shares[roots[i]] += weights[i]
    concentration = 0.0
    change = 0.0
    for i in range(shares.shape[0]):
        concentration += shares[i] * shares[i]
        change += (shares[i] - start[i]) * (shares[i] - start[i])
    return concentration, change


@kernel
def draw_ancestors(weights, order, starts, counts, points, ancestors):
    """Invert the distribution function of the weights, cell by cell (Algorithm 3).

    Cell j holds the particles ``order[starts[j] : starts[j + 1]]``, in that order,
    and has ``counts[j]`` offspring: the particles at the quantiles `points`
    (n_particles,), which lie in [0, 1] and are sorted within each cell. `ancestors`
    (n_particles,) is filled in place, cell after cell.
    """
    child = 0
    for cell in range(counts.shape[0]):
        total = 0.0
        last = starts[cell]
        for rank in range(starts[cell], starts[cell + 1]):
            total += weights[order[rank]]
            if weights[order[rank]] > 0.0:
                last = rank
        rank = starts[cell]
        passed = weights[order[rank]] if counts[cell] else 0.0
        for _ in range(counts[cell]):
            threshold = points[child] * total
            while rank < last and (passed < threshold or weights[order[rank]] == 0.0):
                rank += 1
                passed += weights[order[rank]]
            ancestors[child] = order[rank]
            child += 1


@kernel
def draw_from_strata(weights, order, starts, counts, points, ancestors):
    """Draw as `draw_ancestors` does, without a branch that depends on the weights.

    In each cell there must be one point in each of ``counts[j]`` equal strata of
    [0, 1]. The number of points below a particle's place is then known up to one
    comparison. The particle's offspring begin at that number.
    """
    begin = 0
    for cell in range(counts.shape[0]):
        n_strata = counts[cell]
        if n_strata == 0:
            continue
        total = 0.0
        last = starts[cell]
        for rank in range(starts[cell], starts[cell + 1]):
            total += weights[order[rank]]
            if weights[order[rank]] > 0.0:
                last = rank
        for child in range(begin, begin + n_strata):
            ancestors[child] = starts[cell]
        passed = 0.0
        below = 0
        for rank in range(starts[cell], last):
            if below == n_strata:
                break
            ancestors[begin + below] = rank  # the last one to write here has offspring
            passed += weights[order[rank]]
            below = min(int(passed / total * n_strata), n_strata - 1)
            below += points[begin + below] * total < passed
        if below < n_strata:
            ancestors[begin + below] = last
        rank = starts[cell]
        for child in range(begin, begin + n_strata):
            rank = max(rank, ancestors[child])
            ancestors[child] = order[rank]
        begin += n_strata


@kernel
def stratified_points(counts, uniforms, points):
    """Write one point in each of ``counts[j]`` equal strata of [0, 1], for each cell j.

    ``uniforms`` has one number for each cell, which shifts all of its points, or one
    for each point. `points` is filled in place, cell after cell.
    """
    place = 0
    whole = uniforms.shape[0] == counts.shape[0]
    for cell in range(counts.shape[0]):
        count = counts[cell]
        for i in range(count):
            shift = uniforms[cell] if whole else uniforms[place]
            points[place] = i / count + shift / count
            place += 1


@kernel
def share_offspring(masses, sizes, conservation, remainders, counts):
    """Allocate offspring, as many as there are particles, to cells.

    A cell of size c and weight v gets about ``(1 - conservation) * n * v +
    conservation * c``, rounded by the largest remainders; at least one if it has
    weight, none otherwise. `counts` (n_cells,) is filled, `remainders` is scratch.
    """
    n_cells = masses.shape[0]
    n_particles = 0
    for j in range(n_cells):
        n_particles += sizes[j]
    total = 0.0
    for j in range(n_cells):
        remainders[j] = 0.0
        if masses[j] > 0.0:
            remainders[j] = (1.0 - conservation) * n_particles * masses[j]
            remainders[j] += conservation * sizes[j]
        total += remainders[j]
    short = n_particles
    for j in range(n_cells):
        wanted = remainders[j] * (n_particles / total)
        counts[j] = np.int64(math.floor(wanted))
        remainders[j] = wanted - counts[j]
        short -= counts[j]
    for _ in range(short):
        best = 0
        for j in range(n_cells):
            if remainders[j] > remainders[best]:
                best = j
        counts[best] += 1
        remainders[best] = -1.0
    for j in range(n_cells):
        if masses[j] > 0.0 and counts[j] == 0:
            richest = 0
            for i in range(n_cells):
                if counts[i] > counts[richest]:
                    richest = i
            counts[j] = 1
            counts[richest] -= 1


@kernel
def cut_line(values, order, weights, n_steps, centers, starts, labels, masses):
    """Cut sorted values into cells by Lloyd's algorithm in one dimension.

    `values` (n_points,) are sorted; `order` is the index of each in `weights` and
    `labels` (n_points,). The initial centers are halfway between equal ranks and equal
    steps. `centers` (n_cells,), `starts` (n_cells + 1,), `labels` and the sums of
    weights `masses` (n_cells,) are filled: cell j holds the points ``order[starts[j] :
    starts[j + 1]]``.
    """
    n_points = values.shape[0]
    n_cells = centers.shape[0]
    low = values[0]
    width = values[n_points - 1] - low
    for j in range(n_cells):
        share = (j + 0.5) / n_cells
        centers[j] = 0.5 * (values[np.int64(share * n_points)] + low + share * width)
    for step in range(n_steps + 1):
        i = 0
        for j in range(n_cells):
            starts[j] = i
            total = 0.0
            border = math.inf
            if j < n_cells - 1:
                border = 0.5 * (centers[j] + centers[j + 1])
            while i < n_points and values[i] <= border:
                total += values[i]
                i += 1
            masses[j] = centers[j]
            if i > starts[j]:
                masses[j] = total / (i - starts[j])
        if step < n_steps:
            for j in range(n_cells):
                centers[j] = masses[j]
    starts[n_cells] = n_points
    for j in range(n_cells):
        masses[j] = 0.0
        for i in range(starts[j], starts[j + 1]):
            labels[order[i]] = j
            masses[j] += weights[order[i]]
