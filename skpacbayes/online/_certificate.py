"""Certificates of the linear models: the best comparison that the data allow."""

import math
from numbers import Real

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr
from sklearn.utils.validation import check_is_fitted

from .._kernels.online_state import SEEN
from .._kernels.standardize import standardize
from ..certificates import (
    Certificate,
    gaussian_divergence,
    sequential_approximation_terms,
    streaming_bayes_published_regret,
    streaming_bayes_terms,
)
from ._aggregation import losses_of

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
PAPER = "Chérief-Abdellatif, Alquier and Khan (2019)"
# Lipschitz constant of the expected loss in (m, sigma), over |x|: 2 for a loss that is
# 1-Lipschitz in the prediction (Proposition 2 of the paper).
PUBLISHED_LIPSCHITZ = 2.0


def expected_losses(loss, y, a, v):
    """Loss expected under f ~ N(a, v), row by row, and its derivatives in a and v."""
    if loss == "squared_error":
        return np.square(y - a) + v, -2.0 * (y - a), np.ones_like(a)
    sd = np.sqrt(v)
    if loss == "log_loss":
        scores = y[:, None] * (a[:, None] + sd[:, None] * _NODES)
        wrong = expit(-scores)
        return (
            np.logaddexp(0.0, -scores) @ _WEIGHTS,
            -y * (wrong @ _WEIGHTS),
            0.5 * (wrong * (1.0 - wrong)) @ _WEIGHTS,
        )
    margin = 1.0 - y * a if loss == "hinge" else y - a
    u = margin / sd
    below, density = ndtr(u), np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    if loss == "hinge":
        return margin * below + sd * density, -y * below, 0.5 * density / sd
    return (
        margin * (2.0 * below - 1.0) + 2.0 * sd * density,
        1.0 - 2.0 * below,
        density / sd,
    )


def best_gaussian(
    loss, Z, y, sample_weight, *, penalty, prior_scale, mean_bound, scale_bound
):
    """Mean-field Gaussian of least expected loss plus `penalty` times divergence.

    The divergence is that from N(0, prior_scale^2). The problem is convex in (m,
    sigma); it is solved in (m, log sigma) within the bounds. Returns m, sigma and the
    expected loss.
    """
    n_parameters = Z.shape[1]
    squares = np.square(Z)

    def objective(parameters):
        mean, log_scale = np.split(parameters, 2)
        variance = np.exp(2.0 * log_scale)
        values, da, dv = expected_losses(loss, y, Z @ mean, squares @ variance)
        value = sample_weight @ values
        in_mean = Z.T @ (sample_weight * da)
        in_log = 2.0 * variance * (squares.T @ (sample_weight * dv))
        if penalty > 0:
            scale = np.sqrt(variance)
            value += penalty * gaussian_divergence(mean, scale, prior_scale=prior_scale)
            in_mean += penalty * mean / prior_scale**2
            in_log += penalty * (variance / prior_scale**2 - 1.0)
        return value, np.concatenate([in_mean, in_log])

    largest = math.log(min(scale_bound, 100.0 * prior_scale))
    start = min(math.log(prior_scale / math.sqrt(len(Z))), largest)
    solution = minimize(
        objective,
        np.concatenate([np.zeros(n_parameters), np.full(n_parameters, start)]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-mean_bound, mean_bound)] * n_parameters
        + [(-30.0, largest)] * n_parameters,
        options={"maxiter": 300},
    )
    mean, log_scale = np.split(solution.x, 2)
    variance = np.exp(2.0 * log_scale)
    values, _, _ = expected_losses(loss, y, Z @ mean, squares @ variance)
    return mean, np.sqrt(variance), float(sample_weight @ values)


def certify_sva(problem, *, observed, learning_rate, squared_gradients, prior_scale):
    """Theorem 2 in the form of the gradients seen, for one output.

    problem : dict, the arguments `loss`, `Z`, `y`, `sample_weight` and the bounds of
    `best_gaussian`.
    """
    mean, scale, expected = best_gaussian(
        **problem, penalty=1.0 / learning_rate, prior_scale=prior_scale
    )
    divergence = gaussian_divergence(mean, scale, prior_scale=prior_scale)
    terms = sequential_approximation_terms(
        expected,
        divergence,
        learning_rate=learning_rate,
        squared_gradients=squared_gradients,
        prior_scale=prior_scale,
    )
    return Certificate(
        theorem=f"Theorem 2 of {PAPER}, gradients as observed",
        observed=observed,
        bound=sum(terms.values()),
        terms=terms,
        assumptions={
            "the loss is convex in the parameters": True,
            "the learning rate is constant": True,
            "the prior lies in the bounds": prior_scale <= problem["scale_bound"],
        },
    )


def certify_svb(problem, *, observed, scaled_gradients):
    """Regret of the paper's schedule, next to Theorem 3 as published."""
    mean, _, _ = best_gaussian(**problem, penalty=0.0, prior_scale=1.0)
    loss, Z, y = problem["loss"], problem["Z"], problem["y"]
    best = problem["sample_weight"] @ losses_of(loss, y, Z @ mean)
    sizes = {
        "n_samples": len(Z),
        "n_parameters": Z.shape[1],
        "mean_bound": problem["mean_bound"],
        "scale_bound": problem["scale_bound"],
    }
    terms = streaming_bayes_terms(best, **sizes, scaled_gradients=scaled_gradients)
    assumptions = {
        "the loss is convex in the parameters": True,
        "the means and deviations are bounded": True,
    }
    if loss != "squared_error":  # which is not Lipschitz
        longest = math.sqrt(np.square(Z).sum(axis=1).max())
        regret = streaming_bayes_published_regret(
            **sizes, lipschitz=PUBLISHED_LIPSCHITZ * longest
        )
        published = f"the steps are those of Theorem 3 (its bound: {best + regret:.6g})"
        assumptions[published] = False
    return Certificate(
        theorem=f"Theorem 3 of {PAPER}, for the steps of its experiments",
        observed=observed,
        bound=sum(terms.values()),
        terms=terms,
        assumptions=assumptions,
    )


class CertifiedModel:
    """The certificates of the linear models."""

    def certificate(self, X, y, sample_weight=None):
        """Bound on the cumulative loss, from the rows of the stream once more.

        For "sva", Theorem 2 with the gradients that were seen in place of their bound,
        at the posterior for which it is smallest; for "svb" with
        `learning_rate="invsqrt"` and both bounds, the regret of the paper's schedule
        against the best fixed parameter, next to Theorem 3 as published.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows since the last `fit`, in their order.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        certificate : Certificate
            The cumulative loss and its bound.

        Raises
        ------
        NotImplementedError
            If no theorem covers the method, its learning rate or its bounds.
        ValueError
            If the rows are not as many as have been learnt, or X is not finite or
            beyond 1e150.
        """
        check_is_fitted(self)
        X, target, weights = self._stream_again(X, y, sample_weight)
        if self.method == "sva" and isinstance(self.learning_rate, Real):
            return certify_sva(
                self._problem(X, target, weights),
                observed=self._cumulative_loss(),
                learning_rate=float(self.learning_rate),
                squared_gradients=self._state.squared_gradients[0],
                prior_scale=self.prior_scale,
            )
        bounded = self.mean_bound is not None and self.scale_bound is not None
        if self.method == "svb" and self.learning_rate == "invsqrt" and bounded:
            return certify_svb(
                self._problem(X, target, weights),
                observed=self._cumulative_loss(),
                scaled_gradients=self._state.scaled_gradients[0],
            )
        raise NotImplementedError(
            "A theorem covers method='sva' with a constant learning_rate, and "
            "method='svb' with learning_rate='invsqrt', mean_bound and scale_bound; "
            f"got method={self.method!r}, learning_rate={self.learning_rate!r}, "
            f"mean_bound={self.mean_bound!r}, scale_bound={self.scale_bound!r}."
        )

    def _stream_again(self, X, y, sample_weight):
        """Check the rows of the whole stream; drop those of zero weight."""
        n_outputs = len(self._state.losses)
        if n_outputs > 1:
            raise NotImplementedError(
                f"certificate needs two classes, got {n_outputs}."
            )
        X, y, weights = self._checked(X, y, sample_weight, reset=False)
        target = self._target_of_labels(y)
        if not len(weights):
            weights = np.ones(len(X))
        kept = weights > 0
        if kept.sum() != self.n_samples_seen_:
            raise ValueError(
                f"certificate needs the {self.n_samples_seen_} rows that were learnt, "
                f"got {kept.sum()}."
            )
        return X[kept], target[kept], weights[kept]

    def _problem(self, X, target, weights):
        """Gather what the loss of a parameter depends on, standardised as then."""
        learnt = self._state.copy()
        learnt.moments[:] = learnt.stream[SEEN] = 0.0
        Z = np.empty((len(X), learnt.means.shape[1]))
        standardize(X, weights, *learnt.arguments[:2], learnt.stream, Z)
        return {
            "loss": self.loss,
            "Z": Z,
            "y": target,
            "sample_weight": weights,
            "mean_bound": self.mean_bound or math.inf,
            "scale_bound": self.scale_bound or math.inf,
        }
