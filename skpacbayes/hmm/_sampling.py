"""How an estimator of a hidden Markov model takes rows in and samples."""

import copy
import warnings
from operator import attrgetter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._base import SeriesEstimator, refuse_changes, user_stack_level
from .._convergence import LEAST_DRAWS, rank_normalised, split_r_hat
from ._chain import Chain
from ._model import Model, Parameters
from ._posterior import medians, rows_of
from ._run import Run, stacked
from ._series import Rows, Series, sequence_bounds, units_of

N_USED = 100  # draws that answer for new rows, at most
# Parameters that stay as they are within a stream.
OF_MODEL = (
    "n_states",
    "emission",
    "n_atoms",
    "concentration",
    "transition_prior",
    "min_transition",
    "startprob",
    "covariance_type",
    "n_chains",
)
read_model = attrgetter(*OF_MODEL)
R_HAT_LIMIT = 1.2  # from which on chains are said to disagree
# Chains run in so many blocks, of so many sweeps at least, and callbacks follow.
_N_BLOCKS, _LEAST_BLOCK = 20, 10


class SampledHMM(SeriesEstimator):
    """Keeps rows, samples when it has to, and describes the draws."""

    @property
    def transmat_samples_(self):
        """Matrix of transitions of each draw."""
        return self._sampled()._draws.transitions

    @property
    def transmat_(self):
        """Posterior mean of the matrix of transitions."""
        return self.transmat_samples_.mean(axis=0)

    @property
    def startprob_(self):
        """Posterior mean of the law of the first state."""
        return self._sampled()._draws.start.mean(axis=0)

    @property
    def locations_(self):
        """Posterior mean of the median of each feature in each state."""
        used = Parameters(*(part[self._sampled()._used] for part in self._draws))
        standard = medians(used).mean(axis=0)
        return standard * self._units.unit + self._units.offset

    @property
    def log_likelihoods_(self):
        """Log density of the rows at each sweep of each chain."""
        return self._sampled()._log_likelihoods

    @property
    def r_hat_(self):
        """Split R-hat of the log-likelihoods after `burn_in`."""
        return self._sampled()._r_hat

    @property
    def n_iter_(self):
        """Sweeps of each chain, the last time."""
        return self._sampled()._n_iter

    def _model_of(self, n_features):
        """Make the prior that the parameters ask for; ValueError if they contradict."""
        least = self.min_transition
        if least * self.n_states > 1 + 1e-12:
            raise ValueError(
                f"min_transition={least} should be at most 1 / n_states = "
                f"{1 / self.n_states:.6g}, for rows of transitions to sum to 1."
            )
        return Model(
            n_states=self.n_states,
            n_atoms=self.n_atoms,
            n_features=n_features,
            shared=self.emission == "translated",
            full=self.covariance_type == "full",
            concentration=float(self.concentration),
            transition_prior=float(self.transition_prior),
            min_transition=float(least),
            stationary=self.startprob == "stationary",
        )

    def _begin(self, X, bounds):
        """Keep rows, and forget all others."""
        self._model = self._model_of(X.shape[1])
        self._begun_with = read_model(self)
        self._series = Series(X, bounds)
        self._chains = [
            (None, rng, None) for rng in self._generator().spawn(self.n_chains)
        ]
        self._n_sampled = 0
        self.n_samples_seen_ = len(X)

    def _continue(self, X):
        """Keep more rows of the last sequence."""
        refuse_changes(OF_MODEL, self._begun_with, read_model(self))
        self._series.extend(X)
        self.n_samples_seen_ = len(self._series)

    def _sampled(self):
        """Sample, if there are rows that the draws do not know; the estimator."""
        check_is_fitted(self)
        if self._n_sampled != len(self._series):
            for _ in self._sampling(self._blocks()):
                pass
        return self

    def _blocks(self):
        """Whether each sweep is kept, in the blocks in which the chains run."""
        after = np.arange(-self.burn_in, self.n_iter)
        kept = (after >= 0) & (after % self.thin == 0)
        n_blocks = min(_N_BLOCKS, len(kept) // _LEAST_BLOCK)
        return np.array_split(kept, max(1, n_blocks))

    def _sampling(self, blocks):
        """Run the chains for each of `blocks`, from where they stand, and publish."""
        X, bounds, model = self._series.rows, self._series.bounds, self._model
        units = units_of(X)
        rows = Rows(units.standard(X), bounds)
        runs = []
        for parameters, rng, votes in self._chains:
            if parameters is not None:
                ratio = self._units.unit / units.unit
                shift = (self._units.offset - units.offset) / units.unit
                parameters = parameters.rescaled(ratio, shift, model.shared)
            chain = Chain(rows, model, copy.deepcopy(rng), parameters)
            runs.append(Run(chain, votes))
        for keep in blocks:
            Parallel(self.n_jobs, require="sharedmem")(
                delayed(run.advance)(keep) for run in runs
            )
            yield
        log_unit = np.log(units.unit) @ (~np.isnan(X)).sum(axis=0)
        self._publish(runs, units, log_unit)
        self._n_sampled = len(X)

    def _publish(self, runs, units, log_unit):
        """Keep the draws of all chains, or of the best if they disagree."""
        for run in runs:
            if not run.draws:  # a callback stopped it early
                run.keep()
        for run in runs[1:]:
            run.relabel(runs[0].votes)
        self._units = units
        self._chains = [
            (run.chain.parameters, run.chain.rng, run.votes) for run in runs
        ]
        self._log_likelihoods = (
            np.array([run.log_likelihoods for run in runs]) - log_unit
        )
        self._n_iter = self._log_likelihoods.shape[1]
        kept = self._log_likelihoods[:, min(self.burn_in, self._n_iter - 1) :]
        self._r_hat = float(split_r_hat(rank_normalised(kept)))
        if self._r_hat > R_HAT_LIMIT:
            best = int(kept.mean(axis=1).argmax())
            self._warn(kept, best)
            runs = runs[best : best + 1]
        self._draws = stacked([draw for run in runs for draw in run.draws])
        n_draws = len(self._draws.start)
        self._used = np.linspace(0, n_draws - 1, min(N_USED, n_draws)).astype(int)

    def _warn(self, kept, best):
        if kept.shape[1] < LEAST_DRAWS:
            found = (
                f"There are too few sweeps after burn_in={self.burn_in} to tell "
                "whether the chains agree."
            )
        else:
            means = ", ".join(f"{mean:.1f}" for mean in kept.mean(axis=1))
            many = len(kept) > 1
            found = (
                f"{'The chains disagree' if many else 'The chain has not settled'}: "
                f"R-hat of the log-likelihoods is {self._r_hat:.2f}, more than "
                f"{R_HAT_LIMIT}, and their mean is {means}."
            )
        warnings.warn(
            f"{found} The draws are those of chain {best}, the best; increase n_iter "
            "and burn_in, or n_chains.",
            ConvergenceWarning,
            stacklevel=user_stack_level(),
        )

    def _used_draws(self):
        """Return the draws that answer for new rows, each as Parameters."""
        draws = self._sampled()._draws
        return [Parameters(*(part[i] for part in draws)) for i in self._used]

    def _new_rows(self, X, lengths=None, groups=None):
        """Sequences to answer for, in standard units, and the logs of these units."""
        self._sampled()
        X = self._rows(X)
        return rows_of(X, self._units, sequence_bounds(len(X), lengths, groups))

    def _grid(self, grid):
        """Points to answer for, as `_new_rows` has rows."""
        grid = np.asarray(grid, dtype=np.float64)
        if grid.ndim == 1 and self.n_features_in_ == 1:
            grid = grid[:, None]
        if grid.ndim != 2 or grid.shape[1] != self.n_features_in_:
            raise ValueError(
                f"grid has shape {grid.shape}, but the rows had {self.n_features_in_} "
                "features."
            )
        return rows_of(grid, self._units, sequence_bounds(len(grid)))
