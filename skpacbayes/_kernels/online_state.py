"""State of the online linear models: the arrays of the kernels and their entries.

A stream of linear models has one model for each output and expert; the experts of an
output differ in their forgetting rate and in the scale of their prior. The kernels take
the state as these arguments:

moments : (3, n_features), CENTER_OF, SCATTER_OF and UNIT_OF the features, where they
are scaled;
origin : (n_features,), the first row, where the features are measured from there;
waves : (n_features + 1, n_waves), the frequencies of random Fourier features, then the
phases;
models : (n_models, n_vectors, width), the vectors of each posterior;
covariances : (n_models, n_panels, width * PANEL), where they are full; for labels the
joint posteriors of the first experts, see `online_joint`;
numbers : (n_models, N_NUMBERS), counts and settings of each model; then, where they are
counted, 2 * N_SIDE counts of its errors (see `online_errors`);
stream : settings and counts of the stream, N_STREAM numbers; then the notes on its
rows (see `order`);
losses, totals : the aggregation of several experts: their cumulative losses,
(n_outputs, n_experts), and counts, (n_outputs, N_TOTALS) (see `aggregation`); one for
all outputs where these are the scores of a softmax.

work : scratch: N_WORK vectors, then, for each row, how its units have grown, then the
rows in the coordinates of the parameters; see `LinearState.work_for`.

A further array of the state, `dropped`, is empty until experts are left out, and has a
second column, of zeros, if Fourier features were left out with them; see `without`.

Parts that a stream does not use are None, and their code is not compiled, or empty
arrays where that code is short: a kernel is compiled for each combination of types.
`origin` and `covariances` are None unless covariances are full or posteriors joint;
`moments` is None where covariances are full and features are not scaled.

`width` is the number of parameters; for full covariances it is rounded up to a multiple
of LANES. Model ``output * n_experts + expert`` belongs to that output and expert.
"""

import numpy as np

from . import aggregation
from .order import N_BESIDE, NotedOrder, memory_size, order_shape, remembered
from .state import KernelState, named

# Methods, losses and kinds of step sizes, by number.
NGVI, NGVI_EXPLICIT, SVA, SVB, OGA, OGA_EL = range(6)
CONSTANT, INVSQRT, ADAGRAD = range(3)

# Rows of `moments`: the last is the variance of a feature when its unit was last taken.
CENTER_OF, SCATTER_OF, UNIT_OF = range(3)

# Rows of `models[k]`. Those of a full covariance begin alike; it keeps the moments of
# the columns, and their range, where others keep sums of gradients, and SCORES: a
# decaying sum of the rows times their errors (see `online_change`).
N_VECTORS, N_VECTORS_FULL = 6, 9
MEAN, VARIANCE, PRIOR, GRADIENT_MEAN, GRADIENT_SCALE, AVERAGE = range(N_VECTORS)
CENTER, SCATTER, _, LOW, HIGH, SCORES = range(3, N_VECTORS_FULL)

# Rows of a joint posterior before its covariance: the means of the coefficients, and
# the unit of the prior's precision, the moments of each column.
N_ROWS_BEFORE = 4
MEANS, UNITS, CENTERS, SCATTERS = range(N_ROWS_BEFORE)

INTERCEPT_SCALE = 3.0  # least deviation of the prior of the score of the first row

# Columns of `numbers`.
N_NUMBERS = 24
(
    WEIGHT,  # sum of the weights of the rows
    STEPS,  # rows of positive weight
    LOSS,  # cumulative loss of the predictions
    SQUARES,  # sum of |g_t|^2
    SCALED_SQUARES,  # sum of |g_t|^2 / sqrt(t)
    RESIDUALS,  # weighted sum of the scaled squared (or absolute) residuals
    COUNT,  # sum of the weights behind RESIDUALS
    TEMPERATURE,  # inverse temperature, or 0 if the noise is estimated
    FORGETTING,
    PRIOR_SCALE,
    SIZE,  # its parameters; of a linear model, all but those of Fourier features
    LAST_LABEL,  # if only rows of another label forget, NaN at first; else 0
    PRODUCTS,  # sum of errors times their predictions, see `online_change`
    SQUARED_PRODUCTS,  # sum of the squares of these products
    SQUARED_FORETOLD,
    SQUARED_ERRORS,
    ERROR_UNIT,  # deviation of the noise in which errors are counted
    LOG_SIZES,  # sum of the logs of the sizes of errors, where nothing is forgotten
    N_SIZES,  # their number
    HALF_LOG_SIZES,  # both when the number of rows was a power of two
    HALF_N_SIZES,
    N_LARGE,  # errors since then that exceeded their deviation
    GROWTH,  # log2 of the ratio of their sizes in the two halves of these rows, or 0
    EARLIER,  # of an expert, its entry of `losses` when experts were last compared
) = range(N_NUMBERS)
# Of a model of counts, whose targets are rates and whose weights are exposures, and
# which notes no sizes of errors:
EVENTS = LOG_SIZES  # sum of the counts, the weighted targets
MOST_EVENTS = N_SIZES  # the largest of them
N_SIDE = 58  # cells of the errors in one direction

# Entries of `stream`.
N_STREAM = 16
(
    SEEN,  # sum of the weights of the rows that the moments of the features have
    N_COEFFICIENTS,  # parameters except the intercept
    START,  # first of them: 1 with an intercept
    CLIP,
    LOSS_KIND,
    METHOD,
    RATE_KIND,
    RATE,
    MEAN_BOUND,
    SCALE_BOUND,
    FLAT,  # whether the intercept's prior is flat
    AVERAGING,  # whether the average of the means predicts
    UP,  # slope of the absolute loss where the target is above the prediction
    DOWN,  # slope where it is below
    MEMORY_SIZE,  # of the memory of rows at the end, see `remember`
    TOGETHER,  # whether columns are clipped together, see `bring_within`
) = range(N_STREAM)

WIDE = 10.0  # prior scale of a single model, from which columns are clipped together

N_WORK = 5  # vectors of scratch before the rows

LANES = 4  # numbers in a vector of the processor
PANEL = 64  # columns of a covariance that are stored together
SMALLEST = 1e-300  # least positive variance, whose inverse is finite


class LinearState(aggregation.Aggregation, NotedOrder, KernelState):
    """State of the linear models of a stream; its properties are views of the arrays.

    Parameters
    ----------
    n_features, n_outputs, n_experts : int
        Sizes.
    n_parameters : int
        Number of coefficients, the intercept included.
    full : bool
        Whether the covariances are full.
    scales : bool
        Whether features are measured, or clipped, by their running moments.
    shifts : bool
        Whether the first row is the origin, and the prior follows the spread.
    n_waves : int
        Number of random Fourier features, which are among the parameters.
    joint : bool
        Whether the outputs share a loss, and their experts are aggregated as one.
    n_labels : int
        Number of labels; 0 where targets are numbers.
    drops : bool
        Whether experts have been left out.
    lost_waves : bool
        Whether Fourier features have been left out with them.
    room : int
        Number of rows that are remembered; even.
    counts_errors : bool
        Whether standardised errors are counted.
    n_joint : int
        Number of experts with a joint posterior of the coefficients of all outputs.
    """

    def __init__(
        self,
        n_features,
        n_parameters,
        n_outputs,
        n_experts,
        *,
        full,
        scales,
        shifts,
        n_waves=0,
        joint=False,
        n_labels=0,
        drops=False,
        lost_waves=False,
        room=0,
        counts_errors=False,
        n_joint=0,
    ):
        width, n_vectors, n_panels = n_parameters, N_VECTORS, 0
        n_models, n_losses = n_outputs * n_experts, 1 if joint else n_outputs
        if full:
            width += -n_parameters % LANES
            n_vectors, n_panels = N_VECTORS_FULL, -(-width // PANEL)
        size = n_outputs * (1 + n_features)
        posteriors = (n_joint, N_ROWS_BEFORE + size if n_joint else 0, size)
        noted = order_shape(n_features, n_labels)[0]
        memory = memory_size(n_features, room)
        super().__init__(
            (3, n_features if scales else 0),
            (n_features if shifts or n_joint else 0,),
            (n_features + 1, n_waves),
            (n_models, n_vectors, width),
            (n_models, n_panels, width * PANEL) if full else posteriors,
            (n_models, N_NUMBERS + (2 * N_SIDE if counts_errors else 0)),
            (N_STREAM + noted + memory,),
            (n_losses, n_experts),
            (n_losses, aggregation.N_TOTALS),
            (n_losses if drops else 0, 1 + lost_waves),
        )
        start = n_parameters - n_features - n_waves
        self.stream[MEMORY_SIZE] = memory
        self.stream[START], self.stream[N_COEFFICIENTS] = start, n_features + n_waves
        self.slopes, self.sizes = 1.0, width

    def _name_arrays(self):
        self.moments, self.origin, self.waves = self.arrays[:3]
        self.models, self.covariances, self.numbers, self.stream = self.arrays[3:7]
        self.losses, self.totals = self.arrays[7:9]
        self.dropped, lost_waves = self.arrays[9][:, 0], self.arrays[9].shape[1] > 1
        self.frequencies, self.phases = self.waves[:-1], self.waves[-1]
        self.order, self.n_features = self.stream[N_STREAM:], len(self.frequencies)
        self.full = self.models.shape[1] == N_VECTORS_FULL
        self.scales = self.moments.size > 0
        self.n_joint = 0 if self.full else len(self.covariances)
        self.kept_quantiles = None  # see OnlineVIRegressor; neither copied nor pickled
        self.shifts = self.full and self.origin.size > 0
        self.n_experts = self.losses.shape[1]
        self.aggregates = self.n_experts > 1 or self.dropped.size > 0
        # The types of the arguments, for which kernels are compiled: few, and the same
        # before and after experts are left out.
        self.arguments = (
            self.moments if self.scales or not self.full else None,
            self.origin if self.full or self.n_joint else None,
            self.waves if self.waves.size > 0 or lost_waves else None,
            self.models,
            self.covariances if self.full or self.n_joint else None,
            self.numbers,
            self.stream,
            self.losses if self.aggregates else None,
            self.totals,
        )

    clip = named("stream", CLIP)
    loss_kind = named("stream", LOSS_KIND)
    method = named("stream", METHOD)
    rate_kind = named("stream", RATE_KIND)
    learning_rate = named("stream", RATE)
    mean_bound = named("stream", MEAN_BOUND)
    scale_bound = named("stream", SCALE_BOUND)
    flat_intercept = named("stream", FLAT)
    averaging = named("stream", AVERAGING)
    slopes = named("stream", slice(UP, DOWN + 1))
    # Of each model, (n_models,): see the columns of `numbers`.
    cumulative_losses = named("numbers", LOSS)
    squared_gradients = named("numbers", SQUARES)
    scaled_gradients = named("numbers", SCALED_SQUARES)
    residuals = named("numbers", RESIDUALS)
    counts = named("numbers", COUNT)
    events = named("numbers", EVENTS)
    most_events = named("numbers", MOST_EVENTS)
    temperatures = named("numbers", TEMPERATURE)
    forgetting = named("numbers", FORGETTING)
    scales_of_prior = named("numbers", PRIOR_SCALE)
    sizes = named("numbers", SIZE)
    last_labels = named("numbers", LAST_LABEL)
    foretold = named("numbers", slice(PRODUCTS, SQUARED_ERRORS + 1))
    error_units = named("numbers", ERROR_UNIT)
    error_growth = named("numbers", GROWTH)
    error_counts = named("numbers", slice(N_NUMBERS, None))

    @property
    def earlier_losses(self):
        """The `losses` when the experts were last compared; a copy."""
        return self.numbers[: self.losses.size, EARLIER].reshape(self.losses.shape)

    def note_losses(self):
        """Note the losses, to see later by how much they have grown."""
        self.numbers[: self.losses.size, EARLIER] = self.losses.ravel()

    # Their parts.

    def _shape_of_work(self, n_rows):
        """Return the shape of `work`, whose rows have room for any vector."""
        width = max(self.models.shape[2], 1 + self.n_features, self.losses.shape[1])
        return N_WORK + 2 * n_rows, width

    @property
    def n_memory(self):
        """Size of the memory of rows at the end of `order`."""
        return int(self.stream[MEMORY_SIZE])

    @property
    def room(self):
        """Number of rows that the memory has room for."""
        return self.n_memory // (self.n_features + N_BESIDE)

    def remembered(self):
        """Return rows, targets and weights that span the stream, in its order."""
        memory = self.order[len(self.order) - self.n_memory :]
        return remembered(memory, self.n_features)

    @property
    def total_weight(self):
        """Sum of the weights of the rows."""
        return self.numbers[0, WEIGHT]

    @property
    def n_steps(self):
        """Rows of positive weight."""
        return int(self.numbers[0, STEPS])

    @property
    def own(self):
        """Slice of the parameters, without the padding of the last lane."""
        return slice(int(self.stream[N_COEFFICIENTS] + self.stream[START]))

    @property
    def n_linear(self):
        """Number of the parameters that come before those of the Fourier features."""
        return self.own.stop - len(self.phases)

    @property
    def coefficients(self):
        """Slice of the parameters except the intercept."""
        start = int(self.stream[START])
        return slice(start, start + int(self.stream[N_COEFFICIENTS]))

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
        weights = np.maximum(self.numbers[:, WEIGHT, None], SMALLEST)
        return self.models[:, AVERAGE, self.own] / weights

    @property
    def ranges(self):
        """Lowest and highest value of each parameter's column, (2, n_parameters)."""
        return self.models[0, LOW : HIGH + 1, self.own]

    def set_ranges(self):
        """Make the intercept's column constant at 1; Fourier features have no range."""
        self.models[:, LOW : HIGH + 1, : self.coefficients.start] = 1.0
        waves = slice(self.n_linear, self.own.stop)
        self.models[:, LOW, waves], self.models[:, HIGH, waves] = -np.inf, np.inf

    @property
    def curved(self):
        """Whether each expert has Fourier features, (n_experts,)."""
        whole = self.numbers[: self.n_experts, SIZE] == self.models.shape[2]
        return whole & (self.phases.size > 0)

    @property
    def prior_scales(self):
        """Scale of the prior of each expert."""
        return self.numbers[: self.n_experts, PRIOR_SCALE]

    @property
    def forgetting_rates(self):
        """Forgetting rate of each expert."""
        return self.numbers[: self.n_experts, FORGETTING]

    def feature_units(self):
        """Origin and one over the unit of each feature; 0 if it has never varied."""
        if self.shifts:
            start = self.coefficients.start
            varies = self.precisions[0, start : start + self.n_features] > 0
            return self.origin, varies.astype(float)
        if not self.scales:
            return np.zeros(self.n_features), np.ones(self.n_features)
        center, scatter = self.moments[CENTER_OF], self.moments[SCATTER_OF]
        spread = np.where(scatter > SMALLEST, scatter, np.inf)
        return center, 1.0 / np.sqrt(spread / self.stream[SEEN])

    @property
    def best_expert(self):
        """Number of the expert of the first output with the smallest loss so far."""
        return int(self.losses[0].argmin())

    def shares(self, among=slice(None)):
        """Weight of each expert among some of them, (n_outputs, n_some)."""
        losses = self.losses[:, among]
        shape = len(self.models) // self.n_experts, losses.shape[1]
        if losses.shape[1] == 1:
            return np.ones(shape)
        rate_of = aggregation.aggregation_rate.py_func
        pairs = zip(self.losses, self.totals, strict=True)
        rates = np.array([rate_of(own, totals) for own, totals in pairs])
        shares = np.exp(-rates[:, None] * (losses - losses.min(1)[:, None]))
        return np.broadcast_to(shares / shares.sum(axis=1, keepdims=True), shape)

    def without(self, left_out):
        """Return the state without some experts; left_out : bool, (n_experts,).

        Fourier features that no other expert has are left out, too.

        `dropped`, (n_outputs,), receives by how much the soft minimum of the losses of
        all experts, a term of the regret bound, exceeds that of the remaining ones.
        """
        kept, n_outputs = ~left_out, len(self.models) // self.n_experts
        models, n_waves = np.tile(kept, n_outputs), len(self.phases)
        unused = 0 if self.curved[kept].any() else n_waves
        state = LinearState(
            self.n_features,
            self.own.stop - unused,
            n_outputs,
            np.count_nonzero(kept),
            full=self.full,
            scales=self.scales,
            shifts=self.shifts,
            n_waves=n_waves - unused,
            joint=len(self.losses) < n_outputs,
            n_labels=len(self.label_counts),
            drops=True,
            lost_waves=unused > 0 or self.arrays[9].shape[1] > 1,
            room=self.room,
            counts_errors=self.error_counts.size > 0,
            n_joint=np.count_nonzero(kept[: self.n_joint]),
        )
        state.moments[:], state.origin[:] = self.moments, self.origin
        state.waves[:] = self.waves[:, : n_waves - unused]
        state.numbers[:], state.stream[:] = self.numbers[models], self.stream
        state.stream[N_COEFFICIENTS] -= unused
        state.models[:, :, state.own] = self.models[models][:, :, state.own]
        if self.full:
            panels, size = state.covariances.shape[1:]
            state.covariances[:] = self.covariances[models, :panels, :size]
        else:
            state.covariances[:] = self.covariances[kept[: self.n_joint]]
        state.choose_clipping()
        state.losses[:], state.totals[:] = self.losses[:, kept], self.totals
        if state.n_experts == 1:  # alone, it need not be kept within the range
            state.within_range = 0.0
        state.dropped[:] = self.dropped if self.dropped.size else 0.0
        soft_minimum = aggregation.soft_minimum.py_func
        for k, rate in enumerate(self.totals[:, aggregation.RATE]):
            soft = [soft_minimum(one.losses[k], rate) for one in (self, state)]
            state.dropped[k] += soft[0] - soft[1]
        return state

    def whole_covariance(self, k):
        """Covariance of model k, (n_parameters, n_parameters)."""
        panels = self.covariances[k]
        width = panels.shape[1] // PANEL
        rows = panels.reshape(len(panels), width, PANEL).swapaxes(0, 1)
        return rows.reshape(width, -1)[self.own, self.own]

    def change_prior(self, k, scale, mean, covariance, residuals):
        """Give model k another scale of the prior, and the posterior with it.

        mean, covariance : those of its parameters, without Fourier features.
        """
        own = slice(len(mean))
        self.precisions[k] *= (self.scales_of_prior[k] / scale) ** 2
        self.scales_of_prior[k], self.residuals[k] = scale, residuals
        self.choose_clipping()
        self.means[k, own], self.variances[k, own] = mean, np.diag(covariance)
        # The means of the earlier rows were those of the other prior.
        self.models[k, AVERAGE, own] = self.averaging * self.total_weight * mean
        panels = self.covariances[k].reshape(len(self.covariances[k]), -1, PANEL)
        columns = np.arange(len(mean))
        panels[columns // PANEL, : len(mean), columns % PANEL] = covariance

    def choose_clipping(self):
        """Choose how rows are clipped to the range of the columns.

        It depends on the linear models, if there are any, as if these were alone.
        """
        scales = self.prior_scales[~self.curved | self.curved.all()]
        self.stream[TOGETHER] = float(len(scales) == 1 and scales[0] >= WIDE)

    def forget_errors(self, k):
        """Begin the notes on the errors of model k anew: those to come are smaller."""
        self.foretold[k] = self.numbers[k, ERROR_UNIT : GROWTH + 1] = 0.0
        self.error_counts[k] = self.models[k, SCORES] = 0.0

    def set_joint_priors(self):
        """Set the joint posteriors to their priors."""
        before, n_own = N_ROWS_BEFORE, 1 + self.n_features
        for posterior, scale in zip(
            self.covariances[: self.n_joint], self.prior_scales, strict=False
        ):
            variances = np.full((posterior.shape[1] // n_own, n_own), scale * scale)
            if self.scales:  # the first row may be far from the others
                variances[:, 0] = max(scale, INTERCEPT_SCALE) ** 2
            posterior[UNITS] = 1.0
            if self.scales:  # the prior follows the spread of the features
                posterior[UNITS, 1:n_own] = variances[:, 1:] = 0.0
            np.fill_diagonal(posterior[before:], variances.ravel())

    def set_variances(self, variances):
        """Make the posteriors independent, with these variances, (n_models, -1)."""
        self.variances[:] = variances
        if self.full:
            rows = np.arange(variances.shape[1])
            self.covariances[:, rows // PANEL, rows * PANEL + rows % PANEL] = variances
