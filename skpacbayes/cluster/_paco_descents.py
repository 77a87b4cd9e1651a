"""Descents to mixtures of fewer clusters: components are merged, with EM between."""

import math

from ._paco_candidates import Candidates
from ._paco_mixture import STUDENT_DOF

# Number of components from which a twentieth of them is merged at a time.
_MANY = 40
# Number of sizes of each kind that are fitted to convergence.
POLISHED = 3
# Number of merges that are repeated, starting at the best mixture.
_RIVALS = 3


class Descents(Candidates):
    """The fits of mixtures of one kind, from larger numbers of clusters to smaller.

    Parameters
    ----------
    everything : MixtureProblem
        All points.
    problem : MixtureProblem
        The part that mixtures are fitted to.
    tree : Tree
        The start of the first descent, in the coordinates of a shape.
    n_clusters : int
        Number of clusters of the tree.
    n_start : int
        Number of components at the start.
    """

    def __init__(self, everything, problem, tree, n_clusters, n_start):
        super().__init__(everything, problem)
        self.tree, self.n_clusters, self.n_start = tree, n_clusters, n_start
        self.previous = None

    def descend(self, start, shape, own, dof):
        """Merge the components of `start` with iterations of EM between mergers.

        Many are merged at a time at first, and one at a time near the best number.
        """
        kind = shape, own, dof
        self.merge_down(start, kind, 1)
        if self.solutions.get(kind) and start.n_clusters > _MANY:
            found, top = self.solutions[kind], self.best(kind).n_clusters
            if top > _MANY:
                above = min((k for k in found if k > top), default=top)
                below = max((k for k in found if k < top), default=1)
                self.merge_down(found[above], kind, below, one_by_one=True)

    def descend_from_small_clusters(self):
        """Descend from the tree's number of clusters if it is larger than `n_start`.

        Clusters of so few rows on average mostly describe noise. They are kept in
        `small`, and the descent is made if they are the best mixture so far.
        """
        if self.n_clusters <= self.n_start:
            return
        kind = self.tree.shape, False, STUDENT_DOF
        start = self.tree.mixture(self.n_clusters)
        mixture = self.problem.surviving(start, *kind)
        if mixture is None:
            return
        self.small.append(mixture)
        if self.value(mixture) > max(map(self.value, self.mixtures), default=-math.inf):
            self.merge_down(mixture, kind, self.n_start)

    def merge_down(self, start, kind, fewest, one_by_one=False):
        """Merge the components of `start` down to `fewest`, with EM between mergers."""

        def n_mergers(k):
            return 1 if one_by_one else max(k // 20, 1) if k > _MANY else 1

        best, largest = -math.inf, start.n_clusters
        for mixture in self.problem.state(start, *kind).merged(n_mergers):
            self.keep(mixture)
            k, evidence = mixture.n_clusters, mixture.evidence
            if evidence > best:
                best, largest = evidence, k
            if k <= fewest or (k > _MANY and k < largest // 2):
                return

    def descend_from_best(self):
        """Merge the components of the best mixture too, to find its smaller rivals."""
        best = self.best()
        fewest = max(1, best.n_clusters - _RIVALS)
        self.merge_down(best, best.kind, fewest, one_by_one=True)
        self.polish(best.kind)

    def begin_with_previous(self, all_kinds=False):
        """Start from the mixture of earlier rows, without the clusters that left.

        Mergers may lose a cluster that was known before. A likelihood without bound
        would grow from search to search. If all kinds of mixtures were tried, one that
        was not promising does not describe the rows well.
        """
        previous = self.previous
        if previous is None or (all_kinds and not self.solutions.get(previous.kind)):
            return
        mixture = self.problem.surviving(previous, *previous.kind)
        if mixture is not None and mixture.likelihood_is_bounded:
            self.keep(mixture)

    def begin_with_tails(self, start, kind):
        """Start a normal kind from mixtures with Student tails too, as in `vary`.

        Mergers of normal components of overlapping groups can give a poor mixture with
        one component more than the best, which would then not be a rival.
        """
        tails = *kind[:2], STUDENT_DOF
        self.descend(start, *tails)
        found = self.ranked(tails)[:POLISHED]
        self.solutions.pop(tails, None)
        for mixture in found:
            self.keep(self.problem.fit(mixture, *kind, 12))

    def borrow(self, other, kind):
        """Start the best sizes of a kind from the mixtures of another kind too."""
        for k in [mixture.n_clusters for mixture in self.ranked(kind)[:POLISHED]]:
            if k in self.solutions.get(other, {}):
                self.keep(self.problem.fit(self.solutions[other][k], *kind, 15))

    def polish(self, kind):
        """Fit the best sizes of a kind to convergence."""
        done = set()
        while True:
            ranked = self.ranked(kind)[:POLISHED]
            todo = [one for one in ranked if one.n_clusters not in done]
            if not todo:
                return
            for mixture in todo:
                done.add(mixture.n_clusters)
                self.keep(self.problem.fit(mixture, *kind, 15))
