"""Numbers of clusters that the rows do not distinguish from the best one."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ._paco_mixture import Mixture, share_of_evidence

# Number of standard errors within which a difference of evidence is not significant.
_UNDECIDED = 2.0
# Least difference of evidence that decides against more clusters: "very strong" (Kass
# and Raftery 1995), and more than a prior of their centres 4.5 times as wide changes,
# for each coordinate.
_DECISIVE = 5.0
_DECISIVE_FOR_COORDINATE = 1.5
# Largest difference of evidence that is tested.
FAR_BEHIND = 60.0


@dataclass(frozen=True)
class Found:
    """The mixture of largest evidence, and those it was compared with.

    `mixture`: on all points; `sizes`: the mixtures of its kind by number of clusters,
    on the subset of points searched; `rivals`: by number of clusters, the mixtures of
    other sizes that the points do not exclude, each with the number of standard errors
    by which its evidence is lower; `kind`: shape, own and dof of the mixture of largest
    evidence, and whether clusters of any size were skewed; `skewed`: whether its own
    clusters are, or have cores and halos; `densities`: a function that returns the
    largest evidence of each size by the likelihood of the rows alone; `is_normal`: one
    that returns whether one of `sizes`, of one normal noise, describes the rows better
    than `mixture` with other noise; `n_small`: number of clusters of few rows that
    describe the rows better if their noise is exactly normal, or 0; `n_modes`: number
    of clusters if those found have two modes each, or 0; `n_doubtful`: number of
    groups that overlap which one cluster may be, or 0; `has_modes`: whether each
    cluster was found to have a mode of its own.
    """

    mixture: Mixture
    sizes: dict
    rivals: dict
    kind: tuple
    skewed: bool
    densities: Callable
    is_normal: Callable
    n_small: int = 0
    n_modes: int = 0
    n_doubtful: int = 0
    has_modes: bool = False

    def of_other_kinds(self):
        """Rivals whose clusters do not have one normal noise of one scale."""
        return {k: z for k, (one, z) in self.rivals.items() if not one.simple}


def standard_errors_behind(gap, differences, weights):
    """Return the difference of two log evidences over its standard error.

    `differences` (n_points,): the contribution of each row to the difference, of which
    the rows are a sample (Vuong 1989).
    """
    mean = weights @ differences / weights.sum()
    error = math.sqrt(weights @ (differences - mean) ** 2)
    return gap / max(error, 1e-300)


def undecided(gap, behind, n_more, n_features, no_chance=False):
    """Return whether a difference of evidence does not decide between two numbers.

    It is `gap`, and `behind` standard errors. A large difference of any standard error
    excludes `n_more` clusters more. It excludes fewer only if there is `no_chance` that
    a cluster is noise.
    """
    decisive = max(_DECISIVE, _DECISIVE_FOR_COORDINATE * abs(n_more) * n_features)
    noisy = n_more < 0 and not no_chance
    return behind < _UNDECIDED and (noisy or gap < decisive)


def rivals_of_mixture(problem, best, mixtures, value, log_joint, share, no_chance):
    """Return the mixtures of other sizes that the points do not exclude.

    The result maps the number of clusters to the mixture and the number of standard
    errors by which its evidence is lower than that of `best`. `value`: a function that
    returns the evidence of a mixture; `log_joint`: one that returns the log density of
    each point and its cluster; `share`: that of the log-likelihood that is evidence;
    `no_chance`: whether no cluster of `best` may be noise.
    """
    rivals, of_best = {}, None
    share = share_of_evidence(problem.n_rows, share)
    n_features = problem.points.shape[1]
    for mixture in mixtures:
        gap, k = value(best) - value(mixture), mixture.n_clusters
        if k == best.n_clusters or gap > FAR_BEHIND:
            continue
        if of_best is None:
            of_best = log_joint(best)
        differences = share * (of_best - log_joint(mixture))
        behind = standard_errors_behind(gap, differences, problem.weights)
        closer = behind < rivals.get(k, (None, math.inf))[1]
        if closer and undecided(
            gap, behind, k - best.n_clusters, n_features, no_chance
        ):
            rivals[k] = mixture, behind
    return rivals


def rivals_of_noise(fits, found, rows):
    """Return the rivals of one normal noise, with their standard errors behind.

    `fits`: from `noise_scales`.
    """
    rivals, of_best = found.of_other_kinds(), None
    rivals.pop(fits[0].n_clusters, None)
    for fit in fits[1:]:
        gap = fits[0].evidence - fit.evidence
        if gap > FAR_BEHIND:
            break
        if of_best is None:
            of_best = fits[0].of_rows(rows, manhattan=False)
        differences = of_best - fit.of_rows(rows, manhattan=False)
        behind = standard_errors_behind(gap, differences, rows.weights)
        k, n_features = fit.n_clusters, rows.points.shape[1]
        closer = behind < rivals.get(k, math.inf)
        if closer and undecided(gap, behind, k - fits[0].n_clusters, n_features):
            rivals[k] = behind
    return rivals
