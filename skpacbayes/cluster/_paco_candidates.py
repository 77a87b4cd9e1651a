"""Mixtures that a search has fitted, compared by their evidence."""

import math
from functools import partial

import numpy as np
from scipy.special import gammaln, xlogy

from ._paco_alike import noise_is_normal
from ._paco_background import (
    explaining_far_rows,
    fit_with_background,
    no_chance_clusters,
)
from ._paco_covariances import fit_with_covariances, refit_with_covariances
from ._paco_mixture import (
    EVIDENCE,
    LEAST_GAIN,
    STUDENT_DOF,
    CommonColumns,
    evidences_of_shape,
    n_shape_parameters,
)
from ._paco_radial import RadialNoise
from ._paco_rivals import Found, rivals_of_mixture
from ._paco_skewed import SkewedClusters
from ._paco_stray import with_groups_of_background


class Candidates:
    """Mixtures of several kinds and sizes, fitted to a part of all points.

    A kind is a shape, whether components have their own variances, and the degrees of
    freedom. `solutions`: by kind, the likeliest mixture of each size. `covariances`: by
    size, a mixture with a covariance for each cluster. `small`: mixtures of more
    clusters than these, with few rows each. `others`: mixtures with a background
    instead of a wide cluster. `rebates`: by shape, the reduction of its penalty below
    log(n) / 2 for each parameter. `apart`: whether the mixture chosen has gaps between
    all clusters, so that all of the log-likelihood counts; `by_density`: whether the
    likelihood of the rows alone chose it.

    Parameters
    ----------
    everything : MixtureProblem
        All points.
    problem : MixtureProblem
        The part that mixtures are fitted to.
    """

    def __init__(self, everything, problem):
        self.everything, self.problem = everything, problem
        self.skewed, self.radial = SkewedClusters(problem), RadialNoise(problem)
        self.common = CommonColumns(problem)
        self.solutions, self.covariances = {}, {}
        self.prices, self.rebates = {}, {}
        self.small, self.others = [], []
        self.apart = self.by_density = False

    def on_all_points(self, best, kind, several, n_modes, n_doubtful, has_modes):
        """Return `Found`: the mixture chosen, fitted to all points, and its rivals."""
        everything, separate = self.everything, best.log_joint is not None
        rivals, gain_of_noise = self.rivals(best), self.noise_of(best).gain(best)
        densities, n_small = partial(self.densities, best), self.n_small_clusters(best)
        is_normal = partial(noise_is_normal, self.problem, best)
        of_best = best.kind
        sizes = self.solutions[kind if best.background or separate else of_best]
        sizes = sizes | self.covariances if separate else dict(sizes)
        if self.problem is not everything:
            if separate:
                best = refit_with_covariances(everything, best)
            elif best.background:
                best = fit_with_background(everything, best, *of_best) or best
            else:
                best = everything.fit(best, *of_best, 12) or best
        if not separate and best.labels.size == len(everything.points):
            more = best
            if best.background:
                more = with_groups_of_background(everything, best)
            elif self.problem is not everything:
                more = explaining_far_rows(everything, best, gain_of_noise)
            if more is not best:  # the part searched says nothing of these rows
                step = more.n_clusters - best.n_clusters
                rivals = {k + step: one for k, one in rivals.items() if k + step > 0}
                densities = partial(dict, {more.n_clusters: 0.0})
                best, sizes, gain_of_noise = more, {more.n_clusters: more}, 0.0
        if several and best.labels.size == len(everything.points):
            best = fit_with_covariances(everything, best, best.labels)
        kind = (*kind, self.skewed.any, best.background > 0)
        skewed = gain_of_noise > 0
        of_noise = skewed, densities, is_normal
        numbers = n_small, n_modes, n_doubtful, has_modes
        return Found(best, sizes, rivals, kind, *of_noise, *numbers)

    def best(self, kind=None):
        """Return the mixture of largest evidence, of all kinds or of one."""
        mixtures = self.mixtures if kind is None else self.solutions[kind].values()
        return max(mixtures, key=self.value)

    def rivals(self, best, mixtures=None):
        """Return the mixtures of other sizes that may describe the points as well."""
        mixtures = mixtures or [*self.mixtures, *self.others]
        value, share = self.value, EVIDENCE
        if self.apart:
            value, share = self.whole_evidence, 1.0
        if self.by_density:
            value, share = self.log_evidence, 1 / self.problem.row_weight
        return rivals_of_mixture(
            self.problem,
            best,
            mixtures,
            value,
            self.log_joint,
            share,
            no_chance_clusters(self.problem, best),
        )

    def densities(self, best):
        """Return the largest evidence by the likelihood of the rows alone, by size.

        `best` may have a background, and is then not among the mixtures kept.
        """
        found = {}
        for mixture in [best, *self.mixtures]:
            value, size = self.density(mixture), mixture.n_clusters
            found[size] = max(value, found.get(size, -math.inf))
        return found

    def density(self, mixture):
        """Return the evidence by the likelihood of the rows alone."""
        value = self.value(mixture) - mixture.evidence
        return value + mixture.evidence_of(classified=False)

    def normal_density(self, mixture):
        """Return this evidence if no cluster is skewed or has a core."""
        return self.density(mixture) - self.noise_of(mixture).gain(mixture)

    @property
    def mixtures(self):
        """Return all mixtures kept."""
        several = *self.solutions.values(), self.covariances
        return [one for found in several for one in found.values()]

    def log_joint(self, mixture):
        """Return the log of share times density of the best cluster at each point."""
        noise = self.noise_of(mixture)
        return self.problem.log_joint(mixture) + noise.log_ratios(mixture)

    def noise_of(self, mixture):
        """Return the noise, skewed or radial, that describes its clusters better."""
        return max(self.skewed, self.radial, key=lambda noise: noise.gain(mixture))

    def whole_evidence(self, mixture):
        """Return the evidence if all of the log-likelihood counts."""
        others = self.value(mixture) - mixture.evidence
        return mixture.evidence_of(share=1.0) + others

    def log_evidence(self, mixture):
        """Return the evidence by the likelihood of the rows alone, all of which counts.

        A point counts as one row, also if it stands for rows that were not drawn.
        """
        share = 1 / self.problem.row_weight
        gain = self.noise_of(mixture).gain(mixture)
        gain *= share * self.problem.n_rows / self.problem.n_evidence
        return mixture.evidence_of(classified=False, share=share) + gain

    def value(self, mixture):
        """Return the evidence of a mixture, with the penalty set by `learn_price`."""
        gains = self.noise_of(mixture).gain(mixture) + self.common.gain(mixture)
        return mixture.evidence + self.rebates.get(mixture.shape, 0.0) + gains

    def keep(self, mixture):
        """Keep a mixture if it is the best of its kind and size."""
        if mixture is None:
            return
        found = self.solutions.setdefault(mixture.kind, {})
        best = found.get(mixture.n_clusters)
        if best is None or mixture.log_likelihoods[0] > best.log_likelihoods[0]:
            found[mixture.n_clusters] = mixture

    def ranked(self, kind):
        """Return the mixtures of a kind, best first."""
        found = self.solutions.get(kind, {})
        return sorted(found.values(), key=self.value, reverse=True)

    def n_small_clusters(self, best):
        """Return the number of small clusters that describe the rows better, or 0.

        If the noise is exactly normal, all of the log-likelihood is evidence. Half a
        log of all rows for each parameter is too little for centres of single rows:
        the centres are integrated out, with a normal prior of the variance of the rows,
        and the k! orders of the clusters are equivalent.
        """
        problem, n_rows = self.problem, self.problem.n_rows

        def value(mixture):
            k, variance = mixture.n_clusters, problem.variance_in(mixture.coordinates)
            ratios = 1.0 + mixture.masses * variance / mixture.scales
            free = max(n_rows - k, 0.0)  # rows, for the variance within clusters
            more = k + xlogy(free, free / n_rows) - np.log(ratios / n_rows).sum()
            return self.whole_evidence(mixture) + problem.d / 2 * more + gammaln(k + 1)

        small = max(self.small, key=value, default=best)
        return small.n_clusters if value(small) > value(best) + LEAST_GAIN else 0

    def learn_price(self, shape):
        """Set the penalty of a shape from the evidence of its best mixture.

        The scales of the features cost "diagonal" and "tied" the same, so that the
        choice between the two does not depend on the units of the columns.
        """
        problem, kind = self.problem, (shape, False, STUDENT_DOF)
        if kind not in self.solutions or not problem.noisy(self.best(kind)):
            return
        n_rows, coordinates = problem.n_evidence, self.best(kind).coordinates
        covariance = problem.pooled(self.best(kind))
        traces = np.trace(covariance), np.vdot(coordinates, covariance @ coordinates)
        gain = problem.d * n_rows / 2 * math.log(traces[0] / traces[1])
        variances = np.diag(covariance)
        of_scales = n_rows / 2 * np.log(variances.mean() / variances).sum()
        gains = of_scales, gain - of_scales  # coordinates may be from another shape
        evidences = evidences_of_shape(covariance, shape, n_rows)
        self.prices[shape] = np.maximum(np.subtract(gains, evidences), 0.0)
        of_scales = min(of_scales for of_scales, _ in self.prices.values())
        for one, (_, of_correlations) in self.prices.items():
            charged = n_shape_parameters(one, problem.d) / 2 * math.log(n_rows)
            self.rebates[one] = charged - (of_scales + of_correlations)

    def let_best_have_other_noise(self, mixtures):
        """Add the gain of the noise of other mixtures that are skewed or have cores.

        That of skewed clusters is added where the mixture can be the best of all.
        """
        if self.radial.any:
            for mixture in mixtures:
                self.radial.look_at(mixture)
        if not self.skewed.any:
            return
        best = -math.inf
        for mixture in sorted(mixtures, key=self.value, reverse=True):
            if self.value(mixture) + self.skewed.most_of(mixture) > best:
                self.skewed.look_at(mixture)
            best = max(best, self.value(mixture))
