"""Markov chain on sparse additive models, with coefficients integrated out.

A model gives each variable an order: the number of its first functions in the model.
Its log weight is

    log_size[variables] + log_total[functions] + b' P^-1 b / 2 - log|P| / 2

with P = G + ridge I, G the Gram matrix of its functions and b their linear terms.

A pair of variables counts as one more variable, with functions of its own. It is in a
model only if both of its variables are: other models have no neighbours and no weight.

A `form` holds G and b: `diagonal` (n_features, max_order, max_order), the blocks of G;
`linear` (n_features * max_order,), b; `rows`, those rows of G that have been needed;
`index` (6, n_features): how many functions each variable has (RANK), of how many the
rows are READY, the FIRST and the SECOND variable of a pair, -1 for a variable; the
variables in the SEQUENCE in which moves choose among them, and the POSITION of each in
this sequence; and `places` (n_features, max_order), where the rows of each function are
in `rows`.

A `prior` is a table and the ridge. The table's columns are numbers of variables, or of
functions. Its rows are the cumulative probabilities of the kinds of moves, the log
ratios of the probabilities of the reverse move and the move, and the terms of the log
weight: the last rows are log_size of a model with 0, 1, ... pairs.

A `chain` is `model`, integers, and `numbers` of two models, the current and a proposed
one, with a tally of the moves; `factors`, of each the Cholesky factor L of P, below it
L^-1 b, and one more, scratch; and `work`, scratch. Its `record` is `visits`, in a row
the number of the model after a move, and the functions of the model of that number;
and `weights`, its log weight. `additive_state` names what the arrays hold.
"""

import math

import numpy as np

from . import kernel, part

ADD, DELETE, ORDER, SWAP, STAY = 0, 1, 2, 3, 4
# Rows of the index.
RANK, READY, FIRST, SECOND, SEQUENCE, POSITION = 0, 1, 2, 3, 4, 5
# Rows of the table, after those of the kinds; those of the logs are of ADD and DELETE.
LOG_RATIO, LOG_TOTAL, LOG_SIZE = 4, 6, 7
# Rows of a model: its variables, their orders; of its functions the variables they
# belong to, and their places there; counts: of variables and of functions, of the first
# variables of the sequence whose larger neighbours have been weighed, whether its
# smaller neighbours have, and it factorised, of its pairs, and of how often they need a
# variable that is absent; and of each variable 1 if it is in, and 2 for each pair that
# needs it.
FEATURES, ORDERS, OWNERS, PLACES, COUNTS, STATUS = 0, 1, 2, 3, 4, 5
LARGER, SMALLER, SIZE, TOTAL, KNOWN, PAIRS, ABSENT = 0, 1, 2, 3, 4, 5, 6
# Rows of its numbers: log weights of its LARGER and SMALLER neighbours against its own,
# and scalars: those of all of them, and its own.
SCALARS, WEIGHT, FIT = 2, 2, 3
# Rows of the tally: moves tried, accepted; then which model is current, the number of
# models and of moves recorded.
TALLY = 2
TRIED, ACCEPTED, OTHER = 0, 1, 2
CURRENT, MODELS, MOVES = 0, 1, 2
SCRATCH = 2  # number of a factor
FITS, HALF_LOGS = -2, -1  # rows of the scratch
TINY = 1e-300
BLOCK = 64  # columns of G that are computed at a time, about


@kernel
def run(form, prior, chain, record, uniforms, windows):
    """Move the chain, once for each row of `uniforms`, or until it needs rows of G.

    A move to another variable chooses among the first variables of the sequence and
    those of one window of the others, drawn whatever the model is: `windows` are the
    number of the former, and of the windows. With each window such moves leave the
    posterior invariant, and need the weights of fewer variables.

    Returns the number of moves made. If it is smaller than asked for, the rows of some
    variable of the current model are not ready. A uniform number of 1, the first of its
    row of four, makes the chain stay and compute the weights of the neighbours of its
    model. If the record has no rows, nothing is recorded.
    """
    index, table, (visits, _) = form[3], prior[0], record
    model, numbers, _, _ = chain
    p, width = form[0].shape[:2]
    n_first, n_windows = windows
    n_pieces = n_windows if n_windows > 0 else 1
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
        left = uniforms[step, 2]
        if ORDER <= kind <= SWAP:
            place = np.int64(left * size)
            left = left * size - place
        window = np.int64(left * n_windows)
        first = n_first + window * (p - n_first) // n_pieces
        last = n_first + (window + 1) * (p - n_first) // n_pieces
        offered, left = (n_first, first, last), uniforms[step, 3]
        accepted = moved = True
        if kind == STAY:
            _weigh(LARGER, form, prior, chain, now, offered)
            _weigh(SMALLER, form, prior, chain, now, offered)
            continue
        if ORDER <= kind <= SWAP:
            column = _redraw(kind, form, prior, chain, place, offered, left)
            moved = column >= 0
            if moved:
                _propose(form, prior, chain, now, new, place, column)
        else:
            forth, back = (LARGER, SMALLER) if kind == ADD else (SMALLER, LARGER)
            log_uniform = math.log(1.0 - uniforms[step, 1])
            _weigh(forth, form, prior, chain, now, offered)
            log_ratio = numbers[now, SCALARS, forth] + table[LOG_RATIO + kind, size]
            # The reverse move can choose the current model, so the ratio is not larger.
            accepted = log_uniform < log_ratio
            if accepted:
                picked = _pick(forth, form, chain, now, offered, left)
                log_ratio -= numbers[now, forth, picked]
                place, column = (size, picked) if kind == ADD else (picked, -1)
                _propose(form, prior, chain, now, new, place, column)
                _weigh(back, form, prior, chain, new, offered)
                log_ratio -= numbers[new, SCALARS, back]
                accepted = log_uniform < log_ratio
        model[TALLY, TRIED, kind] += 1
        model[TALLY, ACCEPTED, kind] += accepted
        if accepted and moved:
            model[TALLY, OTHER, CURRENT] = new
        if visits.shape[0] > 0:
            _record(chain, record, width, accepted and moved)
    return uniforms.shape[0]


@part
def _redraw(kind, form, prior, chain, place, offered, left):
    """Redraw the order of the variable at a place, or the variable and its order.

    Another variable, by a SWAP, is one of those that the move is offered, if the one at
    the place is one of them, too. Returns the column of the last function; -1 if it is
    the same as before.
    """
    index, width = form[3], form[0].shape[1]
    model = chain[0]
    now = model[TALLY, OTHER, CURRENT]
    j, order = model[now, FEATURES, place], model[now, ORDERS, place]
    at = index[POSITION, j]
    if kind == ORDER:
        offered = 0, at, at + 1
    elif not _is_offered(at, offered):
        return -1
    _propose(form, prior, chain, now, 1 - now, place, -1)
    _weigh(LARGER, form, prior, chain, 1 - now, offered)
    column = _pick(LARGER, form, chain, 1 - now, offered, left)
    return -1 if column == j * width + order - 1 else column


@part
def _record(chain, record, width, is_new):
    """Record the current model, if it is new, and its number."""
    (visits, weights), (model, numbers, _, _) = record, chain
    now = model[TALLY, OTHER, CURRENT]
    if is_new or model[TALLY, OTHER, MODELS] == 0:
        for s in range(model[now, COUNTS, TOTAL]):
            column = model[now, OWNERS, s] * width + model[now, PLACES, s]
            visits[model[TALLY, OTHER, MODELS], 1 + s] = column + 1
        weights[model[TALLY, OTHER, MODELS]] = numbers[now, SCALARS, WEIGHT]
        model[TALLY, OTHER, MODELS] += 1
    visits[model[TALLY, OTHER, MOVES], 0] = model[TALLY, OTHER, MODELS] - 1
    model[TALLY, OTHER, MOVES] += 1


@kernel
def _propose(form, prior, chain, source, which, position, column):
    """Make a model by changing another one, and factorise its P.

    The variable at a position is left out, if there is one; of that of a column of G,
    if it is not -1, the functions up to it come in. An entry of G is in the rows of
    either of its variables: one of them suffices.
    """
    (diagonal, linear, rows, index, places), table, ridge = form, prior[0], prior[1]
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
                factors[which, s, t] = rows[places[j, a], k * width + b]
            else:
                factors[which, s, t] = rows[places[k, b], j * width + a]
        factors[which, q, s] = linear[j * width + a]
    _eliminate(factors, which, q, ridge)
    log_weight = table[LOG_SIZE + pairs, size - pairs] + table[LOG_TOTAL, q]
    absent = 2 * pairs
    for i in range(size):
        absent -= model[which, STATUS, model[which, FEATURES, i]] // 2
    fit = 0.0
    for s in range(q):
        fit += 0.5 * factors[which, q, s] ** 2
        log_weight -= math.log(factors[which, s, s])
    numbers[which, SCALARS, FIT] = fit
    numbers[which, SCALARS, WEIGHT] = log_weight + _log_fit(fit, prior[3], prior[4])
    model[which, COUNTS, SIZE] = size
    model[which, COUNTS, TOTAL] = q
    model[which, COUNTS, PAIRS] = pairs
    model[which, COUNTS, ABSENT] = absent
    model[which, COUNTS, LARGER] = 0
    model[which, COUNTS, SMALLER] = 0
    model[which, COUNTS, KNOWN] = 1


@kernel
def _log_fit(fit, freedom, square):
    """Return the log-likelihood, given b' P^-1 b / 2 of the model.

    Where the variance of the noise is integrated out, it is that of Student's t.
    """
    if freedom == 0.0:
        return fit
    unexplained = 1.0 - 2.0 * fit / square
    return -0.5 * freedom * math.log(unexplained if unexplained > TINY else TINY)


@kernel
def _pairs_of(kind, index, model, which, c):
    """Return the number of pairs of a LARGER or SMALLER neighbour; -1 if none exists.

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
def _weigh(kind, form, prior, chain, which, offered):
    """Compute log weight ratios of LARGER or SMALLER neighbours, if not yet known.

    They have one of the variables offered more, or one less; the sum of those offered
    follows. One Cholesky factor, of what the model leaves of the variable's block of G,
    gives all its orders; for the smaller ones it is that of the variable's block of
    P^-1. Both are W'W, W = L^-1 times the rows of G, or times I.
    """
    model, (n_first, first, last) = chain[0], offered
    if kind == SMALLER:
        if model[which, COUNTS, SMALLER] == 0:
            _weigh_smaller(form, prior, chain, which)
            model[which, COUNTS, SMALLER] = 1
    else:
        known = model[which, COUNTS, LARGER]
        if known < n_first:
            _weigh_larger(form, prior, chain, which, known, n_first)
            model[which, COUNTS, LARGER] = n_first
        if first < last:
            _weigh_larger(form, prior, chain, which, first, last)
    _sum(kind, form, chain, which, offered)


@kernel
def _weigh_larger(form, prior, chain, which, first, last):
    """Compute log weight ratios of models with one more variable, at some places.

    Columns are computed in blocks that stay in the nearest cache.
    """
    diagonal, linear, rows, index, places = form
    table, ridge, most = prior[:3]
    model, numbers, factors, work = chain
    width = diagonal.shape[1]
    fit_before = numbers[which, SCALARS, FIT]
    log_fit = _log_fit(fit_before, prior[3], prior[4])
    size, q = model[which, COUNTS, SIZE], model[which, COUNTS, TOTAL]
    pairs = model[which, COUNTS, PAIRS]
    before = table[LOG_SIZE + pairs, size - pairs] + table[LOG_TOTAL, q]
    step = BLOCK // width if width < BLOCK else 1
    for start in range(first, last, step):
        end = start + step if start + step < last else last
        for s in range(q + 1):
            place = places[model[which, OWNERS, s], model[which, PLACES, s]]
            for i in range(start, end):
                here, there = (i - start) * width, index[SEQUENCE, i] * width
                for b in range(width):
                    d = there + b
                    work[s, here + b] = rows[place, d] if s < q else linear[d]
            _divide(factors, which, work, s, q, 0, (end - start) * width)
        for i in range(start, end):
            c, here = index[SEQUENCE, i], (i - start) * width
            n_pairs = _pairs_of(LARGER, index, model, which, c)
            order = index[RANK, c] if n_pairs >= 0 and size < most else 0
            for a in range(order):
                for b in range(order):
                    factors[SCRATCH, a, b] = diagonal[c, a, b]
            _add_square(factors, work, here, q, order, -1.0)
            _eliminate(factors, SCRATCH, order, ridge)
            fit, half_log = 0.0, 0.0
            for a in range(order):
                d = c * width + a
                fit += 0.5 * factors[SCRATCH, order, a] ** 2
                half_log += math.log(factors[SCRATCH, a, a])
                work[FITS, d], work[HALF_LOGS, d] = fit, half_log
                after = table[LOG_SIZE + n_pairs, size + 1 - n_pairs]
                after += table[LOG_TOTAL, q + a + 1]
                gain = _log_fit(fit_before + fit, prior[3], prior[4]) - log_fit
                numbers[which, LARGER, d] = gain - half_log + (after - before)
            for a in range(order, width):
                numbers[which, LARGER, c * width + a] = -math.inf


@part
def _weigh_smaller(form, prior, chain, which):
    """Compute log weight ratios of the models with one variable less."""
    index, table = form[3], prior[0]
    model, numbers, factors, work = chain
    size, q = model[which, COUNTS, SIZE], model[which, COUNTS, TOTAL]
    pairs = model[which, COUNTS, PAIRS]
    before = table[LOG_SIZE + pairs, size - pairs] + table[LOG_TOTAL, q]
    fit_before = numbers[which, SCALARS, FIT]
    before += _log_fit(fit_before, prior[3], prior[4])
    for start in range(0, q, BLOCK):
        end = start + BLOCK if start + BLOCK < q else q
        for s in range(q + 1):
            for d in range(start, end):
                work[s, d] = s == d
            _divide(factors, which, work, s, q, start, end)
    d = 0
    for c in range(size):
        order = model[which, ORDERS, c]
        n_pairs = _pairs_of(SMALLER, index, model, which, model[which, FEATURES, c])
        numbers[which, SMALLER, c] = -math.inf
        if n_pairs >= 0:
            for a in range(order):
                for b in range(order):
                    factors[SCRATCH, a, b] = 0.0
            _add_square(factors, work, d, q, order, 1.0)
            _eliminate(factors, SCRATCH, order, TINY)
            after = table[LOG_SIZE + n_pairs, size - 1 - n_pairs]
            after += table[LOG_TOTAL, q - order]
            fit = fit_before
            for a in range(order):
                fit -= 0.5 * factors[SCRATCH, order, a] ** 2
                after -= math.log(factors[SCRATCH, a, a])
            after += _log_fit(fit, prior[3], prior[4])
            numbers[which, SMALLER, c] = after - before
        d += order


@kernel
def _add_square(factors, work, column, q, order, sign):
    """Add sign W'W to the scratch, W some columns; write their part of b below it."""
    for a in range(order):
        factors[SCRATCH, order, a] = work[q, column + a]
    for s in range(q):
        for a in range(order):
            x = sign * work[s, column + a]
            for b in range(order):  # not only to a: whole vectors are faster
                factors[SCRATCH, a, b] += x * work[s, column + b]


@part
def _is_offered(position, offered):
    """Return whether a move may choose the variable at a position of the sequence."""
    n_first, first, last = offered
    return position < n_first or first <= position < last


@part
def _sum(kind, form, chain, which, offered):
    """Write the log of the summed weights of the neighbours by offered variables."""
    (model, numbers, _, _), index, width = chain, form[3], form[0].shape[1]
    highest, total = -math.inf, 0.0
    for again in range(2):
        for i in range(_n_offered(kind, model, which, offered)):
            low, high = _neighbors_of(kind, index, width, model, which, offered, i)
            for d in range(low, high):
                if again:
                    total += math.exp(numbers[which, kind, d] - highest)
                elif numbers[which, kind, d] > highest:
                    highest = numbers[which, kind, d]
        if highest == -math.inf:
            break
    if total > 0.0:
        highest += math.log(total)
    numbers[which, SCALARS, kind] = highest


@kernel
def _pick(kind, form, chain, which, offered, left):
    """Draw one of the neighbours, in proportion to their weights."""
    (model, numbers, _, _), index, width = chain, form[3], form[0].shape[1]
    picked = -1
    for i in range(_n_offered(kind, model, which, offered)):
        low, high = _neighbors_of(kind, index, width, model, which, offered, i)
        for d in range(low, high):
            share = math.exp(numbers[which, kind, d] - numbers[which, SCALARS, kind])
            if share > 0.0:
                picked = d
                left -= share
                if left < 0.0:
                    return picked
    return picked


@part
def _n_offered(kind, model, which, offered):
    """Return the number of variables whose neighbours may be offered."""
    n_first, first, last = offered
    return model[which, COUNTS, SIZE] if kind == SMALLER else n_first + last - first


@kernel
def _neighbors_of(kind, index, width, model, which, offered, i):
    """Return where the weights of the neighbours by one variable begin and end."""
    n_first, first, _ = offered
    if kind == SMALLER:
        at = index[POSITION, model[which, FEATURES, i]]
        return i, i + _is_offered(at, offered)
    c = index[SEQUENCE, i if i < n_first else first + i - n_first]
    return c * width, c * width + index[RANK, c]


@kernel
def _divide(factors, which, work, s, q, start, end):
    """Compute row s of L^-1 times the scratch from the earlier rows; of b if s is q.

    Four rows at a time: each entry is then read and written a quarter as often.
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
    if s < q:
        x = 1.0 / factors[which, s, s]
        for d in range(start, end):
            work[s, d] *= x
