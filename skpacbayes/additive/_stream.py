"""Rows that come in one after the other, and what is kept of them."""

import copy

from ._statistics import BLOCK, Rows, Sums


class Stream:
    """Rows, as long as they are few; then sums of products, and chains that stand.

    The first `n_kept` rows fix the functions. From then on rows are gathered into
    blocks, wherever the calls cut them, whose products are added. Whenever the number
    of rows has doubled the chains go on from where they stood.

    Parameters
    ----------
    rows : Rows
        The first rows, perhaps none.
    n_kept : int
        See above.
    learner : object
        It has `_dictionary(rows)`, and `_stand(sums, standing, n_rows)`, which runs
        the chains and returns where they stand.
    """

    def __init__(self, rows, n_kept):
        self.rows, self.n_kept = rows, n_kept
        self.sums = self.pending = self.standing = None
        self.n_settled = self.n_stood = 0

    def extended(self, rows, learner):
        """Return the stream with more rows; this one stays as it is."""
        stream = copy.copy(self)
        start = 0
        while start < len(rows):
            start += stream._take(rows, start, learner)
        return stream

    def _take(self, rows, start, learner):
        """Take as many rows as go in without more ado, and return their number."""
        if self.sums is None and len(self.rows) >= self.n_kept:
            self._settle(learner._dictionary(self.rows))
            self._stand(learner)
        if self.sums is None:
            part = rows.part(start, start + self.n_kept - len(self.rows))
            self.rows = self.rows.joined(part)
            return len(part)
        part = rows.part(start, start + BLOCK - len(self.pending))
        self.pending = self.pending.joined(part)
        if len(self.pending) == BLOCK:
            self.sums = self.sums.joined(self.pending)
            self.pending = Rows.none(part.X.shape[1])
            self.n_settled += BLOCK
            if self.n_settled >= 2 * self.n_stood:
                self._stand(learner)
        return len(part)

    def _settle(self, dictionary):
        """From now on the functions stay, and rows are summed."""
        self.sums = Sums.of_rows(self.rows, dictionary)
        self.n_settled = len(self.rows)
        self.rows, self.pending = None, Rows.none(self.rows.X.shape[1])

    def _stand(self, learner):
        self.standing = learner._stand(self.sums, self.standing, self.n_settled)
        self.n_stood = self.n_settled

    def settled(self, dictionary):
        """Return the stream with its rows summed, however few they are."""
        stream = copy.copy(self)
        if stream.sums is None:
            stream._settle(dictionary)
        if len(stream.pending):
            stream.sums = stream.sums.joined(stream.pending)
            stream.n_settled += len(stream.pending)
            stream.pending = Rows.none(stream.pending.X.shape[1])
        return stream

    def absorbed(self, statistics, memory):
        """Return a settled stream with sums of more rows."""
        stream = copy.copy(self)
        stream.sums = stream.sums.replaced(memory * stream.sums.total + statistics)
        return stream

    def problem(self, learner, bounded):
        """Return the regression on all rows so far."""
        if self.sums is None:
            return self.rows.problem(learner._dictionary(self.rows), bounded)
        sums = self.sums.joined(self.pending) if len(self.pending) else self.sums
        return sums.problem(bounded)
