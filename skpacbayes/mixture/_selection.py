"""Choice of the number of components by paths of mergers."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from ._ascent import Fit
from ._exchanges import exchange_components, followed, limited
from ._moves import best_merge, best_split
from ._search import best_fit, in_rounds, other_starts, remembered, start

PATH_TOLERANCE = 10  # multiple of `tol` for the fits of a path
PATH_RISE = 0.05  # smallest total rise of the bound in a sweep of a path, in nats
START_SWEEPS = 15  # sweeps before the first merger of a path
PATH_SWEEPS = 6  # sweeps after each merger of a path
PAST = 3  # numbers of components below its best one that a later path tries
MORE = 2  # after a search found K, up to MORE * K + MORE**2 components are tried,
AT_LEAST = 10  # or so many: paths from fewer miss groups beside broad directions
DECISIVE = 3.0  # nats: odds of 20 to 1
CUTS_TRIED = 4  # number of splits tried beyond the largest number of components


class Choice:
    """The search for the number of components with the largest criterion.

    Parameters
    ----------
    surprise : callable
        log(1 / pi_K) for each K: the criterion is the bound minus it.
    seed : int
        Seed of the split-merge moves.
    options : dict
        `max_iter` and `tol` of the ascents.
    of_stream : bool, default=False
        Whether the rows are the first of a stream, which warnings then say.
    """

    def __init__(self, surprise, seed, options, of_stream=False):
        self.surprise = surprise
        self.seed = seed
        self.options = options
        self.of_stream = of_stream

    def paths(
        self,
        mixture,
        first,
        most,
        seeds,
        X,
        sample_weight,
        *,
        n_init,
        tasks,
        n_jobs,
        known,
        least=-np.inf,
    ):
        """Return up to `n_init` paths: fits of some number and all fewer components.

        One path begins with `first` components, the others with few more than the best
        number of that path, all with at most `most`. More paths follow as long
        as the best number so far asks for more components. If the first half of the
        paths agree, at least two, the others are left out. The bound chooses the prior
        at each start; its scale then follows each merger. A path that has not reached
        the criterion `least` ends where mergers can hardly reach it. Later paths end
        below their best number, as the first one has all smaller ones. Results in
        `known` are not computed again. There are at least two `seeds`, one for each
        path.
        """
        rows = X, sample_weight
        total = X.shape[0] if sample_weight is None else sample_weight.sum()
        tol = self.options["tol"]
        to = {**self.options, "tol": PATH_TOLERANCE * tol}
        to["tol"] = max(to["tol"], min(100 * tol, PATH_RISE / total))
        short, brief = limited(to, START_SWEEPS), limited(to, PATH_SWEEPS)

        def path(n_components, seed):
            state = start(mixture, n_components, *rows, seed=int(seed))
            fit = mixture.ascend(state, *rows, **short)
            chosen, state = mixture.best_prior(fit, *rows, short["tol"])
            fit = chosen.ascend(state, *rows, **brief)
            fits, best = {n_components: fit}, self.of(fit)
            for K in range(n_components - 1, 0, -1):
                if seed != seeds[0] and min(first, best_number(fits) - PAST) > K:
                    break
                if best < least and self.of(fit) + self.most_by_mergers(fit) < least:
                    break
                state, _ = best_merge(fit, *rows)
                fit = fit.mixture.ascend(state, *rows, **brief)
                fits[K] = fit = with_reshaped_prior(fit)
                best = max(best, self.of(fit))
            return fits

        def best_number(fits):
            return max(fits, key=lambda K: self.of(fits[K]))

        def run(start):
            key = id(mixture), *start
            return remembered(known, key, lambda: path(*start))

        def needed(fits):
            return min(most, few_more(best_number(fits)))

        def agree(paths):
            fits = [max(path.values(), key=self.of) for path in paths]
            numbers, best = {fit.n_components for fit in fits}, [*map(self.of, fits)]
            same = len(numbers) == 1 and max(best) - min(best) < DECISIVE
            return same and len(paths) == max(2, (n_init + 1) // 2)

        one = min(first, most), seeds[0]
        more = needed(run(one))
        starts = [one, *((more, seed) for seed in seeds[1:n_init])]
        paths = in_rounds(run, starts, tasks, n_jobs, agree)
        fits = best_by_number(paths)
        while max(fits) < needed(fits):
            paths.append(run((needed(fits), seeds[1])))
            fits = best_by_number(paths)
        return paths

    def most_by_mergers(self, fit):
        """Return how much mergers can raise the criterion.

        They save the divergences of all components but one, of which that of the merged
        component is hardly less than the largest, and rows are described no better.
        """
        K, state = fit.n_components, fit.state
        saved, family = fit.mixture.weights_divergence(state), fit.mixture.family
        each = family.divergences(state.components)
        together = family.divergence(state.components)  # less, if some are shared
        saved += min(each.sum() - each.max(), together)
        return saved + self.surprise(K) - self.surprise(1)

    def best_of(self, paths, mixture, X, sample_weight):
        """Improve the two best fits, and return the best one and all criteria.

        Warns if another seed may choose another number. Arguments are those of
        `improved`.
        """
        fits = self.improved(paths, mixture, X, sample_weight)
        best = max(fits, key=lambda K: self.of(fits[K]))
        criteria = {K: self.of(fits[K]) for K in sorted(fits)}
        self.warn_if_undecided(paths, criteria)
        return fits[best], criteria

    def improved(self, paths, mixture, X, sample_weight):
        """Return the best fit of each number.

        The two best fits are improved by starts besides k-means, if there are any, by
        another choice of the prior, and by split-merge moves. Merging a pair of their
        components, or splitting one, may then improve the fits with one component fewer
        or more. This is repeated until the two best fits do not change.

        mixture : has the first prior of the paths.
        """
        rows = X, sample_weight
        fits = best_by_number(paths)
        improved = set()
        while todo := self.two_best(fits) - improved:
            K = max(todo, key=lambda K: self.of(fits[K]))
            improved.add(K)
            fit = fits[K].mixture.ascend(fits[K].state, *rows, **self.options)
            for other in other_starts(fit.mixture, K, *rows, seed=self.seed):
                other = Fit(fit.mixture, other, None, [], False)
                other = followed(other, *rows, None, self.options, fit.criterion)
                fit = best_fit([fit, other])
            fit = with_best_prior(fit, *rows, **self.options)
            if fit.mixture.family.prior_choice != mixture.family.prior_choice:
                fit = best_fit([fit, self.with_prior_again(fit, mixture, *rows)])
            moves = {"seed": self.seed, "known": {}}
            fit, _ = exchange_components(fit, *rows, options=self.options, **moves)
            fits[K] = fit
            neighbors = {}
            if K > 1:
                neighbors[K - 1], _ = best_merge(fit, *rows)
            if K + 1 in fits:
                neighbors[K + 1], _ = best_split(fit, *rows, **moves)
            for other, state in neighbors.items():
                begun = Fit(fit.mixture, state, None, [], False)
                to_beat = fits[other].criterion
                found = followed(begun, *rows, None, self.options, to_beat)
                fits[other] = best_fit([fits[other], found])
        return fits

    def with_prior_again(self, fit, mixture, X, sample_weight):
        """Return the fit after another choice of its prior, from the first one.

        The prior of a path is chosen for a larger number of components. Steps from that
        prior may not reach the best one for fewer components. A prior of similar
        components, for instance, keeps a component of few rows broad.
        """
        rows, to = (X, sample_weight), limited(self.options, START_SWEEPS)
        begun = mixture.ascend(fit.state, *rows, **to)
        chosen, state = mixture.best_prior(begun, *rows, self.options["tol"])
        begun = Fit(chosen, state, None, [], False)
        return followed(begun, *rows, None, self.options, fit.criterion)

    def on_window(self, fit, most, X, weight, settled):
        """Merge and split components on the window of a stream while that helps.

        The settled statistics of a component that is split go to one of the halves.

        Returns
        -------
        fit : Fit
        settled : ndarray
            The settled statistics after the same moves.
        """
        enough = fit.mixture.enough(X, weight, self.options["tol"])
        while True:
            K, tries = fit.n_components, []
            if K > 1:
                tries.append(best_merge(fit, X, weight, settled))
            if most > K:
                tries.append(best_split(fit, X, weight, settled, seed=self.seed))
            found = []
            for state, rest in tries:
                gain = self.surprise(len(state.concentration)) - self.surprise(K)
                begun = Fit(fit.mixture, state, None, [], False)
                to_beat = fit.criterion + gain + enough
                other = followed(begun, X, weight, rest, self.options, to_beat)
                if other.criterion > to_beat:
                    found.append((self.of(other), other, rest))
            if not found:
                return fit, settled
            _, fit, settled = max(found, key=lambda each: each[0])

    def two_best(self, fits):
        """Return the two numbers of components with the largest criteria."""
        return set(sorted(fits, key=lambda K: self.of(fits[K]))[-2:])

    def of(self, fit):
        """Return the criterion of a fit."""
        return float(fit.criterion - self.surprise(fit.n_components))

    def warn_if_undecided(self, paths, criteria):
        """Warn if the paths do not agree, or the two best criteria are close.

        They are close if a path ended further below the best, which was improved.
        """
        if len(criteria) == 1:
            return
        second, best = sorted(criteria, key=criteria.get)[-2:]
        margin = criteria[best] - criteria[second]
        paths = [path for path in paths if best in path]  # others began with too few
        found = {max(path, key=lambda K: self.of(path[K])) for path in paths}
        numbers = sorted(found | {best})
        values = [self.of(path[best]) for path in paths]
        spread = criteria[best] - min(values)
        needed = max(spread, DECISIVE) if best > 1 else 0.0  # no local maxima
        if len(numbers) == 1 and margin > needed:
            return
        searches = f"the {len(paths)} searches" if len(paths) > 1 else "the search"
        at_first = " for the first rows of the stream" if self.of_stream else ""
        later = " Later rows may change the number." if self.of_stream else ""
        warn_user(
            f"n_components='auto' chose {best}{at_first}, but another random_state may "
            f"choose another number: {second} is {margin:.3g} nats worse, {searches} "
            f"found {', '.join(map(str, numbers))} components, and ended up to "
            f"{spread:.3g} nats below the best fit with {best}. Increase n_init, or "
            f"compare elbo_path_.{later}",
            ConvergenceWarning,
        )

    def warn_if_more(self, fit, X, sample_weight, settled=None):
        """Warn if one more component than the largest number is better."""
        K, gain, seed = fit.n_components, -np.inf, self.seed
        while gain <= DECISIVE:
            if seed == self.seed + CUTS_TRIED:
                return
            state, rest = best_split(fit, X, sample_weight, settled, seed=seed)
            more = Fit(fit.mixture, state, None, [], False)
            to = limited(self.options, START_SWEEPS), fit.criterion + DECISIVE
            more = followed(more, X, sample_weight, rest, *to)
            gain, seed = self.of(more) - self.of(fit), seed + 1
        warn_user(
            f"n_components='auto' chose {K}, the largest number that it tries, and "
            f"{K + 1} components have a criterion that is larger by {gain:.3g} "
            "nats. Increase max_components, or choose another family if several "
            "components describe one group.",
            ConvergenceWarning,
        )


def with_reshaped_prior(fit):
    """Return the fit with a better prior, at the same state."""
    family = fit.mixture.family.reshaped(fit.state.components)
    if family is fit.mixture.family:
        return fit
    mixture = fit.mixture.with_family(family)
    bound = mixture.bound(fit.state, 0.0, fit.statistics)
    return fit._replace(mixture=mixture, history=[*fit.history, bound])


def best_by_number(paths):
    """Return the best fit of each number of components."""
    numbers = sorted(set().union(*paths), reverse=True)
    return {K: best_fit([path[K] for path in paths if K in path]) for K in numbers}


def few_more(n_components):
    """Return the largest number that is tried where a search has found this one."""
    return max(AT_LEAST, MORE * n_components + MORE**2)


def with_best_prior(fit, X, sample_weight, **to):
    """Return the fit with the prior chosen by the bound, if it has converged."""
    if not fit.converged:
        return fit
    fit = fit.mixture.with_best_prior(fit, X, sample_weight, **to)
    return fit.mixture.refined(fit, X, sample_weight, **to)
