"""Moves between numbers of components: a pair is merged, or a component split."""

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from .._kernels.mixture import turn_into_shares
from ._ascent import State
from ._family import take
from ._rows import Responsibilities
from ._search import TILE_ROWS, clusters, hard_statistics, remembered, scaled_part
from ._spikes import rows_at_spikes, spike_groups

MERGE_ROWS = 4000  # rows on which merges are compared
PAIRS = 6  # pairs of components whose merges are tried
TURNED = 2.0  # least number of settled rows, and of rows in the window, to separate
CUTS = 3  # components whose splits are tried, in an exchange for each pair
CUT_STEPS = 5  # steps of k-means, which splits a component
CUT_SWEEPS = 6  # sweeps of a mixture of two, which improves the best splits
EXCHANGE_ROWS = 4000  # rows on which splits and exchanges are compared


class Candidate(NamedTuple):
    """Statistics after a merge, a split or both.

    statistics : (n_components_after, n_columns)
    source : (n_components_after,), the index before the move of the component from
        which each update starts
    changed : indices after the move of the components whose statistics differ from
        those of their source
    narrow : whether a component is split by a spike
    """

    statistics: np.ndarray
    source: np.ndarray
    changed: np.ndarray
    narrow: bool = False

    def state(self, mixture, before):
        """Return the state after an M-step, or several if `narrow`."""
        state = take(before, self.source)
        if self.narrow:
            return mixture.at_rest(self.statistics, state)[0]
        return mixture.m_step(self.statistics, state)


class Halves(NamedTuple):
    """The two halves of each component.

    order : components, sorted by the gain of their split
    first, second : (n_components, n_columns), statistics
    narrow : (n_components,), whether the component is split by a spike
    """

    order: np.ndarray
    first: np.ndarray
    second: np.ndarray
    narrow: np.ndarray

    def of(self, k):
        """Return k, the statistics of the halves of component k, and its `narrow`."""
        return k, self.first[k], self.second[k], self.narrow[k]


def judged(mixture, before, total, candidates):
    """Return the criteria of candidates after an M-step, and their states.

    If the components share no parameters, only the changed ones are updated, those of
    all candidates at once.

    Parameters
    ----------
    mixture : TemperedMixture
    before : State
        With the statistics `total`.
    total : ndarray of shape (n_components, n_columns)
    candidates : list of Candidate

    Returns
    -------
    criteria : ndarray of shape (n_candidates,)
    state_of : callable
        Returns the state of a candidate, given its index.
    """
    if mixture.family.shared:
        states = [candidate.state(mixture, before) for candidate in candidates]
        pairs = zip(states, candidates, strict=True)
        criteria = [mixture.criterion_of(s, c.statistics) for s, c in pairs]
        return np.array(criteria), states.__getitem__
    rows = [candidate.statistics[candidate.changed] for candidate in candidates]
    sources = [candidate.source[candidate.changed] for candidate in candidates]
    sources = np.concatenate([np.arange(len(total)), *sources])
    previous = take(before, sources).components
    terms, components = mixture.component_terms(
        np.concatenate([total, *rows]), previous
    )
    criteria = np.full(len(candidates), -mixture.family.prior_penalty)
    indices, end = [], len(total)
    for i, candidate in enumerate(candidates):
        index = candidate.source.copy()
        index[candidate.changed] = end + np.arange(len(candidate.changed))
        end += len(candidate.changed)
        counts = candidate.statistics[:, 0]
        criteria[i] += terms[index].sum() + mixture.weights_term(counts)
        indices.append(index)

    def state_of(i):
        if candidates[i].narrow:
            return candidates[i].state(mixture, before)
        counts = candidates[i].statistics[:, 0]
        return State(mixture.concentration_of(counts), take(components, indices[i]))

    return criteria, state_of


def begun(mixture, state, settled):
    """Return a state to start from, and the settled statistics if there are any."""
    if settled is not None:
        return state, settled
    components = mixture.family.recentred(state.components)
    return state._replace(components=components), None


def best_merge(fit, X, sample_weight, settled=None):
    """Merge the pair of components that leaves the largest bound.

    The bound is computed from the merged statistics, from which the entropy of the
    choice between the two components is subtracted.

    Returns
    -------
    state : State
        With one component fewer.
    settled : ndarray or None
        The statistics of settled rows, merged too.
    """
    mixture, everyone = fit.mixture, np.arange(fit.n_components)
    total = fit.statistics if settled is None else fit.statistics + settled
    X, weight = scaled_part(X, sample_weight, len(everyone), 0, most=MERGE_ROWS)
    shares, losses = shares_and_losses(mixture, fit.state, X, weight)
    candidates, rests = [], []
    for kept, gone in pairs_to_merge(losses, total[:, 0].argmin()):
        others, rest = everyone[everyone != gone], None
        statistics = merged(mixture, fit.state, fit.statistics, kept, gone)
        statistics[kept, -1] -= choice_entropy(shares[:, kept], shares[:, gone])
        if settled is not None:
            rest = merged_settled(mixture, fit.state, settled, kept, gone)
            statistics, rest = statistics + rest, rest[others]
        changed = np.flatnonzero(others == kept)
        candidates.append(Candidate(statistics[others], others, changed))
        rests.append(rest)
    criteria, state_of = judged(mixture, fit.state, total, candidates)
    best = criteria.argmax()
    return begun(mixture, state_of(best), rests[best])


def best_split(fit, X, sample_weight, settled=None, *, seed, known=None):
    """Split the component whose split leaves the largest bound.

    Settled rows stay with one of the halves: the other has rows of the window only.
    Halves of this fit that are in `known` are not computed again.

    Returns
    -------
    state : State
        With one component more, the last.
    settled : ndarray or None
        The statistics of settled rows, of which the last component has none.
    """
    mixture, state, total = fit.mixture, fit.state, fit.statistics
    rows = scaled_part(X, sample_weight, len(total), seed, most=EXCHANGE_ROWS)
    far, hidden = far_and_hidden(fit, total, rows, settled, seed)
    order, first, second, narrow = halves_of(fit, total, rows, seed, known, far)
    cuts, rest = [(order[0], first, second, narrow[order[0]])], None
    if settled is not None:
        cuts += [(order[0], second, first, narrow[order[0]])]
        for k in order[1:CUTS]:
            cuts += [(k, first, second, narrow[k]), (k, second, first, narrow[k])]
        rest = np.vstack([settled, np.zeros_like(settled[:1])])
        nothing = np.zeros_like(total)
        cuts += [(k, nothing, total, False) for k in old_and_new(total, settled)]
    candidates = [cut(total, kept, born, k, rest, own) for k, kept, born, own in cuts]
    for others, group, source in hidden:
        everyone = np.arange(len(total) + 1)
        source = np.append(everyone[:-1], source)
        parts = np.vstack([others, group]) + rest
        candidates.append(Candidate(parts, source, everyone))
    if len(candidates) == 1:
        return begun(mixture, candidates[0].state(mixture, state), rest)
    criteria, state_of = judged(mixture, state, total + settled, candidates)
    rested = {}
    for i, each in enumerate(candidates):
        if each.narrow:
            rested[i], criteria[i] = mixture.at_rest(
                each.statistics, take(state, each.source)
            )
    best = criteria.argmax()
    return begun(mixture, rested[best] if best in rested else state_of(best), rest)


def far_and_hidden(fit, total, rows, settled, seed):
    """Return which rows of a stream are outliers, and the groups among them."""
    if settled is None:
        return None, []
    mixture, state = fit.mixture, fit.state
    density = mixture.density(state)
    far = mixture.family.far_rows(density, *rows)
    if far is None:
        return None, []
    return far, mixture.family.hidden_groups(state, total, density, *rows, far, seed)


def old_and_new(statistics, settled):
    """Return the components with settled rows and the most rows in the window.

    A new group in the window broadens the nearest component. The settled rows of this
    component and its rows in the window should then be two components, or the settled
    rows should belong to another component.
    """
    both = (statistics[:, 0] >= TURNED) & (settled[:, 0] >= TURNED)
    order = np.argsort(-statistics[:, 0], kind="stable")
    return order[both[order]][:CUTS]


def cut_bounds(mixture, state, total, first, second, components):
    """Return the bounds after a split of each of `components`; -inf for others."""
    bounds = np.full(len(total), -np.inf)
    components = list(components)
    cuts = [cut(total, first, second, k) for k in components]
    if cuts:
        bounds[components], _ = judged(mixture, state, total, cuts)
    return bounds


def cut(total, kept, born, k, rest=None, narrow=False):
    """Return the candidate with component k split in two halves, `kept` and `born`."""
    parts = np.vstack([total, born[k]])
    parts[k] = kept[k]
    parts = parts if rest is None else parts + rest
    source = np.append(np.arange(len(total)), k)
    return Candidate(parts, source, np.array([k, len(total)]), narrow)


def merged(mixture, state, statistics, kept, gone):
    """Return the statistics with the row `gone` added to the row `kept`."""
    result = statistics.copy()
    result[kept] += mixture.family.aligned(statistics, state.components, gone, kept)
    return result


def merged_settled(mixture, state, settled, kept, gone):
    """Return the statistics with the row `gone` moved to the row `kept`.

    The entropy of the sum is not known: it is replaced by a lower bound.
    """
    result = merged(mixture, state, settled, kept, gone)
    counts, entropies = settled[[kept, gone], 0], settled[[kept, gone], -1]
    least = entropies.sum() - choice_entropy(*counts)
    result[kept, -1] = least if mixture.family.completes_rows else max(least, 0.0)
    result[gone] = 0.0
    return result


def halves_of(fit, total, rows, seed, known, far=None):
    """Return the halves of a fit's components; those in `known` are not found again."""
    known = {} if known is None else known
    return remembered(
        known,
        id(fit),
        lambda: (fit, halves(fit.mixture, fit.state, total, *rows, seed=seed, far=far)),
    )[1]  # keeping the fit, so that no other object has its id


def halves(mixture, state, total, X, weight, *, seed, far=None):
    """Return the halves of the components, with statistics scaled to those of `total`.

    Each component is split by k-means on the rows for which it is the most probable
    one, or by a value that many of these rows share, if that is better. The most
    promising splits are improved by a mixture of two. Rows that are `far`, a boolean
    array, are left out: the most probable component of outliers is the largest one.

    Returns
    -------
    halves : Halves
    """
    owners = np.empty(X.shape[0], dtype=np.intp)
    for tile, _, shares in Responsibilities(mixture.density(state)).tiles(X, weight):
        owners[tile] = shares.argmax(axis=1)
    if far is not None:
        owners[far] = -1
    first, second = total.copy(), np.zeros_like(total)
    narrowing, whole = np.zeros(len(total)), {}  # rise of the criterion

    def scaled(parts, k, w):
        if far is None:
            return parts * (total[k, 0] / w.sum())
        return mixture.family.with_outliers_of(total[k], parts)

    for k in range(len(total)):
        members = np.flatnonzero(owners == k)
        if len(members) < 2:
            continue
        rows, w, twins = X[members], weight[members], take(state, [k, k])
        density, family = mixture.density(twins), mixture.family
        labels, _ = clusters(family.profile(rows, w), w, 2, seed, CUT_STEPS)
        parts = hard_statistics(density, rows, w, labels)
        labels = spike_groups(rows_at_spikes(family, rows, w), w, 2)
        if labels.any():
            others = hard_statistics(density, rows, w, labels)
            found, criterion = mixture.at_rest(others, twins)
            both = [(mixture.m_step(each, twins), each) for each in (parts, others)]
            of_parts, of_others = (mixture.criterion_of(*each) for each in both)
            if criterion > of_parts:
                narrowing[k] = criterion - of_others
                parts, twins = others, found
        whole[k] = rows, w, twins, parts
        first[k], second[k] = scaled(parts, k, w)
    gains = narrowing + cut_bounds(mixture, state, total, first, second, whole)
    promising = sorted(whole, key=lambda k: -gains[k])[: CUTS + 2]
    for k in promising:
        rows, w, two, parts = whole[k]
        for _ in range(CUT_SWEEPS):
            two = mixture.m_step(parts, two)
            parts, _ = mixture.e_step(two, rows, w)
        first[k], second[k] = scaled(parts, k, w)
    better = cut_bounds(mixture, state, total, first, second, promising)
    gains[promising] = narrowing[promising] + better[promising]
    return Halves(np.argsort(-gains), first, second, narrowing > 0)


def shares_and_losses(mixture, state, X, sample_weight):
    """Return the responsibilities, and the losses of moving rows between components.

    Returns
    -------
    shares : ndarray of shape (n_rows, n_components)
        Responsibilities times weights.
    losses : ndarray of shape (n_components, n_components)
        The decrease of the expected log joint density if the rows of one component
        (first axis) are assigned to another one (second axis), without an update.
    """
    density = mixture.density(state)
    joint = np.empty((X.shape[0], len(density.constants)))
    for first in range(0, X.shape[0], TILE_ROWS):
        tile = slice(first, first + TILE_ROWS)
        density.log_joint(X[tile], joint[tile])
    shares = joint.copy()
    turn_into_shares(shares, sample_weight, np.empty(len(joint)))
    sums = shares.T @ joint
    return shares, np.diag(sums)[:, None] - sums


def settled_losses(mixture, state, settled):
    """Return the losses of moving the settled rows of components to other ones.

    A group that fills the window leaves the other components no rows there.
    """
    family, components = mixture.family, state.components
    everyone, gains = range(len(settled)), np.empty((len(settled), len(settled)))
    for k in everyone:
        moved = [family.aligned(settled, components, i, k) for i in everyone]
        same = take(components, np.full(len(settled), k))
        gains[:, k] = family.expected_log_likelihoods(same, np.array(moved))
    gains += settled[:, :1] * state.log_weights
    return np.diag(gains)[:, None] - gains


def pairs_to_merge(losses, smallest):
    """Return pairs to merge: the smallest losses, and the smallest component's pair."""
    first, second = np.triu_indices(len(losses), 1)
    least = np.minimum(losses, losses.T)[first, second]
    pairs = [(int(first[i]), int(second[i])) for i in np.argsort(least)]
    nearest = next(pair for pair in pairs if smallest in pair)
    best = pairs[:PAIRS]
    return best if nearest in best else [*best, nearest]


def choice_entropy(first, second):
    """Return the entropy of the choice between two components, summed over rows."""
    return (entr(first) + entr(second) - entr(first + second)).sum()
