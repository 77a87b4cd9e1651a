"""Certificates of the online linear models."""

import math
import sys
from numbers import Real

import numpy as np

from .._kernels import aggregation
from .._kernels.online_state import SEEN
from .._kernels.standardize import add_waves, standardize
from ..certificates import Certificate
from ..certificates.online import PAPER, certify_sva, certify_svb, split_soft_minimum


def certify_linear(model, X, y, sample_weight):
    """Return the certificate of a fitted linear model."""
    state, observed = model._state, model.cumulative_loss_
    if state.aggregates:
        losses, dropped = state.expert_losses, float(state.dropped.sum())
        return certify_aggregation(losses, state.totals, observed, dropped)
    constant = isinstance(model.learning_rate, Real)
    bounded = model.mean_bound is not None and model.scale_bound is not None
    sva = model.method == "sva" and constant
    svb = model.method == "svb" and model.learning_rate == "invsqrt" and bounded
    if not (sva or svb):
        raise NotImplementedError(
            "A theorem covers the average of several models (n_fourier='auto', "
            "forgetting='auto', prior_scale='auto', and forgetting='on_label_change', "
            "which is for classifiers only), method='sva' with a constant "
            "learning_rate, and method='svb' with learning_rate='invsqrt', "
            f"mean_bound and scale_bound; got method={model.method!r}, "
            f"learning_rate={model.learning_rate!r}, mean_bound={model.mean_bound!r}, "
            f"scale_bound={model.scale_bound!r}, forgetting={model.forgetting!r}, "
            f"prior_scale={model.prior_scale!r}, n_fourier={model.n_fourier!r}."
        )
    problem = problem_of(model, *stream_again(model, X, y, sample_weight))
    if sva:
        return certify_sva(
            problem,
            observed=observed,
            learning_rate=float(model.learning_rate),
            squared_gradients=state.squared_gradients[0],
            prior_scale=state.prior_scales[0],
        )
    scaled = state.scaled_gradients[0]
    return certify_svb(problem, observed=observed, scaled_gradients=scaled)


def certify_aggregation(losses, totals, observed, dropped=0.0):
    """Return the certificate of Theorem 1 for experts aggregated by Algorithm 1.

    The theorem bounds the cost of averaging at each row by Hoeffding's lemma, from the
    largest loss and the rate of the weights; here the observed cost is used. The
    theorem is for non-increasing rates: otherwise the bound has a further term, the
    decrease of the soft minimum of the losses by the increases. If probabilities are
    averaged and the rate is at most 1, averaging costs nothing, and the bound equals
    the loss up to rounding, which is a term as well.

    Parameters
    ----------
    losses : ndarray of shape (n_outputs, n_experts)
        Cumulative losses of the experts.
    totals : ndarray of shape (n_outputs, N_TOTALS)
        Counts of `aggregation`.
    observed : float
        Cumulative loss of the aggregates.
    dropped : float
        Increase of the soft minima of the losses when experts were left out: before,
        the bound is that of all experts, and from then on that of the others.
    """
    terms = {}
    for own, counts in zip(losses, totals, strict=True):
        found = split_soft_minimum(own, counts[aggregation.RATE])
        found["rate"] = float(counts[aggregation.GAPS])
        found["rises of the rate"] = float(counts[aggregation.RISES])
        # Of the sums of losses, and of the logarithm of the mean of each row.
        size, rate = counts[aggregation.LOSS], counts[aggregation.RATE]
        size += 1 / rate if rate > 0 else 0.0
        rounding = (len(own) + 2) * counts[aggregation.STEPS] * size
        found["rounding"] = float(sys.float_info.epsilon * rounding)
        terms = {name: terms.get(name, 0.0) + value for name, value in found.items()}
    if dropped:
        terms["dropped experts"] = dropped
    return Certificate(
        theorem=f"Theorem 1 of {PAPER}, rate as observed",
        observed=observed,
        bound=sum(terms.values()),
        terms=terms,
        assumptions={"the loss is convex in the prediction": True},
    )


def stream_again(model, X, y, sample_weight):
    """Validate the rows of the whole stream; drop those of zero weight."""
    n_outputs = len(model._state.losses)
    if n_outputs > 1:
        raise NotImplementedError(f"certificate needs two classes, got {n_outputs}.")
    if X is None or y is None:
        raise ValueError(
            "certificate needs all rows of the stream again, X and y, for "
            f"method={model.method!r}."
        )
    X, y, weights = model._checked(X, y, sample_weight, reset=False)
    target = model._target_of_labels(y, weights)
    if not len(weights):
        weights = np.ones(len(X))
    kept = weights > 0
    if kept.sum() != model.n_samples_seen_:
        raise ValueError(
            f"certificate needs the {model.n_samples_seen_} rows that were learnt, "
            f"got {kept.sum()}."
        )
    rows = X[kept], target[kept], weights[kept]
    again = model._draft(forgets=False)
    again.random_state = 0  # whatever is drawn is replaced, and no generator advanced
    again._begin(model.n_features_in_)
    again._state.waves[:] = model._state.waves
    again._learn(*rows)
    parts = [(s.models, s.numbers, s.order) for s in (again._state, model._state)]
    if not all(
        np.array_equal(*pair, equal_nan=True) for pair in zip(*parts, strict=True)
    ):
        raise ValueError(
            "certificate needs the rows that were learnt, in their order and with "
            "their weights: learnt again, X, y and sample_weight give "
            f"cumulative_loss_={again.cumulative_loss_:.6g}, not "
            f"{model.cumulative_loss_:.6g}."
        )
    return rows


def problem_of(model, X, target, weights):
    """Return the arguments of the loss of a parameter, standardized as in the run."""
    learnt = model._state.copy()
    learnt.moments[:] = learnt.stream[SEEN] = 0.0
    Z = np.empty((len(X), learnt.means.shape[1]))
    standardize(X, weights, *learnt.arguments[:2], 0, learnt.stream, Z, None)
    if model.n_fourier:
        add_waves(Z, X.shape[1], learnt.waves, learnt.stream)
    return {
        "loss": model.loss,
        "quantile": getattr(model, "quantile", 0.5),
        "Z": Z,
        "y": target,
        "sample_weight": weights,
        "mean_bound": model.mean_bound or math.inf,
        "scale_bound": model.scale_bound or math.inf,
    }
