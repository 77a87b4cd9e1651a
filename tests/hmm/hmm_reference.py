"""Hidden Markov models in NumPy, by enumeration and by the letter of the model.

Written from the model, independently of the package: a chain of k states with
transitions Q, whose first state has the invariant law of Q unless another is given,
and densities of the rows given the states. Nothing here is fast.
"""

import itertools

import numpy as np
from scipy import stats
from scipy.special import logsumexp


def invariant_law(transitions):
    """Left eigenvector of the eigenvalue 1."""
    values, vectors = np.linalg.eig(np.transpose(transitions))
    law = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    return law / law.sum()


def long_run_law(transitions, stages):
    """Share of rows of each state: how often it is entered, times its mean duration."""
    if len(stages) == 1:
        return np.ones(1)
    leave = 1 - np.diag(transitions)
    jumps = (transitions - np.diag(1 - leave)) / leave[:, None]
    rows = invariant_law(jumps) * stages / leave
    return rows / rows.sum()


def mixture_log_density(X, weights, means, covariances):
    """Log density of a mixture of Gaussians at each row; 0 where a row is missing.

    means : (n_atoms, n_features); covariances : (n_atoms, n_features, n_features).
    """
    log_density = np.zeros(len(X))
    seen = ~np.isnan(X).any(axis=1)
    atoms = [
        np.log(weight) + stats.multivariate_normal(mean, covariance).logpdf(X[seen])
        for weight, mean, covariance in zip(weights, means, covariances, strict=True)
        if weight > 0
    ]
    log_density[seen] = logsumexp(atoms, axis=0)
    return log_density


def log_densities_of(rows, point, model):
    """Log density of each row in each state, (T, k), of the first copy."""
    columns = []
    for j in range(model.n_states):
        shape = 0 if model.shared else j
        columns.append(
            [
                mixture_log_density(
                    row[None, seen],
                    point["weights"][0, shape],
                    (point["locations"][0, j] + point["means"][0, shape])[:, seen],
                    point["covariances"][0, shape][:, seen][:, :, seen],
                )[0]
                if (seen := ~np.isnan(row)).any()
                else 0.0
                for row in rows
            ]
        )
    return np.transpose(columns)


class Paths:
    """Every path of one sequence, with its probability.

    Parameters
    ----------
    start : array of shape (k,)
    transitions : array of shape (k, k) or (T, k, k)
        With three axes, those into each row.
    log_density : array of shape (T, k)
        Of each row given each state.
    """

    def __init__(self, start, transitions, log_density):
        n_rows, n_states = log_density.shape
        self.n_states = n_states
        self.paths = np.array(list(itertools.product(range(n_states), repeat=n_rows)))
        with np.errstate(divide="ignore"):
            log_start, log_transitions = np.log(start), np.log(transitions)
        log_transitions = np.broadcast_to(log_transitions, (n_rows, n_states, n_states))
        self.log_joint = log_start[self.paths[:, 0]].copy()
        for t in range(n_rows):
            if t:
                before, now = self.paths[:, t - 1], self.paths[:, t]
                self.log_joint += log_transitions[t, before, now]
            self.log_joint += log_density[t, self.paths[:, t]]
        self.log_evidence = logsumexp(self.log_joint)
        self.posterior = np.exp(self.log_joint - self.log_evidence)

    def marginals(self):
        """P(x_t = j | y), of shape (T, k)."""
        return np.array(
            [
                [self.posterior[column == j].sum() for j in range(self.n_states)]
                for column in self.paths.T
            ]
        )

    def pairs(self):
        """P(x_t = i, x_{t+1} = j | y), summed over t."""
        totals = np.zeros((self.n_states, self.n_states))
        for before, now in itertools.pairwise(self.paths.T):
            np.add.at(totals, (before, now), self.posterior)
        return totals

    def best(self):
        """The likeliest path and its log joint density with the rows."""
        index = np.argmax(self.log_joint)
        return self.paths[index], self.log_joint[index]


def split(lengths):
    """Slices of the sequences."""
    ends = np.cumsum(lengths)
    return [slice(end - n, end) for n, end in zip(lengths, ends, strict=True)]


def largest_score(n_scores, probability, n_batches=None):
    """Bound that the largest of n scores exceeds with at most this probability.

    Of scores whose error was estimated from batches or copies, or very many draws.
    """
    law = stats.norm if n_batches is None else stats.t(n_batches - 1)
    return law.isf(probability / (2 * n_scores))


class JointLaw:
    """The model as `n` independent copies at once, for the joint law of everything.

    A point is a dict of arrays whose first axis has length n: `transitions`, `start`,
    `weights` (n, G, L), `means` (n, G, L, d), `covariances` (n, G, L, d, d),
    `locations` (n, k, d), `origins` and `scales` (n, G, d), `states` (n, T), `rows` (n,
    T, d). G is 1 if the shape is shared, else k.

    Parameters
    ----------
    model : object
        With the attributes of `skpacbayes.hmm._dirichlet_process_model.Model`.
    lengths : list of int
        Numbers of rows of the sequences.
    stages : sequence of int
        Numbers of stages, all as probable, where the model learns them.
    """

    def __init__(self, model, lengths, stages=(1, 2, 3)):
        self.model, self.lengths, self.slices = model, lengths, split(lengths)
        self.stages = stages

    def draw(self, n, rng):
        """Draw parameters from the prior, states and rows given them."""
        point = self._parameters(n, rng)
        point["states"] = self._states(point, rng)
        point["rows"] = self.rows(point, rng)
        return point

    def _parameters(self, n, rng):
        model = self.model
        k, L, d = model.n_states, model.n_atoms, model.n_features
        G = 1 if model.shared else k
        sticks = rng.beta(1.0, model.concentration, (n, G, L))
        sticks[..., -1] = 1.0
        left = np.cumprod(1 - sticks, axis=-1)
        left = np.concatenate([np.ones((n, G, 1)), left[..., :-1]], axis=-1)
        scales = rng.gamma(model.scale_shape, 1 / model.scale_rate, (n, G, d))
        if model.full:
            law = stats.invwishart(2 * model.shape + d - 1, 2 * np.eye(d))
            drawn = law.rvs(n * G * L, random_state=rng)
            covariances = np.reshape(drawn, (n, G, L, d, d))
            roots = np.sqrt(scales)[:, :, None]
            covariances = covariances * roots[..., None] * roots[..., None, :]
        else:
            law = stats.invgamma(model.shape)
            variances = law.rvs((n, G, L, d), random_state=rng)
            covariances = (variances * scales[:, :, None])[..., None] * np.eye(d)
        roots = np.linalg.cholesky(covariances / model.mean_count)
        means = (roots @ rng.normal(size=(n, G, L, d, 1)))[..., 0]
        locations, origins = np.zeros((n, k, d)), np.zeros((n, G, d))
        moved = locations if model.shared else origins
        moved += rng.normal(0, model.location_variance**0.5, moved.shape)
        means += origins[:, :, None]
        transitions = self._transitions(n, rng)
        numbers = self.stages if model.staged else [1]
        stages = rng.choice(numbers, (n, k))
        if model.stationary:
            start = np.array(list(map(long_run_law, transitions, stages)))
        else:
            start = rng.dirichlet(np.full(k, model.transition_prior), n)
        return {
            "transitions": transitions,
            "start": start,
            "weights": sticks * left,
            "means": means,
            "covariances": covariances,
            "locations": locations,
            "origins": origins,
            "scales": scales,
            "stages": stages,
        }

    def _transitions(self, n, rng):
        """Rows of Dirichlet laws, each drawn until it is legal."""
        k = self.model.n_states
        rows = np.zeros((n * k, k))
        wrong = np.arange(n * k)
        while len(wrong):
            alphas = np.full(k, self.model.transition_prior)
            rows[wrong] = rng.dirichlet(alphas, len(wrong))
            wrong = wrong[rows[wrong].min(axis=1) < self.model.min_transition]
        return rows.reshape(n, k, k)

    def _states(self, point, rng):
        """Walk through the stages: stay, or go on; from the last one to a state."""
        n = len(point["start"])
        copies = np.arange(n)
        states = np.empty((n, sum(self.lengths)), dtype=int)
        for part in self.slices:
            now = draw_categories(point["start"], rng)
            stage = np.ones(n, dtype=int)
            if self.model.stationary:
                stage = rng.integers(1, point["stages"][copies, now] + 1)
            states[:, part.start] = now
            for t in range(part.start + 1, part.stop):
                law = point["transitions"][copies, now]
                drawn = draw_categories(law, rng)
                leaves = drawn != now
                ends = leaves & (stage == point["stages"][copies, now])
                stage = np.where(ends, 1, stage + (leaves & ~ends))
                now = np.where(ends, drawn, now)
                states[:, t] = now
        return states

    def rows(self, point, rng):
        """Draw rows given parameters and states."""
        copies = np.arange(len(point["start"]))[:, None]
        shapes = (
            np.zeros_like(point["states"]) if self.model.shared else point["states"]
        )
        atoms = draw_categories(point["weights"][copies, shapes], rng)
        roots = np.linalg.cholesky(point["covariances"])[copies, shapes, atoms]
        noise = rng.normal(size=(*atoms.shape, self.model.n_features, 1))
        places = point["locations"][copies, point["states"]]
        return places + point["means"][copies, shapes, atoms] + (roots @ noise)[..., 0]


def draw_categories(laws, rng):
    """One category for each law along the last axis."""
    passed = np.cumsum(laws, axis=-1)
    uniforms = rng.random((*laws.shape[:-1], 1)) * passed[..., -1:]
    return (passed <= uniforms).sum(axis=-1).clip(max=laws.shape[-1] - 1)
