"""Tuples of k-means centres: seeding by squared distance, and moves of one centre.

Rows and centres are the columns of C-contiguous arrays, `columns` (n_features,
n_samples) and `centers` (n_features, n_clusters): a loop over columns has no sum that
must be taken in order, so it runs on the processor's vectors. For each row four arrays
hold its two nearest centres and the squared distances to them: `first`, `second`,
`near` and `next_near`.
"""

import math

import numpy as np

from . import kernel


@kernel
def _squares(columns, points, i, squares):
    """Squared distances from column i of `points` to all columns."""
    n_features, n_columns = columns.shape
    for j in range(n_columns):
        squares[j] = 0.0
    n_blocks = n_features // 4
    for block in range(n_blocks):
        f = 4 * block
        a = points[f, i]
        b = points[f + 1, i]
        c = points[f + 2, i]
        d = points[f + 3, i]
        for j in range(n_columns):
            gap_a = columns[f, j] - a
            gap_b = columns[f + 1, j] - b
            gap_c = columns[f + 2, j] - c
            gap_d = columns[f + 3, j] - d
            squares[j] += (gap_a * gap_a + gap_b * gap_b) + (
                gap_c * gap_c + gap_d * gap_d
            )
    for f in range(4 * n_blocks, n_features):
        a = points[f, i]
        for j in range(n_columns):
            gap_a = columns[f, j] - a
            squares[j] += gap_a * gap_a


@kernel
def _draw(values, total, uniform):
    """Index drawn with probability proportional to the values."""
    threshold = uniform * total
    chosen = 0
    passed = 0.0
    for i in range(values.shape[0]):
        if values[i] > 0.0:
            chosen = i
            passed += values[i]
            if passed > threshold:
                break
    return chosen


@kernel
def _insert(i, j, square, first, second, near, next_near):
    """Note that centre j lies at this squared distance from row i."""
    if square < near[i]:
        second[i] = first[i]
        next_near[i] = near[i]
        first[i] = j
        near[i] = square
    elif square < next_near[i]:
        second[i] = j
        next_near[i] = square


@kernel
def draw_tuple(columns, uniforms, centers, first, second, near, next_near):
    """Draw rows as centres, each with probability proportional to the squared distance.

    k-means++ without trials. `uniforms` (n_clusters,) lie in [0, 1). Where every row
    is a centre already, row 0 is repeated. Fills `centers` and the four arrays.
    """
    n_features, n_samples = columns.shape
    squares = np.empty(n_samples)
    for i in range(n_samples):
        near[i] = math.inf
        next_near[i] = math.inf
    total = 0.0
    for j in range(centers.shape[1]):
        drawn = int(uniforms[j] * n_samples)
        if j > 0:
            drawn = _draw(near, total, uniforms[j])
        for f in range(n_features):
            centers[f, j] = columns[f, drawn]
        _squares(columns, columns, drawn, squares)
        total = 0.0
        for i in range(n_samples):
            if squares[i] < next_near[i]:
                _insert(i, j, squares[i], first, second, near, next_near)
            total += near[i]


@kernel
def _find_two(i, squares, first, second, near, next_near):
    """Two nearest centres of row i, given the squared distances to all."""
    near[i] = math.inf
    next_near[i] = math.inf
    for j in range(squares.shape[0]):
        if squares[j] < next_near[i]:
            _insert(i, j, squares[j], first, second, near, next_near)


@kernel
def find_nearest(columns, centers, first, second, near, next_near):
    """Fill the four arrays for the columns of `centers`."""
    squares = np.empty(centers.shape[1])
    for i in range(columns.shape[1]):
        _squares(centers, columns, i, squares)
        _find_two(i, squares, first, second, near, next_near)


@kernel
def swap_moves(columns, uniforms, centers, first, second, near, next_near):
    """Replace one centre by a row, once for each of `uniforms`, if inertia falls.

    The row is drawn with probability proportional to `near`; the centre that leaves is
    the one whose loss raises the inertia least. Updates `centers` and the four arrays;
    returns the number of moves accepted.
    """
    n_features, n_samples = columns.shape
    n_clusters = centers.shape[1]
    without = np.empty(n_clusters)  # what the rows of each centre would pay without it
    price = np.empty(n_clusters)
    squares = np.empty(n_samples)
    to_centers = np.empty(n_clusters)
    n_accepted = 0
    total = 0.0
    changed = True
    for move in range(uniforms.shape[0]):
        if changed:
            total = 0.0
            for j in range(n_clusters):
                without[j] = 0.0
            for i in range(n_samples):
                total += near[i]
                without[first[i]] += next_near[i] - near[i]
            changed = False
        if not total > 0.0:
            break
        drawn = _draw(near, total, uniforms[move])
        _squares(columns, columns, drawn, squares)
        for j in range(n_clusters):
            price[j] = without[j]
        gain = 0.0
        for i in range(n_samples):
            if squares[i] < next_near[i]:
                gain += near[i] - min(squares[i], near[i])
                price[first[i]] -= next_near[i] - max(squares[i], near[i])
        leaving = 0
        for j in range(1, n_clusters):
            if price[j] < price[leaving]:
                leaving = j
        if not price[leaving] < gain:
            continue
        changed = True
        n_accepted += 1
        for f in range(n_features):
            centers[f, leaving] = columns[f, drawn]
        for i in range(n_samples):
            if first[i] == leaving or second[i] == leaving:
                _squares(centers, columns, i, to_centers)
                _find_two(i, to_centers, first, second, near, next_near)
            elif squares[i] < next_near[i]:
                _insert(i, leaving, squares[i], first, second, near, next_near)
    return n_accepted
