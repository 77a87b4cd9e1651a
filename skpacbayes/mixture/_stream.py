"""Streams: blocks of rows, and a window of the latest ones."""

from copy import copy

import numpy as np
from scipy.sparse import issparse, vstack

from ._ascent import Fit
from ._search import from_labels

AUTO_WINDOW = 4  # blocks
EMPTY = 0.05  # share of the mean number of rows, below which a component is empty
NEWS = 0.1  # least gain of a block with a new group by its sweeps, in nats per row
OWN_SWEEPS = 10  # sweeps of a component that is fitted to the block alone


class Rows:
    """Rows and their weights, collected from calls of any size.

    `chunks` holds (rows, weights, number of rows so far). An interrupted append has
    either added all rows or none.
    """

    def __init__(self, chunks=()):
        self.chunks = []
        for X, weight, _ in chunks:
            self.append(X, weight)

    def __len__(self):
        return self.chunks[-1][2] if self.chunks else 0

    def append(self, X, weight):
        """Add rows at the end; they are not copied."""
        self.chunks.append((X, weight, len(self) + X.shape[0]))

    def joined(self):
        """Return the rows as one array, and their weights."""
        if len(self.chunks) > 1:
            parts, weights, lengths = zip(*self.chunks, strict=True)
            stack = vstack if any(map(issparse, parts)) else np.concatenate
            self.chunks = [(stack(parts), np.concatenate(weights), lengths[-1])]
        return self.chunks[0][:2]

    def split(self, n_first):
        """Return the first `n_first` rows and the others."""
        if not 0 < n_first < len(self):
            return (self, Rows()) if n_first else (Rows(), self)
        X, weight = self.joined()
        parts = slice(n_first), slice(n_first, None)
        return tuple(Rows([(X[part], weight[part], None)]) for part in parts)

    def __add__(self, other):
        rows = self.copy()
        for X, weight, _ in other.chunks:
            rows.append(X, weight)
        return rows

    def copy(self):
        """Return the same rows, to which others can be added."""
        rows = Rows()
        rows.chunks = self.chunks.copy()
        return rows

    def __getstate__(self):
        if self.chunks:
            self.joined()
        return self.__dict__


class Stream:
    """State of a stream: settled statistics, a window, a pending block.

    Rows wait in `pending` until they fill a block. The first block is fitted like any
    data set. Before a later block is added to the window, the rows that exceed the
    window settle: only their statistics are kept, and no longer change. Then `n_sweeps`
    sweeps follow. Components are also exchanged at three times: when the number of
    blocks has doubled; at the last block before rows settle; and at blocks with new
    groups, whose density rises a lot in their sweeps. Before any row has settled,
    `n_init` new starts are tried first. The prior then follows, if the bound may choose
    it: the first rows may be of a single group, and others are not like it. If the
    number of components is chosen, it may also change whenever a quarter of the window
    is new.

    If the window is longer than four blocks, a block may have too few rows for the
    prior and for the number of components. As long as no row has settled, the rows are
    then fitted again like any data set, whenever their number has grown by half. When
    an eighth of them is new, the number of components may change, or components are
    exchanged if the number is given; the scale of the prior follows.

    With few rows, the bound may prefer to leave components empty, and groups whose rows
    have settled together are not separated later. As long as a component is empty, the
    window therefore grows beyond its size, up to `longest` rows; only the fits to
    all rows rearrange components then.

    The checks for outliers and for better families are made when the last of these fits
    is through, or when the mixture is looked at before: a small component may be a
    group of which more follows.

    Parameters
    ----------
    block_size : int or None
        Rows of a block; None for one block that grows.
    window : int
        Number of rows that are kept after they have been used.
    longest : int, default=0
        Number of rows that are kept as long as a component is empty, if it is larger.
    family : ProductFamily, default=None
        Families of the columns, before a block has been learnt.
    """

    has_warned = False  # whether it has warned of a missed group
    unchecked = False  # whether outliers and families are still to be checked

    def __init__(self, block_size, window, longest=0, family=None):
        self.family = family
        self.block_size = block_size
        self.usual_size = window
        self.window_size = max(window, longest)
        self.learned = None
        self.n_blocks = self.n_fitted = 0  # n_fitted: rows of the last fit
        self.n_new = 0  # rows since the last fit or choice
        self.pending, self.window = Rows(), Rows()
        self.settled = self.state = self.history = None
        self.bound = None  # set if all rows have settled

    @classmethod
    def settled_at(cls, learned, state, statistics, bound, block_size, window):
        """Return a stream whose rows have all settled in `statistics`."""
        stream = cls(block_size, window)
        stream.learned, stream.state, stream.settled = learned, state, statistics
        stream.bound = bound
        return stream

    def extended(self, X, weight, learner):
        """Return a stream that has also seen these rows; this one stays as it is.

        The `learner` fits the first block and exchanges components.
        """
        self.check_new_rows(X)
        stream = copy(self)
        stream.pending = self.pending.copy()
        while X.shape[0]:
            room = X.shape[0]
            if self.block_size is not None:
                room = min(room, self.block_size - len(stream.pending))
            stream.pending.append(X[:room].copy(), weight[:room].copy())
            X, weight = X[room:], weight[room:]
            if len(stream.pending) == self.block_size:
                stream._commit(learner)
                if stream.n_new == 0 and X.shape[0]:  # its family may be another one
                    stream.learned.mixture.family.check_rows(X)
                    stream.check_new_rows(X)
        return stream

    def check_new_rows(self, X):
        """Raise a ValueError for rows that the family cannot learn after a block."""
        if self.learned is not None:
            self.learned.mixture.family.check_new_rows(X)

    def has_room(self, count):
        """Return whether the block is not full even with `count` more rows."""
        size = self.block_size
        return size is None or len(self.pending) + count < size

    def waiting(self, X, weight):
        """Return a stream with these rows added to `pending`, without a copy."""
        self.check_new_rows(X)
        stream = object.__new__(Stream)
        vars(stream).update(vars(self), pending=self.pending.copy())
        stream.pending.append(X, weight)
        return stream

    def _commit(self, learner):
        """Use the pending block."""
        self.bound = None
        self.n_blocks += 1
        if self.learned is None:
            self._begin(learner)
        else:
            self._open_prior()
            self._settle_old_rows()
            self.window = self.window + self.pending
            self._shorten_window()
            self.n_new += len(self.pending)
            grows = self._is_long() and not self.settled.any()
            half_more = 2 * len(self.window) >= 3 * self.n_fitted
            if grows and (self._last_chance() or half_more):
                self._begin(learner)
            else:
                self._continue(learner, grows)
        self.pending = Rows()
        if self.unchecked and not self._will_be_fitted():
            self.check(learner)
            self.unchecked = False

    def _begin(self, learner):
        """Fit the rows so far like any data set; an earlier fit of them may be kept."""
        rival = None
        if self.learned is None:
            self.window = self.pending
        else:
            rows = self.window.joined()
            rival = self.learned.mixture.ascend(self.state, *rows, **learner.to)
        X, weight = self.window.joined()
        weight = None if (weight == 1).all() else weight
        early = self._will_be_fitted()
        self.learned = learner.learn(X, weight, rival=rival, early=early)
        self.unchecked = early and not learner.found_atoms
        fit = self.learned.fit
        self.state, self.history = fit.state, fit.history
        self.settled = np.zeros_like(fit.statistics)
        self.n_fitted, self.n_new = len(self.window), 0

    def _continue(self, learner, grows):
        """Sweep over the window, and exchange or choose components if it is time.

        While the window `grows`, new fits to all rows do this. While it exceeds its
        usual size, there are fewer sweeps, so that a block costs no more than later.
        """
        doubled = self.n_blocks & (self.n_blocks - 1) == 0  # a power of two
        due = not grows and (doubled or self._last_chance())
        excess = len(self.window) / max(1, self.usual_size) if grows else 0.0
        waits = excess > 1.0  # for the rows of an empty component
        chosen = (grows and not waits) or learner.chooses
        chosen &= not self._is_long() or self._is_new(1 / 8 if grows else 1 / 4)
        watched = not (due or chosen)
        before = self._log_density_of_block() if watched else 0.0
        self._sweep(max(1, int(learner.n_sweeps / max(1.0, excess))))
        news = watched and self._is_news(before)
        if doubled and not grows:
            fit = Fit(self.learned.mixture, self.state, None, [], False)
            learner.warn_of_values(fit, *self.window.joined())
        if due or news:
            self._exchange(learner)
        elif chosen:
            self._rearrange(learner) if grows else self._renumber(learner)
        if not (grows and chosen):
            self._adapt_prior(learner)
        if news and self.settled.any() and not self.has_warned:
            self._warn_if_missed()

    def _adapt_prior(self, learner):
        """Let the bound choose the prior again, at the statistics of all rows."""
        mixture, rows = self.learned.mixture, self.window.joined()
        statistics = mixture.e_step(self.state, *rows)[0] + self.settled
        bound = mixture.bound(self.state, 0.0, statistics)
        fit = Fit(mixture, self.state, statistics, [bound], True)
        mixture, self.state = mixture.prior_after(fit, *rows, learner.to["tol"])
        self.learned = self.learned._replace(mixture=mixture)

    def _open_prior(self):
        """Widen the prior for groups that are not among the first rows."""
        mixture = self.learned.mixture
        opened = mixture.family.opened().including(self.pending.joined()[0])
        if opened is not mixture.family:
            self.learned = self.learned._replace(mixture=mixture.with_family(opened))

    def _settle_old_rows(self):
        old, recent = self.window.split(max(0, len(self.window) - self.window_size))
        if len(old):
            statistics, _ = self.learned.mixture.e_step(self.state, *old.joined())
            self.settled = self.settled + statistics
            self.window = recent

    def _shorten_window(self):
        """Let a window that is full have its usual size, unless it waits for rows."""
        usual, full = self.usual_size, len(self.window) > self.window_size
        if self.window_size > usual and len(self.window) > usual:
            counts = self.state.concentration - self.learned.mixture.concentration
            if full or counts.min() >= EMPTY * counts.mean():
                self.window_size = usual

    def _sweep(self, n_sweeps):
        self.state, self.history = self.learned.mixture.sweep(
            self.state, *self.window.joined(), self.settled, n_sweeps=n_sweeps
        )

    def _is_long(self):
        return self.window_size > AUTO_WINDOW * self.block_size

    def _will_be_fitted(self):
        """Return whether all rows so far are fitted again if the stream goes on."""
        if self.block_size is None or not self._is_long():
            return False
        whole = not self.n_fitted or not self.settled.any()
        return whole and len(self.window) <= self.window_size

    def check(self, learner):
        """Warn of outliers and of better families at the current state, if not done.

        Families are compared as long as no row has settled.
        """
        if self.unchecked:
            mixture, rows = self.learned.mixture, self.window.joined()
            statistics, log_normalizer = mixture.e_step(self.state, *rows)
            bound = mixture.bound(self.state, log_normalizer, self.settled)
            fit = Fit(mixture, self.state, statistics, [bound], True)
            learner.warn_of_outliers(fit, *rows)
            if not self.settled.any():
                learner.warn_of_families(fit, {fit.n_components: fit}, *rows)

    def _last_chance(self):
        """Return whether rows of the window settle next, for the first time.

        A window of four blocks has just been exchanged: four is a power of two.
        """
        usual = self.window_size == AUTO_WINDOW * self.block_size
        full = len(self.window) > self.window_size
        return full and not usual and not self.settled.any()

    def _is_new(self, share):
        """Return whether a share of the window is new since the last fit to it."""
        return self.n_new >= share * min(len(self.window), self.window_size)

    def _log_density_of_block(self):
        """Return the log-normaliser of the E-step, summed over the pending rows."""
        return self.learned.mixture.e_step(self.state, *self.pending.joined())[1]

    def _is_news(self, before):
        """Return whether the sweeps raised the log density of the block a lot.

        Rows of known groups gain about one nat per entry of the statistics, times
        their share of all rows.
        """
        gain = self._log_density_of_block() - before
        rows = self.pending.joined()[1].sum()
        share = rows / (self.window.joined()[1].sum() + self.settled[:, 0].sum())
        return gain > NEWS * rows + 2 * share * self.settled.size

    def _warn_if_missed(self):
        """Let the family warn if a new group of the block is not described well.

        If the group has no component, a single one fitted to the block raises its log
        density a lot, given the component of each row.
        """
        mixture, (X, weight) = self.learned.mixture, self.pending.joined()
        own = from_labels(mixture, 1, X, weight, np.zeros(len(weight), dtype=np.intp))
        own = mixture.ascend(own, X, weight, max_iter=OWN_SWEEPS, tol=0.0)

        def log_density(mixture, state):
            joint = np.empty((X.shape[0], len(state.concentration)))
            mixture.density(state).log_joint(X, joint)
            return weight @ (joint - state.log_weights).max(axis=1)

        gain = log_density(own.mixture, own.state) - log_density(mixture, self.state)
        missed = gain > NEWS * weight.sum() + self.settled.shape[1]
        if missed or not mixture.family.has_settled_well(self.settled):
            mixture.family.warn_of_news()
            self.has_warned = True

    def _exchange(self, learner):
        """Ascend to a maximum on the window, and try exchanges for a larger one."""
        fit, self.settled = learner.improve(
            self.learned.mixture, self.state, *self.window.joined(), self.settled
        )
        self.state, self.history = fit.state, self.history + fit.history

    def _renumber(self, learner):
        """Let the number of components change, if it is chosen."""
        rows, before = self.window.joined(), len(self.state.concentration)
        fit = self.learned.mixture.ascend(
            self.state, *rows, self.settled, max_iter=1, tol=0.0
        )
        fit, settled = learner.renumber(fit, *rows, self.settled)
        self.n_new = 0
        if fit.n_components != before:
            self.state, self.settled = fit.state, settled
            self.history = self.history + fit.history

    def _rearrange(self, learner):
        """Change the number of components, or exchange them, before any row settles."""
        fit = learner.rearranged(
            self.learned.mixture, self.state, *self.window.joined()
        )
        self.learned = self.learned._replace(mixture=fit.mixture)
        self.state, self.history = fit.state, self.history + fit.history
        self.settled, self.n_new = np.zeros_like(fit.statistics), 0

    def current(self, learner):
        """Return the stream as if the pending rows were a block."""
        if not len(self.pending):
            return self
        stream = copy(self)
        stream._commit(learner)
        return stream

    def summary(self):
        """Return the statistics of all rows and the bound, at the current state."""
        mixture = self.learned.mixture
        if self.bound is not None:
            return self.settled, self.bound
        if not len(self.window):
            return self.settled, mixture.bound(self.state, 0.0, self.settled)
        statistics, log_normalizer = mixture.e_step(self.state, *self.window.joined())
        bound = mixture.bound(self.state, log_normalizer, self.settled)
        return statistics + self.settled, bound
