"""A Markov chain on sparse additive models, their coefficients integrated out.

A model gives each variable an order: how many of its functions, the first ones, are in.
Its log weight is

    log_size[variables] + log_total[functions] + b' P^-1 b / 2 - log|P| / 2

with P = G + ridge I, G the Gram matrix of its functions and b their linear terms.

`form` holds G and b: `diagonal` (n_features, max_order, max_order), the blocks of G;
`linear` (n_features * max_order,), b; `rows`, rows of G, as they are needed; and
`index` (3, n_features): how many functions each variable has (RANK), and that the rows
of the first READY of them are in rows[SLOT], (max_order, n_features * max_order).

`prior` holds `log_size`, `log_total`, `ridge`, `radius` and `most`, the largest number
of variables. With a finite `radius` the coefficients are a part of the state, in the l1
ball of that radius, where the prior is flat: the ridge is then the proposal's only.

`chain` holds two models, the current and a proposed one: arrays with an entry for each.
`work` is scratch, and `record` says where the chain has been.
"""

import math

from . import kernel

ADD, DELETE, ORDER, SWAP = 0, 1, 2, 3
RANK, SLOT, READY = 0, 1, 2  # rows of form.index
FEATURES, ORDERS = 0, 1  # rows of a model
# Of a model: numbers of variables and of functions; whether its larger and its smaller
# neighbours have been weighed.
SIZE, TOTAL, LARGER, SMALLER = 0, 1, 2, 3
# Of a model: its log weight, that of all larger and of all smaller ones, against its
# own, and log of the density of the coefficients against the proposal's.
WEIGHT, ALL_LARGER, ALL_SMALLER, IN_BALL = 0, 1, 2, 3
# Rows of the tally: moves tried, accepted; then which model is current, the number of
# models and of moves recorded.
TRIED, ACCEPTED, OTHER = 0, 1, 2
CURRENT, MODELS, MOVES = 0, 1, 2
TINY = 1e-300


@kernel
def run(form, prior, chain, work, record, n_steps, rng):
    """Move the chain, until it has moved `n_steps` times or needs rows of G.

    Returns the number of moves made. If it is smaller than `n_steps`, the rows of some
    variable of the current model are not ready. If `n_steps` is 0, the neighbours of
    the current model are weighed.

    The record of a model holds `counts`, moves after which it was the current one and
    number of functions, `columns` and `coefficients`: the conditional mean, in a ball
    the coefficients themselves; that of a move the model's number and log weight,
    `path`. If `record` has no length nothing is recorded.
    """
    n_features = form.index.shape[1]
    for step in range(n_steps + 1):
        now = chain.tally[OTHER, CURRENT]
        for i in range(chain.counts[now, SIZE]):
            j = chain.model[now, FEATURES, i]
            if form.index[READY, j] < chain.model[now, ORDERS, i]:
                return step
        if step == 0:
            _factorise(form, prior, chain, now)
        if step == n_steps:
            break
        new, size = 1 - now, chain.counts[now, SIZE]
        kind, log_ratio = _kind(size, prior.most, rng.random())
        log_uniform = math.log(1.0 - rng.random())
        position = min(int(rng.random() * size), size - 1)
        first, last = 0, n_features
        if kind == ORDER:
            first = chain.model[now, FEATURES, position]
            last = first + 1
        hopeless = False
        if kind == DELETE:
            _weigh_smaller(prior, chain, work, now)
            log_ratio += chain.scalars[now, ALL_SMALLER]
            # The current model is one of the larger ones, so the ratio is no larger.
            hopeless = log_uniform >= log_ratio and prior.radius == math.inf
            position = _pick_smaller(
                chain.losses, chain.scalars, now, size, rng.random()
            )
            log_ratio -= chain.losses[now, position]
        elif kind == ADD:
            position = size
        if not hopeless:
            _copy(chain.model, chain.counts, now, position)
            if kind != ADD:
                _factorise(form, prior, chain, new)
            if kind != DELETE:
                base = now if kind == ADD else new
                _weigh_larger(form, prior, chain, work, base, first, last)
                j, k = _pick_larger(
                    form.index,
                    chain.gains,
                    chain.shares,
                    chain.scalars,
                    base,
                    first,
                    last,
                    rng.random(),
                )
                total = chain.scalars[base, ALL_LARGER]
                log_ratio += total - chain.gains[base, j, k - 1]
                _insert(chain.model, chain.counts, new, j, k)
                _factorise(form, prior, chain, new)
            if kind == ADD:
                _weigh_smaller(prior, chain, work, new)
                log_ratio -= chain.scalars[new, ALL_SMALLER]
            elif kind == DELETE:
                _weigh_larger(form, prior, chain, work, new, first, last)
                log_ratio -= chain.scalars[new, ALL_LARGER]
            else:
                log_ratio = 0.0
            if prior.radius < math.inf:
                _draw(prior, chain, new, rng)
                log_ratio += chain.scalars[new, IN_BALL] - chain.scalars[now, IN_BALL]
        accepted = not hopeless and log_uniform < log_ratio
        _note(prior, chain, record, kind, accepted)
    if n_steps == 0:
        now = chain.tally[OTHER, CURRENT]
        _weigh_larger(form, prior, chain, work, now, n_steps, n_features)
        _weigh_smaller(prior, chain, work, now)
    return n_steps


@kernel
def _kind(size, most, uniform):
    """Kind of the next move; log ratio of the shares of the move back and of it."""
    if size == 0:
        share = 0.3 if size + 1 < most else 0.6
        return ADD, math.log(share)
    if size < most:
        if uniform < 0.3:
            return ADD, math.log((0.3 if size + 1 < most else 0.6) / 0.3)
        if uniform < 0.6:
            return DELETE, math.log((0.3 if size > 1 else 1.0) / 0.3)
    elif uniform < 0.6:
        return DELETE, math.log((0.3 if size > 1 else 1.0) / 0.6)
    return (ORDER if uniform < 0.9 else SWAP), 0.0


@kernel
def _copy(models, counts, now, position):
    """Propose the current model without the variable at a position, if it has one."""
    new, n = 1 - now, 0
    for i in range(counts[now, SIZE]):
        if i != position:
            models[new, FEATURES, n] = models[now, FEATURES, i]
            models[new, ORDERS, n] = models[now, ORDERS, i]
            n += 1
    counts[new, SIZE] = n


@kernel
def _insert(model, counts, new, feature, order):
    """Add a variable to the proposed model."""
    size = counts[new, SIZE]
    model[new, FEATURES, size] = feature
    model[new, ORDERS, size] = order
    counts[new, SIZE] = size + 1


@kernel
def _factorise(form, prior, chain, which):
    """Cholesky factor of P, in its last row what it makes of b, and the log weight.

    An entry of G is in the rows of either of its variables: one of them suffices.
    """
    width = form.diagonal.shape[1]
    last = chain.factor.shape[1] - 1
    q = 0
    for i in range(chain.counts[which, SIZE]):
        for a in range(chain.model[which, ORDERS, i]):
            chain.columns[which, q] = chain.model[which, FEATURES, i] * width + a
            q += 1
    log_weight = prior.log_size[chain.counts[which, SIZE]] + prior.log_total[q]
    for s in range(q):
        column = chain.columns[which, s]
        j, a = column // width, column % width
        rest = form.linear[column]
        for t in range(s + 1):
            other = chain.columns[which, t]
            k, b = other // width, other % width
            if j == k:
                value = form.diagonal[j, a, b]
            elif form.index[READY, j] > a:
                value = form.rows[form.index[SLOT, j], a, other]
            else:
                value = form.rows[form.index[SLOT, k], b, column]
            for r in range(t):
                value -= chain.factor[which, s, r] * chain.factor[which, t, r]
            if s == t:
                value = math.sqrt(max(value + prior.ridge, prior.ridge))
                log_weight -= math.log(value)
            else:
                value /= chain.factor[which, t, t]
                rest -= value * chain.factor[which, last, t]
            chain.factor[which, s, t] = value
        rest /= chain.factor[which, s, s]
        chain.factor[which, last, s] = rest
        log_weight += 0.5 * rest * rest
    chain.scalars[which, WEIGHT] = log_weight
    chain.counts[which, TOTAL] = q
    chain.counts[which, LARGER] = 0
    chain.counts[which, SMALLER] = 0


@kernel
def _weigh_larger(form, prior, chain, work, which, first, last):
    """Log weights, against the model's, of models with one of some variables more."""
    if chain.counts[which, LARGER] == 1:
        return
    size, q = chain.counts[which, SIZE], chain.counts[which, TOTAL]
    for j in range(first, last):
        chain.shares[which, j] = 0.0
    for i in range(size):
        chain.shares[which, chain.model[which, FEATURES, i]] = -math.inf
    _project(form, chain, work, which, first, last)
    highest = -math.inf
    for j in range(first, last):
        rank = form.index[RANK, j]
        if rank == 0 or size == prior.most or chain.shares[which, j] < 0.0:
            chain.shares[which, j] = -math.inf
            continue
        before = prior.log_size[size] - prior.log_size[size + 1] + prior.log_total[q]
        _weigh_orders(form, prior.ridge, work, q, j, rank)
        largest = -math.inf
        for a in range(rank):
            gain = work.fits[0, j, a] - work.fits[1, j, a]
            gain += prior.log_total[q + a + 1] - before
            chain.gains[which, j, a] = gain
            largest = max(largest, gain)
        total = 0.0
        for a in range(rank):
            total += math.exp(chain.gains[which, j, a] - largest)
        chain.shares[which, j] = largest + math.log(total)
        highest = max(highest, chain.shares[which, j])
    chain.scalars[which, ALL_LARGER] = -math.inf
    if highest > -math.inf:
        total = 0.0
        for j in range(first, last):
            total += math.exp(chain.shares[which, j] - highest)
        chain.scalars[which, ALL_LARGER] = highest + math.log(total)
    chain.counts[which, LARGER] = 1 if last - first == form.index.shape[1] else 0


@kernel
def _project(form, chain, work, which, first, last):
    """Rows of G in the coordinates of the factor; below them, what is left of b."""
    width, bottom = form.diagonal.shape[1], chain.factor.shape[1] - 1
    for d in range(first * width, last * width):
        work.projected[bottom, d] = form.linear[d]
    for s in range(chain.counts[which, TOTAL]):
        column = chain.columns[which, s]
        slot, a = form.index[SLOT, column // width], column % width
        for d in range(first * width, last * width):
            work.projected[s, d] = form.rows[slot, a, d]
        for r in range(s):
            x = chain.factor[which, s, r]
            for d in range(first * width, last * width):
                work.projected[s, d] -= x * work.projected[r, d]
        x, y = 1.0 / chain.factor[which, s, s], chain.factor[which, bottom, s]
        for d in range(first * width, last * width):
            work.projected[s, d] *= x
            work.projected[bottom, d] -= y * work.projected[s, d]


@kernel
def _weigh_orders(form, ridge, work, q, j, rank):
    """Fits of all orders of one more variable, and halves of log determinants.

    One Cholesky factor of what the model leaves of the variable's block gives them all.
    """
    width, bottom = form.diagonal.shape[1], work.projected.shape[0] - 1
    for a in range(rank):
        for b in range(a + 1):
            work.block[a, b] = form.diagonal[j, a, b]
    for s in range(q):
        for a in range(rank):
            x = work.projected[s, j * width + a]
            for b in range(a + 1):
                work.block[a, b] -= x * work.projected[s, j * width + b]
    fit, half_log = 0.0, 0.0
    for a in range(rank):
        rest = work.projected[bottom, j * width + a]
        for b in range(a + 1):
            x = work.block[a, b]
            for r in range(b):
                x -= work.block[a, r] * work.block[b, r]
            if a == b:
                x = math.sqrt(max(x + ridge, ridge))
            else:
                x /= work.block[b, b]
                rest -= x * work.block[width, b]
            work.block[a, b] = x
        rest /= work.block[a, a]
        work.block[width, a] = rest
        fit += 0.5 * rest * rest
        half_log += math.log(work.block[a, a])
        work.fits[0, j, a] = fit
        work.fits[1, j, a] = half_log


@kernel
def _weigh_smaller(prior, chain, work, which):
    """Log weights, against the model's, of all models with one variable less."""
    if chain.counts[which, SMALLER] == 1:
        return
    q, size = chain.counts[which, TOTAL], chain.counts[which, SIZE]
    _invert(chain.factor, which, q, work.inverse)
    width, bottom = work.block.shape[1], chain.factor.shape[1] - 1
    start, highest = 0, -math.inf
    for i in range(size):
        order = chain.model[which, ORDERS, i]
        loss = prior.log_size[size - 1] - prior.log_size[size]
        loss += prior.log_total[q - order] - prior.log_total[q]
        for a in range(order):
            rest = 0.0
            for s in range(start + a, q):
                rest += work.inverse[s, start + a] * chain.factor[which, bottom, s]
            for b in range(a + 1):
                x = 0.0
                for s in range(start + a, q):
                    x += work.inverse[s, start + a] * work.inverse[s, start + b]
                for r in range(b):
                    x -= work.block[a, r] * work.block[b, r]
                if a == b:
                    x = math.sqrt(max(x, TINY))
                else:
                    x /= work.block[b, b]
                    rest -= x * work.block[width, b]
                work.block[a, b] = x
            rest /= work.block[a, a]
            work.block[width, a] = rest
            loss -= 0.5 * rest * rest + math.log(work.block[a, a])
        chain.losses[which, i] = loss
        highest = max(highest, loss)
        start += order
    total = 0.0
    for i in range(size):
        total += math.exp(chain.losses[which, i] - highest)
    chain.scalars[which, ALL_SMALLER] = highest + math.log(total) if size else highest
    chain.counts[which, SMALLER] = 1


@kernel
def _invert(factor, which, q, inverse):
    """Invert the lower triangular factor of a model."""
    for t in range(q):
        inverse[t, t] = 1.0 / factor[which, t, t]
        for s in range(t + 1, q):
            x = 0.0
            for r in range(t, s):
                x -= factor[which, s, r] * inverse[r, t]
            inverse[s, t] = x / factor[which, s, s]


@kernel
def _pick_larger(index, gains, shares, scalars, which, first, last, left):
    """Draw a variable and an order with probability proportional to their weights.

    `left` is uniform; what the choice of the variable leaves of it chooses the order.
    """
    j, scale = first, scalars[which, ALL_LARGER]
    for candidate in range(first, last):
        if shares[which, candidate] > -math.inf:
            j = candidate
            share = math.exp(shares[which, candidate] - scale)
            if left < share:
                break
            left -= share
    for a in range(index[RANK, j]):
        left -= math.exp(gains[which, j, a] - scale)
        if left < 0.0:
            return j, a + 1
    return j, index[RANK, j]


@kernel
def _pick_smaller(losses, scalars, which, size, left):
    """Draw the position of a variable to leave out, by the weights of what is left."""
    for i in range(size):
        left -= math.exp(losses[which, i] - scalars[which, ALL_SMALLER])
        if left < 0.0:
            return i
    return size - 1


@kernel
def _solve(factor, which, q, coefficients):
    """Solve, in place, factor' x = coefficients."""
    for s in range(q - 1, -1, -1):
        x = coefficients[which, s]
        for r in range(s + 1, q):
            x -= factor[which, r, s] * coefficients[which, r]
        coefficients[which, s] = x / factor[which, s, s]


@kernel
def _draw(prior, chain, which, rng):
    """Draw the coefficients, and weigh them against the proposal."""
    bottom = chain.factor.shape[1] - 1
    q = chain.counts[which, TOTAL]
    for s in range(q):
        normal = math.sqrt(-2.0 * math.log(1.0 - rng.random()))
        normal *= math.cos(2.0 * math.pi * rng.random())
        chain.coefficients[which, s] = chain.factor[which, bottom, s] + normal
    _solve(chain.factor, which, q, chain.coefficients)
    norm, squares = 0.0, 0.0
    for s in range(q):
        x = chain.coefficients[which, s]
        norm += abs(x)
        squares += x * x
    inside = norm <= prior.radius
    chain.scalars[which, IN_BALL] = 0.5 * prior.ridge * squares if inside else -math.inf


@kernel
def _note(prior, chain, record, kind, accepted):
    """Accept or refuse the proposed model; record which is now the current one."""
    chain.tally[TRIED, kind] += 1
    if accepted:
        chain.tally[ACCEPTED, kind] += 1
        chain.tally[OTHER, CURRENT] = 1 - chain.tally[OTHER, CURRENT]
    if record.path.shape[0] == 0:
        return
    now, bottom = chain.tally[OTHER, CURRENT], chain.factor.shape[1] - 1
    q, models = chain.counts[now, TOTAL], chain.tally[OTHER, MODELS]
    if accepted or models == 0:
        if prior.radius == math.inf:
            for s in range(q):
                chain.coefficients[now, s] = chain.factor[now, bottom, s]
            _solve(chain.factor, now, q, chain.coefficients)
        for s in range(q):
            record.columns[models, s] = chain.columns[now, s]
            record.coefficients[models, s] = chain.coefficients[now, s]
        record.counts[models, 0] = 0
        record.counts[models, 1] = q
        models += 1
        chain.tally[OTHER, MODELS] = models
    record.counts[models - 1, 0] += 1
    record.path[chain.tally[OTHER, MOVES], 0] = models - 1
    record.path[chain.tally[OTHER, MOVES], 1] = chain.scalars[now, WEIGHT]
    chain.tally[OTHER, MOVES] += 1
