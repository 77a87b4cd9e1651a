"""Which models an online linear model averages, from its parameters and the rows.

The models of an output ("experts") differ in their forgetting rate, the scale of their
prior, and in whether they have Fourier features. `model` is an `OnlineLinearModel`.
"""

import itertools
import math

import numpy as np

from ._doubts import order_found
from ._prior_by_evidence import FEWEST_ROWS

WITH_NOISE = ("squared_error", "absolute_error", "quantile")  # noise is estimated
FULL_COVARIANCE_UP_TO = 400  # parameters: a row then takes 100 microseconds a model
# With more features prior_scale=None is "auto": with a diagonal covariance, or for a
# while, and with a full covariance.
FEW_FEATURES, FEW_IF_FULL = 16, 64
FORGETTING_RATES = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
# From this rate on, prior_scale="auto" has its largest scale alone.
FAST_FORGETTING = 0.03
# Of the one expert that forgets with forgetting="on_label_change": classifiers only.
LABEL_CHANGE_RATE = 0.04
# With n_fourier="auto": their number, and the scale of the prior of the models that
# have them, linear coefficients included, over that of the linear models.
N_FOURIER = {"full": 120, "diagonal": 240}
FOURIER_PRIOR = 3.0
# For labels only the largest of these scales, and one at which the standard deviation
# of a score is as large as this.
FOURIER_SCORE = 4.0
# With prior_scale="auto". Numbers hardly need the middle one: the estimated noise is
# part of the scale. Labels do. With forgetting the two largest are enough. Under these
# scales alone the score of a row of many features would vary too much: with more
# features than SMALL_SCORES there is one more, at which its variance is one, but for
# the hinge, whose labels were no better with it and its probabilities worse.
PRIOR_SCALES = {"numbers": (0.3, 3.0), "labels": (0.3, 1.0, 3.0)}
SMALL_SCORES = 16
# Of the models of labels that forget nothing, where the posterior is joint. The first
# is smaller with more than 11 features: the variance of a score is then one, as with
# SMALL_SCORES. Those above WIDEST_OF_NOISY are for separable rows.
JOINT_SCALES = (0.3, 1.0, 10.0, 100.0)
WIDEST_OF_NOISY = 1.0
# Numbers of coefficients of all scores, and of scores, up to which it is: a row takes a
# time that grows with the square of the one, and with the cube of the other.
MOST_JOINT, MOST_SCORES = 100, 10
# Experts may be left out when the number of rows is a power of two, from FIRST_LEFT_OUT
# on. With prior_scale=None, a full covariance and up to 64 features, all prior scales
# but the best are, from SETTLED rows for each parameter on: they then differ little.
FIRST_LEFT_OUT = 64
# With n_fourier="auto" the models with Fourier features are dropped when the number of
# rows is a power of two, from FIRST_DROP on, if their weight is less than VANISHED and
# they are further behind than at half as many rows, by this factor: a curve that is
# learnt slowly is behind at first. They are dropped from FIRST_LEFT_OUT on where rows
# are sorted by target, as the last ones are all that they remember.
VANISHED = 1e-6
STILL_LOSING = 1.1
FIRST_DROP = {"numbers": 2048, "labels": 512}
SETTLED = 10


def experts_of(model, n_features):
    """Return rate, prior scale and use of Fourier features of the experts."""
    several = _has_several_scales(model, n_features)
    rates = {"auto": FORGETTING_RATES, "on_label_change": (0.0,)}.get(
        model.forgetting, (model.forgetting,)
    )
    pairs = _rates_and_scales(model, rates, _prior_scales(model, n_features, several))
    linear = pairs
    if n_joint_of(model, n_features) > 1:
        wide = (min(JOINT_SCALES[0], n_features**-0.5), *JOINT_SCALES[1:])
        linear = [(0.0, scale) for scale in wide] + pairs
    if model.n_fourier != "auto" or not n_fourier_of(model, n_features):
        return [(*pair, float(model.n_fourier != "auto")) for pair in linear]
    curved = _curved(model, n_features, pairs, several)
    return [(*pair, 0.0) for pair in linear] + [(*pair, 1.0) for pair in curved]


def _has_several_scales(model, n_features):
    """Return whether several scales of the prior are averaged."""
    if model.prior_scale is not None:
        return model.prior_scale == "auto"
    few = FEW_IF_FULL if has_full_covariance(model, n_features) else FEW_FEATURES
    many = n_features > few and model.forgetting != "auto"
    return many or prior_settles(model, n_features)


def _prior_scales(model, n_features, several):
    """Return the scales of the prior of linear models."""
    if model.prior_scale not in (None, "auto"):
        return (model.prior_scale,)
    if not several or model.method != "ngvi":
        return (1.0,)
    numbers = model.loss in WITH_NOISE and not prior_settles(model, n_features)
    scales = PRIOR_SCALES["numbers" if numbers else "labels"]
    if n_features > SMALL_SCORES and model.loss != "hinge":
        return (n_features**-0.5, *scales)
    return scales


def _rates_and_scales(model, rates, scales):
    """Return the pairs of forgetting rate and scale of linear models, not joint."""
    if model.forgetting != "auto":
        pairs = list(itertools.product(rates, scales))
        if model.forgetting == "on_label_change" and model.method == "ngvi":
            pairs.append((LABEL_CHANGE_RATE, scales[-1]))
        return pairs
    pairs = [(0.0, scale) for scale in scales]
    for rate in rates[1:]:
        kept = scales[-1:] if rate >= FAST_FORGETTING else scales[-2:]
        pairs += [(rate, scale) for scale in kept]
    return pairs


def _curved(model, n_features, pairs, several):
    """Return the pairs of rate and scale of models with Fourier features."""
    if prior_settles(model, n_features):
        return [(0.0, FOURIER_PRIOR)]
    curved = [(rate, FOURIER_PRIOR * scale) for rate, scale in pairs]
    if model.forgetting == "auto" and has_full_covariance(model, n_features):
        # The slowest rate, and the fastest that remembers more rows than features.
        slow = [rate for rate, _ in pairs if rate * N_FOURIER["full"] < 1.0]
        curved = [pair for pair in curved if pair[0] in (0.0, max(slow))]
    if several and not model._regression():
        widest = max(scale for _, scale in curved)
        curved = [pair for pair in curved if pair[1] == widest]
        curved.insert(0, (pairs[0][0], FOURIER_SCORE * n_features**-0.5))
    return curved


def n_joint_of(model, n_features):
    """Return the number of models with a joint posterior, which come first.

    They are linear and forget nothing. A single prior has one; several have others with
    a diagonal covariance besides, which are better where the steps of the joint ones
    are rough: with few rows for each of many features.
    """
    if model.loss != "log_loss" or model.method != "ngvi":
        return 0
    n_outputs = model._n_outputs()
    if n_outputs > 1 and model.multi_class == "one_vs_rest":
        return 0
    plain = model.fit_intercept and model.clip is None and not model.average
    unbounded = model.mean_bound is None and model.scale_bound is None
    lasting = model.forgetting in (0.0, "auto", "on_label_change")
    possible = plain and unbounded and lasting and model.n_fourier in (0, "auto")
    few = n_outputs <= MOST_SCORES and n_outputs * (1 + n_features) <= MOST_JOINT
    if not (possible and few):
        return 0
    return len(JOINT_SCALES) if model.prior_scale == "auto" else 1


def prior_settles(model, n_features):
    """Return whether prior scales are averaged until they differ little."""
    exact = model.loss == "squared_error" and has_full_covariance(model, n_features)
    lasting = model.forgetting == 0.0 and model.n_fourier in (0, "auto")
    default = model.prior_scale is None and model._estimates_noise()
    several = FEW_FEATURES < n_features <= FEW_IF_FULL
    return exact and lasting and default and several


def has_full_covariance(model, n_features):
    """Return whether the covariance is full for a number of features."""
    possible = (
        model.method == "ngvi"
        and model.loss in ("squared_error", "poisson")
        and model.mean_bound is None
        and model.scale_bound is None
    )
    if model.covariance == "auto":
        n_waves = 0 if model.n_fourier == "auto" else model.n_fourier
        return possible and n_features + n_waves <= FULL_COVARIANCE_UP_TO
    return possible and model.covariance == "full"


def n_fourier_of(model, n_features):
    """Return the number of Fourier features."""
    if model.n_fourier != "auto":
        return model.n_fourier
    if model.method != "ngvi":
        return 0
    if not has_full_covariance(model, n_features):
        return N_FOURIER["diagonal"]
    n_waves = N_FOURIER["full"]
    few = model.covariance == "full" or n_features + n_waves <= FULL_COVARIANCE_UP_TO
    slow = model.forgetting == "auto" or model.forgetting * n_waves < 1.0
    return n_waves if few and slow else 0


def n_rows_until_choice(model):
    """Return the number of rows until experts or their prior may change."""
    if model._state.n_experts == 1 and not widens_prior(model):
        return math.inf
    n_rows = model._state.n_steps
    return max(FEWEST_ROWS, 1 << n_rows.bit_length()) - n_rows


def widens_prior(model):
    """Return whether the prior has the scale of the largest evidence."""
    chosen = model._state.shifts and model.prior_scale in (None, "auto")
    lasting = model.forgetting == 0.0 and model.n_fourier in (0, "auto")
    exact = model.loss == "squared_error" and model._estimates_noise()
    return chosen and lasting and exact


def may_leave_out(state):
    """Return whether experts may be left out before the next row."""
    if state.n_experts == 1:
        return False
    n_rows = state.n_steps
    return n_rows >= FIRST_LEFT_OUT and not n_rows & (n_rows - 1)


def superfluous(model, state):
    """Return which experts are left out, (n_experts,).

    Those with Fourier features, where they are of no use; linear ones of no weight that
    do not catch up; and, if scales of the prior differ little from now on, all linear
    ones but the best.
    """
    curved = state.curved
    left_out = np.zeros(state.n_experts, dtype=bool)
    if model.n_fourier == "auto" and curved.any():
        useless = _useless(model, state) or order_found(state) is not None
        left_out |= curved & useless
    left_out |= _hopeless(state)
    if prior_settles(model, state.n_features):
        settled = ~curved & (state.n_steps >= SETTLED * state.sizes)
        best = np.where(curved, np.inf, state.losses[0]).argmin()
        left_out |= settled & (np.arange(state.n_experts) != best)
    return left_out


def _hopeless(state):
    """Return which linear experts have no weight and do not catch up, (n_experts,).

    Scales of the prior are compared, of joint posteriors and of others that forget
    nothing. The best of each stays, and with Fourier features all of the latter, which
    these are compared with. A wide prior is behind at first, and catches up where
    classes are separable, after a thousand rows or more: if the best joint one is for
    separable rows, those of wider priors stay.
    """
    hopeless, linear = np.zeros(state.n_experts, dtype=bool), ~state.curved
    first = max(FIRST_LEFT_OUT, SETTLED * (1 + state.n_features))
    if state.n_steps < 2 * first or not linear.any():
        return hopeless
    joint = np.arange(state.n_experts) < state.n_joint
    others = ~joint & (state.forgetting_rates == 0.0) & linear.all()
    vanished = np.zeros(state.n_experts, dtype=bool)
    vanished[linear] = (state.shares(linear) < VANISHED).all(axis=0)
    for kind in filter(np.any, (joint, others)):
        now, before = (
            losses[:, kind] - losses[:, kind].min(axis=1, keepdims=True)
            for losses in (state.losses, state.earlier_losses)
        )
        losing = ((now >= before) & (now > 0.0)).all(axis=0)
        hopeless[kind] = vanished[kind] & losing
    scale = state.prior_scales[np.where(joint, state.losses[0], np.inf).argmin()]
    if scale > WIDEST_OF_NOISY:
        hopeless[joint & (state.prior_scales > scale)] = False
    return hopeless


def _useless(model, state):
    """Return whether experts with Fourier features lose more and more.

    They are compared with linear ones that learn as slowly: not with joint posteriors,
    if there are others.
    """
    first = FIRST_DROP["numbers" if model._regression() else "labels"]
    curved, others = state.curved, np.arange(state.n_experts) >= state.n_joint
    if not (others & ~curved).any():
        others[:] = True
    weights = state.shares(others)[:, curved[others]].sum(axis=1)
    if state.n_steps < first or weights.max() >= VANISHED:
        return False
    behind = [
        losses[:, curved].min(axis=1) - losses[:, others & ~curved].min(axis=1)
        for losses in (state.losses, state.earlier_losses)
    ]
    return (behind[0] > STILL_LOSING * behind[1]).all()
