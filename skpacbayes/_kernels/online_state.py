"""State of the online linear models: what stands where in the arrays of the kernels.

A stream of linear models has one model for each output and expert; the experts of an
output differ in their forgetting rate and in the scale of their prior. The kernels take
the state as a tuple of arrays:

features : (N_FEATURE_ROWS, n_features), moments and origin of the features;
models : (n_models, n_vectors, width), the vectors of each posterior;
covariances : (n_models, n_panels, width * PANEL), or empty for diagonal posteriors;
numbers : (n_models, N_NUMBERS), counts and settings of each model;
losses : (n_outputs, n_experts), cumulative losses of the experts;
totals : (n_outputs, N_TOTALS), the aggregation of the experts (see `aggregation`);
stream : (N_STREAM,), settings of the stream, and what it has seen.

`width` is the number of parameters; for full covariances it is rounded up to a multiple
of LANES. Model ``output * n_experts + expert`` belongs to that output and expert.
"""

import numpy as np

from . import aggregation
from .state import KernelState

# Methods, losses and kinds of step sizes, by number.
NGVI, NGVI_EXPLICIT, SVA, SVB, OGA, OGA_EL = range(6)
CONSTANT, INVSQRT, ADAGRAD = range(3)

# Rows of `features`.
N_FEATURE_ROWS = 3
FEATURE_CENTER, FEATURE_SCATTER, FEATURE_ORIGIN = range(N_FEATURE_ROWS)

# Rows of `models[k]`. Those of a full covariance begin alike; it keeps the moments of
# the columns, and their range, where others keep sums of gradients.
N_VECTORS, N_VECTORS_FULL = 6, 8
MEAN, VARIANCE, PRIOR, GRADIENT_MEAN, GRADIENT_SCALE, AVERAGE = range(N_VECTORS)
CENTER, SCATTER, _, LOW, HIGH = range(3, N_VECTORS_FULL)

# Columns of `numbers`.
N_NUMBERS = 10
(
    WEIGHT,  # sum of the weights of the rows
    STEPS,  # rows of positive weight
    LOSS,  # cumulative loss of the predictions
    SQUARES,  # sum of |g_t|^2
    SCALED_SQUARES,  # sum of |g_t|^2 / sqrt(t)
    RESIDUALS,  # weighted sum of the scaled squared (or absolute) residuals
    COUNT,  # sum of the weights behind RESIDUALS
    TEMPERATURE,  # inverse temperature, or 0 where the noise is estimated
    FORGETTING,
    PRIOR_SCALE,
) = range(N_NUMBERS)

# Entries of `stream`.
N_STREAM = 14
(
    SEEN,  # sum of the weights of the rows that the moments of the features have
    START,  # first parameter that belongs to a feature: 1 with an intercept
    CLIP,
    SCALES,  # whether features are measured by their running moments
    SHIFTS,  # whether the first row is the origin, and the prior follows the spread
    FULL,  # whether the covariances are full
    LOSS_KIND,
    METHOD,
    RATE_KIND,
    RATE,
    MEAN_BOUND,
    SCALE_BOUND,
    FLAT,  # whether the intercept's prior is flat
    AVERAGING,  # whether the average of the means predicts
) = range(N_STREAM)

LANES = 4  # numbers that the processor adds side by side
PANEL = 64  # columns of a covariance that stand together
SMALLEST = 1e-300  # of a variance that is not 0: one over it is a number


class LinearState(KernelState):
    """State of the linear models of a stream; its properties are views of the arrays.

    Parameters
    ----------
    n_features, n_outputs, n_experts : int
        Sizes.
    n_parameters : int
        Number of coefficients, the intercept included.
    full : bool
        Whether the covariances are full.
    """

    def __init__(self, n_features, n_parameters, n_outputs, n_experts, full):
        width, n_vectors, n_panels = n_parameters, N_VECTORS, 0
        n_models = n_outputs * n_experts
        if full:
            width += -n_parameters % LANES
            n_vectors, n_panels = N_VECTORS_FULL, -(-width // PANEL)
        super().__init__(
            (N_FEATURE_ROWS, n_features),
            (n_models, n_vectors, width),
            (n_models if full else 0, n_panels, width * PANEL),
            (n_models, N_NUMBERS),
            (n_outputs, n_experts),
            (n_outputs, aggregation.N_TOTALS),
            (N_STREAM,),
        )
        self.stream[FULL] = full
        self.stream[START] = n_parameters - n_features

    # The arrays.

    @property
    def features(self):
        """Moments and origin of the features, (N_FEATURE_ROWS, n_features)."""
        return self.arrays[0]

    @property
    def models(self):
        """Vectors of each posterior, (n_models, n_vectors, width)."""
        return self.arrays[1]

    @property
    def covariances(self):
        """Panels of each full covariance, (n_models, n_panels, -1)."""
        return self.arrays[2]

    @property
    def numbers(self):
        """Counts and settings of each model, (n_models, N_NUMBERS)."""
        return self.arrays[3]

    @property
    def losses(self):
        """Cumulative losses of the experts, (n_outputs, n_experts)."""
        return self.arrays[4]

    @property
    def totals(self):
        """Aggregation of the experts, (n_outputs, N_TOTALS)."""
        return self.arrays[5]

    @property
    def stream(self):
        """Settings of the stream, and what it has seen, (N_STREAM,)."""
        return self.arrays[6]

    # Their parts.

    @property
    def full(self):
        """Whether the covariances are full."""
        return bool(self.stream[FULL])

    @property
    def scales(self):
        """Whether features are measured by their running moments."""
        return bool(self.stream[SCALES])

    @property
    def shifts(self):
        """Whether the first row is the origin, and the prior follows the spread."""
        return bool(self.stream[SHIFTS])

    @property
    def n_experts(self):
        """Number of models of an output."""
        return self.losses.shape[1]

    @property
    def n_steps(self):
        """Rows of positive weight."""
        return int(self.numbers[0, STEPS])

    @property
    def own(self):
        """Slice of the parameters, without what fills the last lane."""
        return slice(self.features.shape[1] + int(self.stream[START]))

    @property
    def coefficients(self):
        """Slice of the parameters that belong to features."""
        start = int(self.stream[START])
        return slice(start, start + self.features.shape[1])

    @property
    def means(self):
        """Posterior means, (n_models, n_parameters)."""
        return self.models[:, MEAN, self.own]

    @property
    def variances(self):
        """Posterior variances, (n_models, n_parameters)."""
        return self.models[:, VARIANCE, self.own]

    @property
    def precisions(self):
        """Precisions of the prior, (n_models, n_parameters)."""
        return self.models[:, PRIOR, self.own]

    @property
    def averaged_means(self):
        """Averages of the means over the rows, (n_models, n_parameters)."""
        return self.models[:, AVERAGE, self.own] / self.numbers[:, WEIGHT, None]

    @property
    def ranges(self):
        """Lowest and highest value of each parameter's column, (2, n_parameters)."""
        return self.models[0, LOW : HIGH + 1, self.own]

    @property
    def cumulative_losses(self):
        """Sum of the losses of the predictions of each model."""
        return self.numbers[:, LOSS]

    @property
    def residuals(self):
        """Weighted sum of the scaled residuals of each model."""
        return self.numbers[:, RESIDUALS]

    @property
    def counts(self):
        """Sum of the weights behind `residuals`."""
        return self.numbers[:, COUNT]

    @property
    def squared_gradients(self):
        """Sum of the squared norms of the gradients of each model."""
        return self.numbers[:, SQUARES]

    @property
    def scaled_gradients(self):
        """Sum of the squared norms of the gradients over the root of the step."""
        return self.numbers[:, SCALED_SQUARES]

    def feature_units(self):
        """Origin and one over the unit of each feature; 0 if it has never varied."""
        center, scatter, origin = self.features
        if self.shifts:
            return origin, (self.precisions[0, self.coefficients] > 0).astype(float)
        if not self.scales:
            return np.zeros_like(center), np.ones_like(center)
        spread = np.where(scatter > SMALLEST, scatter, np.inf)
        return center, 1.0 / np.sqrt(spread / self.stream[SEEN])

    def shares(self):
        """Weight of each expert, (n_outputs, n_experts)."""
        rate_of = aggregation.aggregation_rate.py_func
        pairs = zip(self.losses, self.totals, strict=True)
        rates = np.array([rate_of(own, totals) for own, totals in pairs])
        shares = np.exp(-rates[:, None] * (self.losses - self.losses.min(1)[:, None]))
        return shares / shares.sum(axis=1, keepdims=True)

    def whole_covariance(self, k):
        """Return the covariance of model k as a matrix, (n_parameters, n_parameters)."""
        panels = self.covariances[k]
        width = panels.shape[1] // PANEL
        rows = panels.reshape(len(panels), width, PANEL).swapaxes(0, 1)
        return rows.reshape(width, -1)[self.own, self.own]

    def set_variances(self, variances):
        """Make the posteriors independent, with these variances, (n_models, -1)."""
        self.variances[:] = variances
        if self.full:
            rows = np.arange(variances.shape[1])
            self.covariances[:, rows // PANEL, rows * PANEL + rows % PANEL] = variances
