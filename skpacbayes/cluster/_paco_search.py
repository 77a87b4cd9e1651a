"""Search for the mixture that describes rows best: number, shape, spreads and tails."""

import itertools
import math
from dataclasses import replace

import numpy as np

from ._paco_choice import choose
from ._paco_components import (
    fit_groups,
    fit_groups_of_axis,
    fit_groups_of_components,
)
from ._paco_descents import POLISHED, Descents
from ._paco_mixture import STUDENT_DOF, evidences_of_shape
from ._paco_overlap import overlapping_groups
from ._paco_radial import labels_of_centers
from ._paco_tree import Tree
from ._paco_within import look_within_clusters

# Number of points of Ward's tree, and the number if there are many clusters.
_TREE_POINTS, _MORE_TREE_POINTS = 1000, 4000
# Largest n_points^2 n_features of a tree.
_TREE_COST = 3e7
# Points of the tree per cluster below which a larger tree is built.
_TREE_POINTS_OF_CLUSTER = 20
# Number of points that mixtures are fitted to: least, per cluster, and largest.
_POINTS, _POINTS_OF_CLUSTER, _MOST_POINTS = 1000, 60, 6000
# Least number of rows whose evidence counts; each cluster adds as many as above.
_EVIDENCE_ROWS = 2500
# Least number of rows per component at the start of merging.
_FEWEST_ROWS = 5
# Number of points up to which each is a component at the start of merging.
_FEW_POINTS = 500
# Sizes, beside those near the best, at which other shapes are assessed.
_SHAPED_SIZES = (1, 2, 3, 5, 8)
# Least predicted gain in log evidence for a shape to be tried.
_LEAST_SHAPED = 1.0
# Own variances are tried if their gain is at least one minus this share of their
# penalty.
_PROMISING = 0.7
# Deficit in log evidence from which a kind is not tried with other tails.
_CLOSE = 30.0
# Skewed clusters: number of kinds per size, and of sizes of all shapes, that are tried.
_KINDS, _FEW_CLUSTERS = 2, 4


def find_mixture(everything, shapes, kind=None, previous=None):
    """Return the mixture of largest evidence, on all points.

    Ward's tree of a subset of the points gives the approximate number of clusters. From
    a larger partition, components are merged one by one with some iterations of EM
    between, for each shape; the best sizes of each kind are fitted to convergence. The
    order in which the subset is drawn does not depend on the points' coordinates.

    Parameters
    ----------
    everything : MixtureProblem
    shapes : tuple of str
    kind : tuple or None
        The `kind` of an earlier result, to search this kind only.
    previous : Mixture or None
        A mixture of earlier rows, to start from as well.

    Returns
    -------
    found : Found
    """
    if everything.n_rows < 2 * everything.d:  # too few for a covariance
        shapes = tuple(shape for shape in shapes if shape != "tied") or shapes
    everything.has_axes = shapes != ("tied",)
    shape = shapes[0] if kind is None else kind[0]
    search = Search(everything, *_tree_and_size(everything, shape))
    if previous is not None and previous.shape in shapes:
        search.previous = previous
    if kind is None:
        search.fit_all_kinds(shapes)
    else:
        search.fit_one_kind(kind, shapes)
    best, kind, *others = choose(search, shapes, kind is None)
    n_doubtful, has_modes = 0, False
    if not best.background and best.log_joint is None:
        before = best
        search, best, n_doubtful = overlapping_groups(search, best)
        has_modes = best is not before
        kind = best.kind if has_modes else kind
    return search.on_all_points(best, kind, *others, n_doubtful, has_modes)


def _tree_and_size(everything, shape, columns=None):
    """Return Ward's tree of a subset of the points, and its number of clusters."""
    widest = int(math.sqrt(_TREE_COST / everything.d))
    for n_points in (min(_TREE_POINTS, widest), min(_MORE_TREE_POINTS, widest)):
        part = everything.subset(n_points)
        tree = Tree(part, shape, columns)
        most = max(1, min(len(part.points) // 2, int(part.n_rows // 2)))
        others = None
        if part.row_weight > 1:
            others = everything.subset(n_points, skipped=n_points)
        n_clusters = tree.n_clusters(most, others)
        enough = n_clusters * _TREE_POINTS_OF_CLUSTER <= len(part.points)
        if enough or part is everything:
            break
    return tree, n_clusters


def _n_start(problem, n_clusters):
    """Return the number of components at the start of merging."""
    return min(int(1.5 * n_clusters) + 6, _most_clusters(problem))


def _most_clusters(problem):
    """Return the largest number of clusters that few points can have."""
    n_points = len(problem.points)
    fewest_points = 1 if n_points <= _FEW_POINTS else _FEWEST_ROWS
    return max(1, min(int(problem.n_rows // _FEWEST_ROWS), n_points // fewest_points))


class Search(Descents):
    """The fits of mixtures of several kinds and sizes to a part of all points.

    It starts from Ward's tree in the coordinates of a shape, `tree`, whose number of
    clusters, `n_clusters`, sets the number of points and of components, `n_start`, at
    most `most_clusters`. `previous`: a mixture of earlier rows, or None.
    """

    def __init__(self, everything, tree, n_clusters):
        wanted = min(_POINTS_OF_CLUSTER * n_clusters, _MOST_POINTS)
        evidence = min(everything.n_rows, max(_EVIDENCE_ROWS, wanted))
        problem = everything.subset(max(_POINTS, wanted), evidence)
        n_start = _n_start(problem, n_clusters)
        super().__init__(everything, problem, tree, n_clusters, n_start)
        self.most_clusters = _most_clusters(problem)

    def wider(self, shape, best):
        """Return a search of more points, with the mixture `best` only."""
        tree = self.tree
        if tree.shape != shape:
            tree, _ = _tree_and_size(self.everything, shape)
        wider = Search(self.everything, tree, _MOST_POINTS // _POINTS_OF_CLUSTER)
        wider.n_start = self.n_start
        mixture = wider.problem.fit(best, *best.kind, 12)
        if mixture is None:
            mixture = wider.problem.single(best.shape)
        wider.keep(mixture)
        if self.skewed.gain(best) > 0:
            wider.skewed.look_at(mixture)
        if self.radial.gain(best) > 0:
            wider.radial.look_at(mixture)
        return wider

    def fit_all_kinds(self, shapes):
        """Fit mixtures of each promising shape, then of other spreads and tails."""
        tried = []
        for shape in itertools.chain(shapes[:1], self.promising(shapes)):
            if tried:
                self.tree, self.n_clusters = _tree_and_size(self.everything, shape)
                n_start = _n_start(self.problem, self.n_clusters)
                self.n_start = max(self.n_start, n_start)
            kind = shape, False, STUDENT_DOF
            self.descend(self.tree.mixture(self.n_start), *kind)
            self.descend_from_small_clusters()
            for other in tried:
                self.borrow(other, kind)
            self.polish(kind)
            if tried:
                self.learn_price(shape)
            tried.append(kind)
        self.begin_with_few_columns(shapes)
        self.vary()
        self.begin_with_previous(all_kinds=True)
        if not any(self.solutions.values()):
            self.keep(self.problem.single(shapes[0]))
        look_within_clusters(self)
        self.descend_from_best()
        if "tied" in shapes:
            self.begin_with_groups()
        self.let_clusters_be_skewed()
        if self.skewed.any:
            self.fit_few_clusters(shapes)
        self.let_clusters_have_cores()

    def fit_one_kind(self, kind, shapes):
        """Fit mixtures of the kind of an earlier result."""
        start = self.tree.mixture(self.n_start)
        self.descend(start, *kind[:3])
        if math.isinf(kind[2]):
            self.begin_with_tails(start, kind[:3])
        self.descend_from_small_clusters()
        self.polish(kind[:3])
        self.begin_with_previous()
        if not any(self.solutions.values()):
            self.keep(self.problem.single(shapes[0]))
        look_within_clusters(self)
        if kind[0] == "tied":
            self.begin_with_groups()
        if kind[3]:
            self.let_clusters_be_skewed()
        self.let_clusters_have_cores()

    def begin_with_groups(self):
        """Start from groups along one axis, and from groups of principal components.

        Where columns are correlated, a tree of the rows may show no groups, or not all.
        Where it shows several, the best mixtures are first fitted to convergence, and
        all mixtures remain as they were unless more clusters are then the best.
        """
        best = self.best()
        if best.n_clusters == 1:
            fit_groups_of_axis(self)
            fit_groups_of_components(self)
        elif best.shape == "tied":
            before = {kind: dict(found) for kind, found in self.solutions.items()}
            for mixture in self.ranked(best.kind)[:POLISHED]:
                self.keep(fit_groups(self, mixture.labels, best.kind))
            fit_groups_of_components(self, best.n_clusters)
            if self.best().n_clusters <= best.n_clusters:
                self.solutions = before

    def fit_few_clusters(self, shapes):
        """Fit few clusters of the shapes not tried, and keep those that are skewed.

        A shape was not promising where the pieces of skewed clusters are of another.
        """
        for shape in shapes:
            kind = shape, False, STUDENT_DOF
            if kind in self.solutions or not self.skewed.possible(shape):
                continue
            for k in range(1, _FEW_CLUSTERS + 1):
                found = [one[k] for one in self.solutions.values() if k in one]
                if not found:
                    continue
                start = max(found, key=self.value)
                mixture = self.problem.fit(start, *kind, 15)
                if mixture is not None:
                    self.skewed.look_at(mixture)
                    if self.skewed.gain(mixture) > 0:
                        self.keep(mixture)
            self.learn_price(shape)

    def let_clusters_be_skewed(self):
        """Add the gain of skewed clusters to the evidence of mixtures.

        The sizes go from one cluster more than the best mixture down, as long as the
        gain can matter: symmetric components cut a skewed cluster into pieces.
        """
        best = self.value(self.best())
        for k in range(self.best().n_clusters + 1, 0, -1):
            found = [one[k] for one in self.solutions.values() if k in one]
            for mixture in sorted(found, key=self.value)[-_KINDS:]:
                if self.value(mixture) + self.skewed.most > best:
                    self.skewed.look_at(mixture)
                    best = max(best, self.value(mixture))

    def let_clusters_have_cores(self):
        """Let clusters that share a centre be one, with a core and a halo.

        The noise of all clusters must have one distribution: see `RadialNoise`.
        """
        best = self.best()
        places = labels_of_centers(best)
        labels, k = places[best.labels], places.max() + 1
        if not 1 < k == len(np.unique(labels)) < best.n_clusters:
            return
        scales = np.bincount(places, best.masses * best.scales)
        scales /= np.bincount(places, best.masses)
        start = replace(self.problem.cut(best, labels), scales=scales)
        fits = [
            self.problem.fit(start, best.shape, own, STUDENT_DOF, 15)
            for own in dict.fromkeys([False, best.own])
        ]
        same = [one for one in self.mixtures if one.n_clusters == k]
        for mixture in filter(None, [*same, *fits]):
            self.radial.look_at(mixture)
        for mixture in filter(None, fits):
            found = self.solutions.setdefault(mixture.kind, {})
            found[k] = max(mixture, found.get(k, mixture), key=self.value)

    def begin_with_few_columns(self, shapes):
        """Start from a partition by the columns that are flatter than a normal one.

        If few columns of many separate the clusters, the other columns dominate the
        distances between rows, and the tree of all columns shows no clusters.
        """
        columns = self.problem.flat_columns()
        few = 0 < 2 * len(columns) < self.problem.d
        if not few or "diagonal" not in shapes:
            return
        tree, n_clusters = _tree_and_size(self.everything, "diagonal", columns)
        start = tree.mixture(_n_start(self.problem, n_clusters))
        for shape in (one for one in shapes if one != "round"):
            kind = shape, False, STUDENT_DOF
            self.descend(start, *kind)
            self.polish(kind)
            self.learn_price(shape)

    def promising(self, shapes):
        """Yield the shapes that may describe the points better than the one tried.

        The covariance within the clusters found so far gives a lower bound on the gain
        of a shape.
        """
        best = self.best()
        found = self.solutions[best.kind]
        top = best.n_clusters
        sizes = found.keys() & {*_SHAPED_SIZES, top, top // 2, top // 4}
        n_rows, pooled = self.problem.n_evidence, {}
        for k in sizes if len(shapes) > 1 else ():
            if self.problem.noisy(found[k]):
                pooled[k] = self.problem.pooled(found[k])
        for shape in shapes:
            gains = [
                found[k].evidence + sum(evidences_of_shape(covariance, shape, n_rows))
                for k, covariance in pooled.items()
                if shape != best.shape
            ]
            if gains and max(gains) > best.evidence + _LEAST_SHAPED:
                yield shape

    def own_promising(self):
        """Return whether own variances may increase the evidence."""
        best = self.best()
        found = self.solutions[best.shape, False, best.dof]
        for mixture in filter(self.problem.noisy, found.values()):
            variances = self.problem.variances(mixture)
            shares = mixture.masses / mixture.masses.sum()
            gain = math.log(shares @ variances) - shares @ np.log(variances)
            gain *= self.problem.n_rows * self.problem.d / 2
            gained = mixture.gaining(mixture.shape, True, gain)
            price = mixture.evidence - mixture.gaining(mixture.shape, True).evidence
            if gained.evidence + _PROMISING * price > best.evidence:
                return True
        return False

    def vary(self):
        """Try own variances, and normal tails."""
        if not any(self.solutions.values()):
            return
        best = self.best()
        shape = best.shape
        # One heavy tail may be several clusters with one centre.
        if best.n_clusters == 1 or self.own_promising():
            tree = self.tree
            if tree.shape != shape:
                tree = Tree(tree.problem, shape)
            self.descend(tree.mixture(self.n_start), shape, True, STUDENT_DOF)
            self.polish((shape, True, STUDENT_DOF))
        close = self.value(self.best()) - _CLOSE
        for kind in list(self.solutions):
            if self.value(self.best(kind)) > close:
                normal = *kind[:2], math.inf
                for start in self.ranked(kind)[:POLISHED]:
                    self.keep(self.problem.fit(start, *normal, 12))
                self.polish(normal)
