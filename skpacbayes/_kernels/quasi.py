"""Sequential quasi-Monte Carlo: shifted Sobol points, and Hilbert curve indices.

A point is a row of 53-bit integers, one per coordinate: its digits in base two.
"""

import math

from . import kernel

UNIT = 2.0**-53


@kernel
def _central_quantile(u):
    """Return the normal quantile at u within 0.425 of 1/2 (AS 241, Wichura)."""
    q = u - 0.5
    r = 0.180625 - q * q
    above = 2.5090809287301226727e3
    above = above * r + 3.3430575583588128105e4
    above = above * r + 6.7265770927008700853e4
    above = above * r + 4.5921953931549871457e4
    above = above * r + 1.3731693765509461125e4
    above = above * r + 1.9715909503065514427e3
    above = above * r + 1.3314166789178437745e2
    above = above * r + 3.3871328727963666080
    below = 5.2264952788528545610e3
    below = below * r + 2.8729085735721942674e4
    below = below * r + 3.9307895800092710610e4
    below = below * r + 2.1213794301586595867e4
    below = below * r + 5.3941960214247511077e3
    below = below * r + 6.8718700749205790830e2
    below = below * r + 4.2313330701600911252e1
    below = below * r + 1.0
    return q * above / below


@kernel
def _tail_quantile(u):
    """Return the standard normal quantile at u farther from 1/2 (AS 241)."""
    r = math.sqrt(-math.log(min(u, 1.0 - u)))
    if r <= 5.0:
        r -= 1.6
        above = 7.74545014278341407640e-4
        above = above * r + 2.27238449892691845833e-2
        above = above * r + 2.41780725177450611770e-1
        above = above * r + 1.27045825245236838258
        above = above * r + 3.64784832476320460504
        above = above * r + 5.76949722146069140550
        above = above * r + 4.63033784615654529590
        above = above * r + 1.42343711074968357734
        below = 1.05075007164441684324e-9
        below = below * r + 5.47593808499534494600e-4
        below = below * r + 1.51986665636164571966e-2
        below = below * r + 1.48103976427480074590e-1
        below = below * r + 6.89767334985100004550e-1
        below = below * r + 1.67638483018380384940
        below = below * r + 2.05319162663775882187
        below = below * r + 1.0
    else:
        r -= 5.0
        above = 2.01033439929228813265e-7
        above = above * r + 2.71155556874348757815e-5
        above = above * r + 1.24266094738807843860e-3
        above = above * r + 2.65321895265761230930e-2
        above = above * r + 2.96560571828504891230e-1
        above = above * r + 1.78482653991729133580
        above = above * r + 5.46378491116411436990
        above = above * r + 6.65790464350110377720
        below = 2.04426310338993978564e-15
        below = below * r + 1.42151175831644588870e-7
        below = below * r + 1.84631831751005468180e-5
        below = below * r + 7.86869131145613259100e-4
        below = below * r + 1.48753612908506148525e-2
        below = below * r + 1.36929880922735805310e-1
        below = below * r + 5.99832206555887937690e-1
        below = below * r + 1.0
    return -above / below if u < 0.5 else above / below


@kernel
def shift_points(points, rows, shift, firsts, uniforms, tails, normals):
    """Shift points digitally; take normal quantiles of all but the first coordinate.

    `points` (n_points, 1 + n_noise) and `shift` (1 + n_noise,) are integers of 53 bits.
    Point ``rows[i]`` gives entry i of `firsts` (n_points,), its first coordinate in
    [0, 1), and row i of `normals` (n_points * n_noise,), both filled in place.
    `uniforms` and `tails`, of the shape of `normals`, are scratch, of floats and of
    integers.
    """
    n_noise = points.shape[1] - 1
    place = 0
    for i in range(rows.shape[0]):
        firsts[i] = (points[rows[i], 0] ^ shift[0]) * UNIT
        for f in range(1, n_noise + 1):
            digits = points[rows[i], f] ^ shift[f]
            # half a unit keeps quantiles finite; beyond 52 bits it would round to 1
            uniforms[place] = ((digits >> 1) + 0.5) * (2.0 * UNIT)
            place += 1
    for place in range(normals.shape[0]):
        normals[place] = _central_quantile(uniforms[place])
    n_tails = 0
    for place in range(normals.shape[0]):  # no branch to predict
        tails[n_tails] = place
        n_tails += abs(uniforms[place] - 0.5) > 0.425
    for rank in range(n_tails):
        normals[tails[rank]] = _tail_quantile(uniforms[tails[rank]])


@kernel
def standard_cells(particles, n_bits, cells):
    """Place coordinates in (0, 1) by their standard scores, cut to `n_bits` digits.

    The place of a score s is 1/2 + s / (2 + 2 |s|). `cells` (n_particles, n_features)
    is filled in place.
    """
    n_particles, n_features = particles.shape
    half = 0.5 * 2.0**n_bits
    for f in range(n_features):
        total = 0.0
        for i in range(n_particles):
            total += particles[i, f]
        mean = total / n_particles
        total = 0.0
        for i in range(n_particles):
            gap = particles[i, f] - mean
            total += gap * gap
        scale = math.sqrt(n_particles / total) if total > 0.0 else 0.0
        for i in range(n_particles):
            score = (particles[i, f] - mean) * scale
            place = half + half * score / (1.0 + abs(score))
            cells[i, f] = int(min(place, 2.0 * half - 1.0))


@kernel
def hilbert_keys(cells, n_bits, curve, keys):
    """Compute positions of cells on the Hilbert curve of order `n_bits`.

    The curve runs through a cell in one of several states, 0 at first: ``curve[state <<
    n_features | corner]`` holds the place of a corner of the cell on the curve and,
    times 2 ** n_features, the state in which the curve runs through it. `cells`
    (n_particles, n_features); `keys` (n_particles,) is filled in place.
    """
    n_features = cells.shape[1]
    mask = (1 << n_features) - 1
    for i in range(cells.shape[0]):
        key = 0
        state = 0
        for level in range(n_bits - 1, -1, -1):
            corner = 0
            for f in range(n_features):
                corner |= ((cells[i, f] >> level) & 1) << f
            entry = curve[(state << n_features) | corner]
            key = (key << n_features) | (entry & mask)
            state = entry >> n_features
        keys[i] = key
