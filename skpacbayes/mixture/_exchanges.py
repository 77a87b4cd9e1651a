"""Exchanges: two components are merged, and a third one is split."""

from itertools import combinations

import numpy as np

from ._moves import (
    CUTS,
    EXCHANGE_ROWS,
    Candidate,
    far_and_hidden,
    halves_of,
    judged,
    merged,
    merged_settled,
    old_and_new,
    pairs_to_merge,
    settled_losses,
    shares_and_losses,
)
from ._search import scaled_part

EXCHANGE_SWEEPS = 8  # sweeps between two checks of an exchange
TRIES = 4  # exchanges that are followed for a few sweeps,
TRY_SWEEPS = 4, 4  # these sweeps, and those after a first check
PATIENCE = 20  # an exchange ends if it needs more rises like the last one


def exchange_components(
    fit, X, sample_weight, settled=None, *, seed, options, known=None
):
    """Exchange components as long as a fit has converged and the bound rises.

    An exchange merges a pair that overlaps and splits a third component. The most
    promising exchanges are run for a few sweeps over some of the rows. The best of them
    is run over all rows, as long as it may still exceed the fit. The halves of the
    components are stored in the dictionary `known`, if it is given.

    Returns
    -------
    fit : Fit
        The last fit that was better. To the history of the fit before, it adds the
        bounds above that fit's. If the bound is not larger (with missing values only
        the criterion need be), it adds the last bound alone: the history steps down.
    settled : ndarray or None
        The statistics of settled rows after the same moves.
    """
    n_components = fit.n_components
    few = scaled_part(X, sample_weight, n_components, seed, most=EXCHANGE_ROWS)
    enough = fit.mixture.enough(X, sample_weight, options["tol"])
    for _ in range(n_components):
        best, rest = best_exchange(fit, few, settled, options, seed, known)
        if best is None:
            break
        best = followed(best, X, sample_weight, rest, options, fit.criterion)
        gain = best.criterion - fit.criterion
        if gain <= enough:
            break
        rising = [bound for bound in best.history if bound > fit.bound]
        if best.bound <= fit.bound:
            rising = best.history[-1:]
        best = best._replace(history=fit.history + rising)
        fit, settled = best, rest
        if gain <= PATIENCE * enough:  # the same maximum, more precisely
            break
    return fit, settled


def followed(fit, X, sample_weight, settled, options, to_beat):
    """Return the fit after an ascent, which ends if it can hardly exceed `to_beat`."""
    brief, history = limited(options), []
    for _ in range(1 + options["max_iter"] // brief["max_iter"]):
        fit = fit.mixture.ascend(fit.state, X, sample_weight, settled, **brief)
        history += fit.history
        if fit.converged or not hopeful(fit, to_beat):
            break
    return fit._replace(history=history)


def limited(options, most=EXCHANGE_SWEEPS):
    """Return the options of an ascent of at most `most` sweeps."""
    return {**options, "max_iter": min(most, options["max_iter"])}


def best_exchange(fit, few, settled, options, seed, known):
    """Return the best exchange after a few sweeps over `few` rows, if promising."""
    if not fit.converged:
        return None, None
    mixture, tries = fit.mixture, []
    log_normalizer = mixture.e_step(fit.state, *few)[1]
    to_beat = mixture.bound(fit.state, log_normalizer, settled)
    to_beat += mixture.family.missing_gains(fit.state.components).sum()
    first, later = (limited(options, n) for n in TRY_SWEEPS)
    for state, rest in exchanges(mixture, fit, *few, settled, seed, known):
        found = mixture.ascend(state, *few, rest, **first)
        if hopeful(found, to_beat):
            found = found.mixture.ascend(found.state, *few, rest, **later)
            if hopeful(found, to_beat):
                tries.append((found, rest))
    return max(tries, key=lambda pair: pair[0].criterion, default=(None, None))


def hopeful(fit, to_beat):
    """Return whether `PATIENCE` rises like the last one would exceed `to_beat`."""
    return fit.criterion + PATIENCE * (fit.history[-1] - fit.history[-2]) > to_beat


def exchanges(mixture, fit, X, sample_weight, settled, seed, known):
    """Yield the states and the settled statistics after the best exchanges.

    Exchanges are ranked by the bound of their statistics.
    """
    state, rows = fit.state, (X, sample_weight)
    if fit.n_components < (3 if settled is None else 2):
        return
    total = fit.statistics if settled is None else fit.statistics + settled
    far, hidden = far_and_hidden(fit, total, rows, settled, seed)
    found = halves_of(fit, total, rows, seed, known, far)
    _, losses = shares_and_losses(mixture, state, *rows)
    if settled is not None and settled.any():
        losses = losses + settled_losses(mixture, state, settled)
    to_merge = pairs_to_merge(losses, total[:, 0].argmin())
    if settled is not None:
        to_merge = with_smallest(to_merge, total[:, 0])
    tried = list(exchanges_of_thirds(fit, total, settled, found, to_merge))
    tried += exchanges_of_hidden(fit, hidden, to_merge)
    if settled is not None:
        tried += exchanges_of_settled(fit, settled)
    if fit.n_components == 2:
        tried += exchanges_of_two(fit, total, settled, found)
    pairs, candidates = zip(*tried, strict=True)
    criteria, state_of = judged(mixture, state, total, candidates)
    for number in np.argsort(-criteria)[:TRIES]:
        rest = None
        if settled is not None:
            rest = merged_settled(mixture, state, settled, *pairs[number])
        yield state_of(number), rest


def exchanges_of_thirds(fit, total, settled, found, to_merge):
    """Yield the pairs, and candidates that merge them and split a third component."""
    everyone = np.arange(len(total))
    for kept, gone in to_merge:
        together = merged(fit.mixture, fit.state, total, kept, gone)
        others = [k for k in found.order if k not in (kept, gone)][:CUTS]
        splits = [found.of(k) for k in others]
        if settled is not None:
            for k in old_and_new(fit.statistics, settled):
                if k not in (kept, gone):
                    splits += splits_of_settled(k, fit.statistics, settled, found)
        for k, first, second, narrow in splits:
            parts = together.copy()
            parts[k], parts[gone] = first, second
            source = np.where(everyone == gone, k, everyone)
            changed = np.array([kept, k, gone])
            yield (kept, gone), Candidate(parts, source, changed, narrow)


def splits_of_settled(k, statistics, settled, found):
    """Return splits of a component of a stream, whose settled rows stay together.

    Its rows in the window are split as in `found`, or all of them are apart.
    """
    _, first, second, narrow = found.of(k)
    share = statistics[k, 0] / (statistics[k, 0] + settled[k, 0])
    return [
        (k, settled[k] + share * first, share * second, narrow),
        (k, settled[k] + share * second, share * first, narrow),
        (k, settled[k], statistics[k], False),
    ]


def exchanges_of_hidden(fit, hidden, to_merge):
    """Yield the pairs, and candidates that merge them: outliers are the other one."""
    everyone = np.arange(fit.n_components)
    for kept, gone in to_merge:
        for others, group, source in hidden:
            parts = merged(fit.mixture, fit.state, others, kept, gone)
            parts[gone] = group
            sources = np.where(everyone == gone, source, everyone)
            yield (kept, gone), Candidate(parts, sources, everyone)


def exchanges_of_settled(fit, settled):
    """Yield pairs, and candidates that move the settled rows of one to the other."""
    everyone = np.arange(fit.n_components)
    for gone in old_and_new(fit.statistics, settled):
        for kept in everyone[everyone != gone]:
            parts = merged_settled(fit.mixture, fit.state, settled, kept, gone)
            changed = np.array([kept, gone])
            yield (kept, gone), Candidate(fit.statistics + parts, everyone, changed)


def exchanges_of_two(fit, total, settled, found):
    """Yield pairs of two components, and candidates that merge and split them anew.

    One component is split, and the other is added to one of its halves.
    """
    splits = [found.of(k) for k in range(2)]
    splits += [(k, second, first, narrow) for k, first, second, narrow in splits]
    for k in old_and_new(fit.statistics, settled):
        splits.append((k, settled[k], fit.statistics[k], False))
    for kept, first, second, narrow in splits:
        gone = 1 - kept
        parts = merged(fit.mixture, fit.state, total, kept, gone)
        parts[kept] += first - total[kept]
        parts[gone] = second
        changed = np.arange(2)
        yield (kept, gone), Candidate(parts, np.full(2, kept), changed, narrow)


def with_smallest(pairs, counts):
    """Return the pairs and those among the three components with the fewest rows.

    If one component has nearly all rows of a stream's window, moving few rows to it
    seems to cost least, and then it cannot be split.
    """
    smallest = np.sort(np.argsort(counts, kind="stable")[:3]).tolist()
    return [*pairs, *(pair for pair in combinations(smallest, 2) if pair not in pairs)]
