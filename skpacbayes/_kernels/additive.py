"""A Markov chain on sparse additive models, their coefficients integrated out.

A model gives each variable an order: how many of its functions, the first ones, are in.
Its log weight is

    log_size[variables] + log_total[functions] + b' P^-1 b / 2 - log|P| / 2

with P = G + ridge I, G the Gram matrix of its functions and b their linear terms.

A pair of variables counts as one more variable, with functions of its own. It is in a
model only if both of its variables are: other models have no neighbours and no weight.

A `form` is what is known of G and b: `diagonal` (n_features, max_order, max_order),
the blocks of G; `linear` (n_features * max_order,), b; `rows`, rows of G, as they are
needed; and `index` (5, n_features): how many functions each variable has (RANK), that
the rows of the first READY of them are in rows[SLOT], (max_order, n_features *
max_order), and the FIRST and the SECOND variable of a pair, -1 for
a variable.

A `prior` is a table and the ridge. The table's columns are numbers of variables, or of
functions; its rows the probabilities that a move is of a kind or of one before it, logs
of those of the move back over those of a move, and the terms of the log weight: the
last rows are log_size of a model with 0, 1, ... pairs.

A `chain` is `model`, integers, and `numbers` of two models, the current and a proposed
one, with a tally of the moves; `factors`, of each the Cholesky factor L of P, below it
L^-1 b, and one more, scratch; and `work`, scratch. Its `record` is `visits`, in a row
the number of the model after a move, and the functions of the model of that number;
and `weights`, its log weight. `additive._chain_state` names what the arrays hold.
"""

import math

from . import kernel

ADD, DELETE, ORDER, SWAP, STAY = 0, 1, 2, 3, 4
RANK, SLOT, READY, FIRST, SECOND = 0, 1, 2, 3, 4  # rows of the index
# Rows of the table, after those of the kinds; those of the logs are of ADD and DELETE.
LOG_RATIO, LOG_TOTAL, LOG_SIZE = 4, 6, 7
# Rows of a model: its variables, their orders; of its functions the variables they
# belong to, and their places there; counts: of variables and of functions, whether its
# larger and its smaller neighbours have been weighed, and it factorised, of its pairs,
# and of how often they need a variable that is absent; and of each variable 1 if it is
# in, and 2 for each pair that needs it.
FEATURES, ORDERS, OWNERS, PLACES, COUNTS, STATUS = 0, 1, 2, 3, 4, 5
LARGER, SMALLER, SIZE, TOTAL, KNOWN, PAIRS, ABSENT = 0, 1, 2, 3, 4, 5, 6
# Rows of its numbers: log weights of its LARGER and SMALLER neighbours against its own,
# and scalars: those of all of them, and its own.
SCALARS, WEIGHT = 2, 2
# Rows of the tally: moves tried, accepted; then which model is current, the number of
# models and of moves recorded.
TALLY = 2
TRIED, ACCEPTED, OTHER = 0, 1, 2
CURRENT, MODELS, MOVES = 0, 1, 2
SCRATCH = 2  # number of a factor
FITS, HALF_LOGS = -2, -1  # rows of the scratch
TINY = 1e-300
BLOCK = 64  # columns of the scratch that are computed at a time


@kernel
def run(form, prior, chain, record, uniforms, n_windows):
    """Move the chain, once for each row of `uniforms`, or until it needs rows of G.

    A move that adds a variable, or deletes one, chooses among those of one of
    `n_windows` windows, drawn whatever the model is. With each window such moves leave
    the posterior invariant, and weigh so many variables less.

    Returns the number of moves made. If it is smaller than asked for, the rows of some
    variable of the current model are not ready. A uniform number of 1, the first of its
    row of four, has the chain stay and weigh the neighbours of its model. If the record
    has no rows nothing is recorded.
    """
    (diagonal, _, _, index), (table, _, _), (visits, weights) = form, prior, record
    model, numbers, _, _ = chain
    p, width = diagonal.shape[:2]
    for step in range(uniforms.shape[0]):
        now = model[TALLY, OTHER, CURRENT]
        new, size = 1 - now, model[now, COUNTS, SIZE]
        for i in range(size):
            if index[READY, model[now, FEATURES, i]] < model[now, ORDERS, i]:
                return step
        if model[now, COUNTS, KNOWN] == 0:
            _propose(form, prior, chain, now, now, size, -1)
        kind = ADD
        while kind < STAY and uniforms[step, 0] >= table[kind, size]:
            kind += 1
        position, column = size, -1
        first, last = 0, p
        if kind <= DELETE and n_windows > 1:
            window = int(uniforms[step, 2] * n_windows)
            first, last = window * p // n_windows, (window + 1) * p // n_windows
        forth, back = LARGER, SMALLER
        if DELETE <= kind <= SWAP:
            forth, back = SMALLER, LARGER
        log_uniform, log_ratio = math.log(1.0 - uniforms[step, 1]), math.inf
        if ORDER <= kind <= SWAP:
            position = int(uniforms[step, 2] * size)
            if kind == ORDER:
                first = model[now, FEATURES, position]
                last = first + 1
        else:
            _weigh(forth, form, prior, chain, now, first, last)
            if kind != STAY:
                log_ratio = numbers[now, SCALARS, forth] + table[LOG_RATIO + kind, size]
        # The current model is one of those back, so the ratio is not larger than that.
        accepted = log_uniform < log_ratio
        if accepted:
            if kind <= DELETE:
                left = uniforms[step, 3]
                picked = _pick(forth, model, numbers, now, first, last, width, left)
                log_ratio -= numbers[now, forth, picked]
                position = picked if kind == DELETE else size
                column = picked if kind == ADD else -1
            if kind != STAY:
                _propose(form, prior, chain, now, new, position, column)
            _weigh(back, form, prior, chain, now if kind == STAY else new, first, last)
            if kind == STAY:
                continue
            if ORDER <= kind <= SWAP:
                left = uniforms[step, 3]
                column = _pick(LARGER, model, numbers, new, first, last, width, left)
                _propose(form, prior, chain, now, new, position, column)
            else:
                log_ratio -= numbers[new, SCALARS, back]
                accepted = log_uniform < log_ratio
        model[TALLY, TRIED, kind] += 1
        if accepted:
            model[TALLY, ACCEPTED, kind] += 1
            model[TALLY, OTHER, CURRENT] = new
        if visits.shape[0] > 0:
            if accepted or model[TALLY, OTHER, MODELS] == 0:
                now = model[TALLY, OTHER, CURRENT]
                for s in range(model[now, COUNTS, TOTAL]):
                    column = model[now, OWNERS, s] * width + model[now, PLACES, s]
                    visits[model[TALLY, OTHER, MODELS], 1 + s] = column + 1
                weights[model[TALLY, OTHER, MODELS]] = numbers[now, SCALARS, WEIGHT]
                model[TALLY, OTHER, MODELS] += 1
            visits[model[TALLY, OTHER, MOVES], 0] = model[TALLY, OTHER, MODELS] - 1
            model[TALLY, OTHER, MOVES] += 1
    return uniforms.shape[0]


@kernel
def _propose(form, prior, chain, source, which, position, column):
    """Make a model of another one and factorise its P.

    The variable at a position is left out, if there is one; of that of a column of G,
    if it is not -1, the functions up to it come in. An entry of G is in the rows of
    either of its variables: one of them suffices.
    """
    (diagonal, linear, rows, index), (table, ridge, _) = form, prior
    model, numbers, factors, _ = chain
    width, size, q, pairs = diagonal.shape[1], 0, 0, 0
    for i in range(model[source, COUNTS, SIZE]):
        if i != position:
            model[which, FEATURES, size] = model[source, FEATURES, i]
            model[which, ORDERS, size] = model[source, ORDERS, i]
            size += 1
    if column >= 0:
        model[which, FEATURES, size] = column // width
        model[which, ORDERS, size] = column % width + 1
        size += 1
    for j in range(index.shape[1]):
        model[which, STATUS, j] = 0
    for i in range(size):
        j = model[which, FEATURES, i]
        model[which, STATUS, j] += 1
        if index[FIRST, j] >= 0:
            pairs += 1
            model[which, STATUS, index[FIRST, j]] += 2
            model[which, STATUS, index[SECOND, j]] += 2
        for a in range(model[which, ORDERS, i]):
            model[which, OWNERS, q] = model[which, FEATURES, i]
            model[which, PLACES, q] = a
            q += 1
    for s in range(q):
        j, a = model[which, OWNERS, s], model[which, PLACES, s]
        for t in range(s + 1):
            k, b = model[which, OWNERS, t], model[which, PLACES, t]
            if j == k:
                factors[which, s, t] = diagonal[j, a, b]
            elif index[READY, j] > a:
                factors[which, s, t] = rows[index[SLOT, j], a, k * width + b]
            else:
                factors[which, s, t] = rows[index[SLOT, k], b, j * width + a]
        factors[which, q, s] = linear[j * width + a]
    _eliminate(factors, which, q, ridge)
    log_weight = table[LOG_SIZE + pairs, size - pairs] + table[LOG_TOTAL, q]
    absent = 2 * pairs
    for i in range(size):
        absent -= model[which, STATUS, model[which, FEATURES, i]] // 2
    for s in range(q):
        log_weight += 0.5 * factors[which, q, s] ** 2 - math.log(factors[which, s, s])
    numbers[which, SCALARS, WEIGHT] = log_weight
    model[which, COUNTS, SIZE] = size
    model[which, COUNTS, TOTAL] = q
    model[which, COUNTS, PAIRS] = pairs
    model[which, COUNTS, ABSENT] = absent
    model[which, COUNTS, LARGER] = 0
    model[which, COUNTS, SMALLER] = 0
    model[which, COUNTS, KNOWN] = 1


@kernel
def _pairs_of(kind, index, model, which, c):
    """Count the pairs of a LARGER or a SMALLER neighbour; -1 if there is none.

    It has the variable, or the pair, c more or less.
    """
    first, second = index[FIRST, c], index[SECOND, c]
    status, pairs = model[which, STATUS, c], model[which, COUNTS, PAIRS]
    if kind == SMALLER:
        return -1 if status > 1 else pairs - (first >= 0)
    if status != 2 * model[which, COUNTS, ABSENT]:
        return -1  # it is in, or another one has to come in first
    if first < 0:
        return pairs
    both = model[which, STATUS, first] & model[which, STATUS, second] & 1
    return pairs + 1 if both else -1


@kernel
def _eliminate(factors, which, q, ridge):
    """Cholesky factor L, in place, of a matrix + ridge I; the row b below: L^-1 b."""
    for t in range(q):
        value = factors[which, t, t]
        for r in range(t):
            value -= factors[which, t, r] * factors[which, t, r]
        value = math.sqrt(value + ridge) if value > 0.0 else math.sqrt(ridge)
        factors[which, t, t] = value
        inverse = 1.0 / value
        for s in range(t + 1, q + 1):
            value = factors[which, s, t]
            for r in range(t):
                value -= factors[which, s, r] * factors[which, t, r]
            factors[which, s, t] = value * inverse


@kernel
def _weigh(kind, form, prior, chain, which, first, last):
    """Log weights, against a model's, of its LARGER or SMALLER neighbours, if unknown.

    They have one of some variables more, or less. One Cholesky factor, of what the
    model leaves of the variable's block of G, gives all its orders; for the smaller
    ones it is that of the variable's block of P^-1. Both are W'W, W = L^-1 times the
    rows of G, or times I.
    """
    (diagonal, linear, rows, index), (table, ridge, most) = form, prior
    model, numbers, factors, work = chain
    p, width = diagonal.shape[:2]
    if model[which, COUNTS, kind] == 1:
        if last - first < p:
            _sum(kind, model, numbers, which, first, last, width)
        return
    size, q = model[which, COUNTS, SIZE], model[which, COUNTS, TOTAL]
    pairs = model[which, COUNTS, PAIRS]
    model[which, COUNTS, kind] = last - first == p
    window = first, last
    low, high = first * width, last * width
    if kind == SMALLER:
        first, last, low, high = 0, size, 0, q
    for start in range(low, high, BLOCK):  # columns that stay in the nearest cache
        end = min(start + BLOCK, high)
        for s in range(q + 1):
            slot, a = index[SLOT, model[which, OWNERS, s]], model[which, PLACES, s]
            for d in range(start, end):
                if kind == SMALLER:
                    work[s, d] = s == d
                else:
                    work[s, d] = rows[slot, a, d] if s < q else linear[d]
            _subtract(factors, which, work, s, start, end)
            if s < q:
                x = 1.0 / factors[which, s, s]
                for d in range(start, end):
                    work[s, d] *= x
    d, before = low, table[LOG_SIZE + pairs, size - pairs] + table[LOG_TOTAL, q]
    for c in range(first, last):
        own, sign, least = c, -1.0, ridge
        if kind == SMALLER:
            own, sign, least = model[which, FEATURES, c], 1.0, TINY
        n_pairs = _pairs_of(kind, index, model, which, own)
        order = index[RANK, c] if n_pairs >= 0 and size < most else 0
        if kind == SMALLER:
            order = model[which, ORDERS, c]
        for a in range(order):
            for b in range(order):
                factors[SCRATCH, a, b] = diagonal[c, a, b] if kind == LARGER else 0.0
            factors[SCRATCH, order, a] = work[q, d + a]
        for s in range(q):
            for a in range(order):
                x = sign * work[s, d + a]
                for b in range(order):  # not to a alone: whole vectors are faster
                    factors[SCRATCH, a, b] += x * work[s, d + b]
        _eliminate(factors, SCRATCH, order, least)
        fit, half_log = 0.0, 0.0
        for a in range(order):
            fit += 0.5 * factors[SCRATCH, order, a] ** 2
            half_log += math.log(factors[SCRATCH, a, a])
            if kind == LARGER:
                work[FITS, d + a], work[HALF_LOGS, d + a] = fit, half_log
                after = table[LOG_SIZE + n_pairs, size + 1 - n_pairs]
                after += table[LOG_TOTAL, q + a + 1]
                numbers[which, LARGER, d + a] = fit - half_log + (after - before)
        if kind == SMALLER:
            numbers[which, SMALLER, c] = -math.inf
            if n_pairs >= 0:
                after = table[LOG_SIZE + n_pairs, size - 1 - n_pairs]
                after += table[LOG_TOTAL, q - order]
                numbers[which, SMALLER, c] = (after - before) - fit - half_log
            d += order
        else:
            for a in range(order, width):
                numbers[which, LARGER, d + a] = -math.inf
            d += width
    _sum(kind, model, numbers, which, window[0], window[1], width)


@kernel
def _sum(kind, model, numbers, which, first, last, width):
    """Log weight, as a scalar, of the neighbours by some variables together."""
    low, high = first * width, last * width
    if kind == SMALLER:
        low, high = 0, model[which, COUNTS, SIZE]
    highest, total = -math.inf, 0.0
    for d in range(low, high):
        if kind == LARGER or first <= model[which, FEATURES, d] < last:
            highest = max(highest, numbers[which, kind, d])
    if highest > -math.inf:
        for d in range(low, high):
            if kind == LARGER or first <= model[which, FEATURES, d] < last:
                total += math.exp(numbers[which, kind, d] - highest)
        highest += math.log(total)
    numbers[which, SCALARS, kind] = highest


@kernel
def _subtract(factors, which, work, s, start, end):
    """Subtract from row s of the scratch the rows before it, times those of L.

    Four at a time: an entry is then read and written a quarter as often.
    """
    r = 0
    while r + 4 <= s:
        x, y = factors[which, s, r], factors[which, s, r + 1]
        z, w = factors[which, s, r + 2], factors[which, s, r + 3]
        for d in range(start, end):
            value = work[s, d] - x * work[r, d]
            value -= y * work[r + 1, d]
            value -= z * work[r + 2, d]
            work[s, d] = value - w * work[r + 3, d]
        r += 4
    while r < s:
        x = factors[which, s, r]
        for d in range(start, end):
            work[s, d] -= x * work[r, d]
        r += 1


@kernel
def _pick(kind, model, numbers, which, first, last, width, left):
    """Draw one of the neighbours by some variables, in proportion to their weights."""
    low, high = first * width, last * width
    if kind == SMALLER:
        low, high = 0, model[which, COUNTS, SIZE]
    picked = low
    for d in range(low, high):
        if kind == SMALLER and not first <= model[which, FEATURES, d] < last:
            continue
        share = math.exp(numbers[which, kind, d] - numbers[which, SCALARS, kind])
        if share > 0.0:
            picked = d
            left -= share
            if left < 0.0:
                break
    return picked
