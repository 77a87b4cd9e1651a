"""Tuples of k-means centres: seeding by squared distance, and moves of one centre.

Rows and centres are the columns of C-contiguous arrays, `columns` (n_features,
n_samples) and `centers` (n_features, n_clusters): a loop over columns has no sum that
must be taken in order, so it runs on the processor's vectors. For each row four arrays
hold its two nearest centres and the squared distances to them: `first`, `second`,
`near` and `next_near`. `memory` (n_clusters, n_samples) holds the squared distances to
all centres, or has the shape (0, 0): then they are computed again where needed.
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
    for f in range(n_features % 2):
        here = points[f, i]
        for j in range(n_columns):
            gap = columns[f, j] - here
            squares[j] = gap * gap
    for f in range(n_features % 2, n_features, 2):
        here = points[f, i]
        there = points[f + 1, i]
        for j in range(n_columns):
            gap = columns[f, j] - here
            other = columns[f + 1, j] - there
            squares[j] += gap * gap + other * other


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
def _sum(values):
    """Sum of the values, in two parts that the processor adds at a time."""
    n_pairs = values.shape[0] // 2
    even = 0.0
    odd = 0.0
    for pair in range(n_pairs):
        even += values[2 * pair]
        odd += values[2 * pair + 1]
    if values.shape[0] % 2 == 1:
        even += values[2 * n_pairs]
    return even + odd


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
def _remember(j, squares, memory):
    """Keep the squared distances of all rows from centre j, if they are kept."""
    if memory.shape[0] > 0:
        for i in range(squares.shape[0]):
            memory[j, i] = squares[i]


@kernel
def draw_tuple(columns, uniforms, centers, memory, first, second, near, next_near):
    """Draw rows as centres, each with probability proportional to the squared distance.

    k-means++ without trials. `uniforms` (n_clusters,) lie in [0, 1). Where every row
    is a centre already, row 0 is repeated. Fills all the other arrays.
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
        _remember(j, squares, memory)
        for i in range(n_samples):  # as `_insert` does, for all rows and no branch
            square = squares[i]
            nearest = square < near[i]
            other = j if square < next_near[i] else second[i]
            second[i] = first[i] if nearest else other
            first[i] = j if nearest else first[i]
            next_near[i] = min(next_near[i], max(near[i], square))
            near[i] = min(near[i], square)
        total = _sum(near)


@kernel
def _find_two(i, squares, first, second, near, next_near):
    """Two nearest centres of row i, given the squared distances to all."""
    best = 0
    next_best = 0
    least = math.inf
    next_least = math.inf
    for j in range(squares.shape[0]):
        square = squares[j]
        if square < next_least:
            if square < least:
                next_best = best
                next_least = least
                best = j
                least = square
            else:
                next_best = j
                next_least = square
    first[i] = best
    second[i] = next_best
    near[i] = least
    next_near[i] = next_least


@kernel
def find_nearest(columns, centers, memory, first, second, near, next_near):
    """Fill `memory` and the four arrays for the columns of `centers`."""
    squares = np.empty(centers.shape[1])
    for i in range(columns.shape[1]):
        _squares(centers, columns, i, squares)
        _find_two(i, squares, first, second, near, next_near)
        if memory.shape[0] > 0:
            for j in range(centers.shape[1]):
                memory[j, i] = squares[j]


@kernel
def swap_moves(columns, uniforms, centers, memory, first, second, near, next_near):
    """Replace one centre by a row, once for each of `uniforms`, if inertia falls.

    The row is drawn with probability proportional to `near`; the centre that leaves is
    the one whose loss raises the inertia least. Updates all the other arrays; returns
    the number of moves accepted.
    """
    n_features, n_samples = columns.shape
    n_clusters = centers.shape[1]
    without = np.empty(n_clusters)  # what the rows of each centre would pay without it
    price = np.empty(n_clusters)
    squares = np.empty(n_samples)
    closer = np.empty(n_samples, dtype=np.int64)  # rows nearer to it than to `second`
    to_centers = np.empty(n_clusters)
    n_accepted = 0
    total = 0.0
    changed = True
    for move in range(uniforms.shape[0]):
        if changed:
            total = _sum(near)
            for j in range(n_clusters):
                without[j] = 0.0
            for i in range(n_samples):
                without[first[i]] += next_near[i] - near[i]
            changed = False
        if not total > 0.0:
            break
        drawn = _draw(near, total, uniforms[move])
        _squares(columns, columns, drawn, squares)
        for j in range(n_clusters):
            price[j] = without[j]
        gain = 0.0
        n_closer = 0
        for i in range(n_samples):  # without a branch that would be mispredicted
            closer[n_closer] = i
            n_closer += squares[i] < next_near[i]
        for rank in range(n_closer):
            i = closer[rank]
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
        _remember(leaving, squares, memory)
        for i in range(n_samples):
            if first[i] == leaving or second[i] == leaving:
                if memory.shape[0] > 0:
                    for j in range(n_clusters):
                        to_centers[j] = memory[j, i]
                else:
                    _squares(centers, columns, i, to_centers)
                _find_two(i, to_centers, first, second, near, next_near)
            elif squares[i] < next_near[i]:
                _insert(i, leaving, squares[i], first, second, near, next_near)
    return n_accepted
