"""Results of a fitted state, computed when first needed."""

from functools import cached_property

import numpy as np
from scipy.special import expit, logsumexp, softmax

from .._kernels.mixture import log_sums_of_rows, normalise_exponentials
from .._validation import refuse_hidden
from ._outliers import OutlierFamily
from ._stream import Stream

SCORED_ROWS = 4096  # rows whose densities are computed at a time


class Answer:
    """The mixture of a state, including the rows of its incomplete block.

    Parameters
    ----------
    stream : Stream
        The stream after its pending rows.
    statistics : ndarray of shape (n_components, n_columns)
        Statistics of all rows.
    bound : float
        The bound J of all rows.
    history : list of float
        Bounds of the last iterations.
    """

    def __init__(self, stream, statistics, bound, history):
        self.stream = stream
        self.statistics = statistics
        self.bound = bound
        self.history = history

    @property
    def mixture(self):
        """The prior and the temperature."""
        return self.stream.learned.mixture

    @property
    def state(self):
        """The distribution of the weights and of the components."""
        return self.stream.state

    # Results for rows.

    def labels(self, X):
        """Return the most probable component of each row; -1 for outliers."""

        def write(scores, out):
            out[:] = scores.argmax(axis=1)
            if self.has_outliers:
                out[self.shares_of_outliers(scores) > 0.5] = -1

        return filled(self.joint, X, write, np.empty(X.shape[0], dtype=np.int64))

    def responsibilities(self, X):
        """Return the variational probabilities of the components."""
        shares = np.empty((X.shape[0], self.joint.n_components))
        return filled(self.joint, X, normalise_exponentials, shares)

    def predictive_shares(self, X):
        """Return the predictive probabilities of the components of usual rows."""
        family, posterior = self.usual
        scorer = family.predictive_scorer(posterior)
        scores = np.empty((X.shape[0], scorer.n_components))
        scorer.write(X, scores)
        return softmax(scores + self.log_weights, axis=1)

    def outlier_probabilities(self, X):
        """Return the probabilities that rows are outliers."""

        def write(scores, out):
            out[:] = self.shares_of_outliers(scores)

        return filled(self.joint, X, write, np.empty(X.shape[0]))

    def log_densities(self, X):
        """Return the log predictive densities."""
        return mixed(self.predictive, self.log_weights, X)

    def drawn(self, n_samples, generator, **how):
        """Draw rows, sorted by component, and their components."""
        family, components = self.mixture.family, self.state.components
        sizes = generator.multinomial(n_samples, self.weights)
        rows = [
            family.draw(components, k, size, generator, **how)
            for k, size in enumerate(sizes)
        ]
        return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)

    def drawn_of(self, labels, generator, **how):
        """Draw a row for each label, in their order."""
        usual, components = self.usual
        parts = []
        for k, size in zip(*np.unique(labels, return_counts=True), strict=True):
            if k < 0:
                family, posterior = self.mixture.family, self.state.components
                parts.append(family.draw_outliers(posterior, size, generator))
            else:
                parts.append(usual.draw(components, k, size, generator, **how))
        sorted_rows = np.concatenate(parts)
        rows = np.empty_like(sorted_rows)
        rows[np.argsort(labels, kind="stable")] = sorted_rows
        return rows

    def checked_labels(self, labels, n_samples):
        """Return one valid label for each row to draw."""
        refuse_hidden(labels, "labels")
        given = np.asarray(labels)
        whole = np.full(n_samples, given) if given.ndim == 0 else given
        if given.dtype.kind not in "iu" or whole.ndim != 1 or not len(whole):
            raise ValueError(
                "labels must be an integer or a non-empty sequence of integers, "
                f"got {labels!r}."
            )
        if n_samples not in (1, len(whole)):
            raise ValueError(
                f"n_samples={n_samples} should equal the number of labels, "
                f"{len(whole)}."
            )
        first, K = -1 if self.has_outliers else 0, len(self.weights)
        wrong = whole[(whole < first) | (whole >= K)]
        if len(wrong):
            raise ValueError(
                f"labels must be from {first} to n_components_ - 1 = {K - 1}, got "
                f"{wrong[0]}."
            )
        return whole.astype(np.int64)

    def absorbed(self, statistics, memory):
        """Return the stream with statistics added to `memory` times its own."""
        known, mixture, stream = self.statistics, self.mixture, self.stream
        if statistics.shape != known.shape:
            raise ValueError(
                f"statistics have shape {statistics.shape}, but this mixture's have "
                f"shape {known.shape}."
            )
        mixture.check_statistics(statistics, self.state)
        total = memory * known + statistics
        state = mixture.m_step(total, self.state)
        bound = mixture.bound(state, 0.0, total)
        sizes = stream.block_size, stream.usual_size
        return Stream.settled_at(stream.learned, state, total, bound, *sizes)

    @property
    def has_outliers(self):
        """Whether there is a uniform distribution for outliers."""
        return isinstance(self.mixture.family, OutlierFamily)

    @property
    def usual(self):
        """Return the family and the posterior of rows that are not outliers."""
        family, posterior = self.mixture.family, self.state.components
        if self.has_outliers:
            return family.inner, posterior.components
        return family, posterior

    def shares_of_outliers(self, scores):
        """Return the outlier probabilities of rows, given their log joint densities."""
        totals = np.empty(len(scores))
        log_sums_of_rows(scores, np.zeros(scores.shape[1]), totals)
        return expit(self.log_outlier - totals)

    # Computed when first needed.

    @cached_property
    def joint(self):
        """Scorer of E log p_k + E log q_k(x)."""
        state = self.state
        return self.mixture.family.scorer(state.components, state.log_weights)

    @cached_property
    def predictive(self):
        """Scorer of the log predictive densities of the components."""
        return self.mixture.family.predictive_scorer(self.state.components)

    @property
    def weights(self):
        """Posterior means of the weights."""
        return self.state.concentration / self.state.concentration.sum()

    @cached_property
    def log_weights(self):
        """Logarithms of the posterior means of the weights."""
        return log_mean_weights(self.state)

    @cached_property
    def log_outlier(self):
        """Expected log joint density of a row and the outlier component."""
        log_outlier = self.mixture.family.log_outlier(self.state.components)
        return log_outlier + logsumexp(self.state.log_weights)

    @cached_property
    def parameters(self):
        """Posterior of the components, by name."""
        return self.mixture.family.attributes(self.state.components)


def answered(read, description):
    """Return a property that applies `read` to the `Answer` of a mixture."""
    return property(lambda mixture: read(mixture._answer()), doc=description)


def log_densities(family, state, X):
    """Return the log predictive densities of rows under a state."""
    scorer = family.predictive_scorer(state.components)
    return mixed(scorer, log_mean_weights(state), X)


def log_mean_weights(state):
    """Return the logarithms of the posterior means of the weights."""
    return np.log(state.concentration / state.concentration.sum())


def mixed(scorer, log_weights, X):
    """Return the log densities of the mixture, given those of the components."""

    def write(scores, out):
        log_sums_of_rows(scores, log_weights, out)

    return filled(scorer, X, write, np.empty(X.shape[0]))


def filled(scorer, X, write, result):
    """Return `result`, filled by `write(scores, part)` in batches of rows."""
    n_rows = X.shape[0]
    scores = np.empty((min(n_rows, SCORED_ROWS), scorer.n_components))
    for start in range(0, n_rows, SCORED_ROWS):
        part = X if n_rows <= SCORED_ROWS else X[start : start + SCORED_ROWS]
        out = scores[: part.shape[0]]
        scorer.write(part, out)
        write(out, result[start : start + SCORED_ROWS])
    return result
