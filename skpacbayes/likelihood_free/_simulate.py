"""Simulation of tables of parameters and summaries."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._compat import HasMethods, Interval, validate_params
from .._validation import as_numbers, refuse_hidden
from ._abc_support import as_bounds
from ._simulate_proposal import TruncatedPrior


class SimulationTable(tuple):
    """Simulations: summaries, parameters, and the number of failed simulations.

    It unpacks as the tuple ``X, y, n_failed``, and has the support of the prior as an
    attribute. Pass it to ``ABCPosteriorKDE().fit(table)``.

    Parameters
    ----------
    summaries : ndarray of shape (n_simulations, n_summaries)
        Summaries of the simulations.
    parameters : ndarray of shape (n_simulations,) or (n_simulations, n_parameters)
        Parameters of the simulations.
    n_failed : int, default=0
        Number of simulations left out because a summary was not finite.
    bounds : ndarray of shape (n_parameters, 2), default=None
        Support of the prior of each parameter; None if unknown.

    See Also
    --------
    simulate : Creates a table.
    ABCPosteriorKDE : Computes posteriors from a table.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> from skpacbayes import ABCPosteriorKDE, simulate
    >>> table = simulate(
    ...     [uniform(-3, 6), uniform(0, 1)],
    ...     lambda theta, rng: theta + rng.normal(size=theta.shape),
    ...     1000,
    ...     random_state=0,
    ... )
    >>> table.bounds
    array([[-3.,  3.],
           [ 0.,  1.]])
    >>> posterior = ABCPosteriorKDE(random_state=0).fit(table)
    >>> draws = posterior.sample([[3.5, 0.9]], 1000)
    >>> bool((draws[..., 0] <= 3).all())
    True
    """

    def __new__(cls, summaries, parameters, n_failed=0, bounds=None):
        table = super().__new__(cls, (summaries, parameters, n_failed))
        table.bounds = bounds
        return table

    def __getnewargs__(self):
        return (*self, self.bounds)

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "A SimulationTable is no array: give it to ABCPosteriorKDE().fit. In a "
            "pipeline or a search give table.summaries and table.parameters, and "
            "ABCPosteriorKDE(bounds=table.bounds)."
        )

    def __repr__(self):
        return (
            f"SimulationTable(n_simulations={len(self.summaries)}, "
            f"n_failed={self.n_failed})"
        )

    @property
    def summaries(self):
        """Summaries of the simulations."""
        return self[0]

    @property
    def parameters(self):
        """Parameters of the simulations."""
        return self[1]

    @property
    def n_failed(self):
        """Number of simulations left out because a summary was not finite."""
        return self[2]


@validate_params(
    {
        "prior": "no_validation",
        "simulator": [callable],
        "n_simulations": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "vectorized": ["boolean"],
        "callback": [callable, None],
        "bounds": ["array-like", None],
        "proposal": [HasMethods(["sample", "log_density"]), None],
        "observed": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def simulate(
    prior,
    simulator,
    n_simulations,
    *,
    random_state=None,
    n_jobs=None,
    batch_size=1000,
    vectorized=True,
    callback=None,
    bounds=None,
    proposal=None,
    observed=None,
):
    """Simulate a table of parameters from a prior and summaries of data.

    Simulations are made in batches, each with its own random generator: the table
    depends on `random_state` and `batch_size`, but not on `n_jobs` or the backend of
    joblib (processes, threads, a Dask cluster).

    Parameters
    ----------
    prior : callable, frozen distribution of scipy.stats, or list of these
        A callable takes the number of draws and a :class:`numpy.random.Generator`, and
        returns an array of shape (n_draws,) or (n_draws, n_parameters). A list has one
        distribution for each parameter; they are independent.
    simulator : callable
        Takes parameters and a :class:`numpy.random.Generator`, and returns summaries of
        shape (n_draws, n_summaries), or, if not `vectorized`, of one set of parameters.
        It may write into the parameters: they are a copy.
        All randomness must come from this generator: any other generator is copied to
        each process, and would repeat the same numbers.
    n_simulations : int
        Number of simulations to make.
    random_state : int, RandomState instance or None, default=None
        Seed of the batches.
    n_jobs : int, default=None
        Number of batches simulated in parallel. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.
    batch_size : int, default=1000
        Number of simulations in a batch.
    vectorized : bool, default=True
        Whether the simulator takes all parameters of a batch at once.
    callback : callable, default=None
        Called after each batch with the number of simulations made so far and their
        total number; if it returns True, the simulation stops.
    bounds : array-like of shape (n_parameters, 2) or (2,), default=None
        Support of the prior of each parameter. None: that of the distributions;
        unknown for parameters that a callable draws.
    proposal : ABCPosteriorKDE, default=None
        Posterior of an earlier round. Parameters are drawn from the prior truncated to
        the region that holds 99.9 % of this posterior, given `observed`. Fit a new
        estimator to the table of the last round.
    observed : array-like of shape (1, n_summaries), default=None
        Observed summaries; needed with `proposal`.

    Returns
    -------
    table : SimulationTable
        Unpacks as `summaries`, of shape (n_kept, n_summaries), without failed
        simulations; their `parameters`, of shape (n_kept,) or (n_kept, n_parameters);
        and `n_failed`, the number of simulations left out because a summary was not
        finite. Its attribute `bounds` is used by `ABCPosteriorKDE().fit(table)`.

    Raises
    ------
    ValueError
        If all simulations fail, the shapes do not match, only one of `proposal` and
        `observed` is given, `observed` is not one observation, or the prior has hardly
        any draws in the region of the proposal.
    TypeError
        If the prior has another type.

    See Also
    --------
    ABCPosteriorKDE : Computes posteriors from the table.

    Notes
    -----
    Leaving out failed simulations conditions the prior on success: if many fail, make
    the failure itself a summary.

    A prior truncated to a region that holds the posterior gives the same posterior, so
    that no importance weights are needed [1]_. Use the table of such a round for its
    own observation only.

    References
    ----------
    .. [1] M. Deistler, P. J. Gonçalves and J. H. Macke, "Truncated proposals for
       scalable and hassle-free simulation-based inference", NeurIPS 2022.

    Examples
    --------
    Waiting times between events, of which only the longest of ten is recorded, by a
    clock that stops at 20:

    >>> import numpy as np
    >>> from scipy.stats import gamma
    >>> from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate
    >>> def longest_wait(rate, rng):
    ...     waits = rng.exponential(1 / rate, size=10).max()
    ...     return [waits if waits < 20 else np.nan]
    >>> X, y, n_failed = simulate(
    ...     gamma(2), longest_wait, 1000, vectorized=False, random_state=0
    ... )
    >>> len(X) + n_failed
    1000
    >>> posterior = ABCPosteriorKDE(parameter_transform="log", random_state=0).fit(X, y)
    >>> posterior.predict_quantiles([[3.0]], [0.05, 0.95]).round(1)
    array([[0.6, 1.9]])
    """
    root = np.random.SeedSequence(
        check_random_state(random_state).randint(2**31 - 1, size=4)
    )
    if (proposal is None) != (observed is None):
        given, needed = ("proposal", "observed")[:: 1 if observed is None else -1]
        raise ValueError(f"{given} needs {needed} too.")
    if np.ndim(observed) == 2 and len(observed) != 1:
        raise ValueError(
            f"observed must be one observation, of shape (1, n_summaries), got "
            f"{len(observed)}: simulate a round for each."
        )
    _check(prior)
    source = prior
    if proposal is not None:
        rng = np.random.default_rng(root.spawn(1)[0])
        source = TruncatedPrior(partial(_draw, prior), proposal, observed, rng)
    starts = range(0, n_simulations, batch_size)
    sizes = [min(batch_size, n_simulations - start) for start in starts]
    # Batches share no state, so that any joblib backend can be used.
    batches = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_batch)(source, simulator, size, seed, vectorized)
        for size, seed in zip(sizes, root.spawn(len(sizes)), strict=True)
    )
    table, n_made = [], 0
    for batch in batches:
        table.append(batch)
        _refuse_other_widths(table[0][0].shape[1], batch[0].shape[1])
        n_made += len(batch[0])
        if callback is not None and callback(n_made, n_simulations):
            break
    batches.close()
    summaries, parameters = (np.concatenate(part) for part in zip(*table, strict=True))
    finite = np.isfinite(summaries).all(axis=1)
    if not finite.any():
        raise ValueError(
            f"All {n_made} simulations failed: each has a summary that is not finite."
        )
    width = 1 if parameters.ndim == 1 else parameters.shape[1]
    if bounds is None:
        bounds = _support(prior, width)
    else:
        bounds = np.column_stack(as_bounds(bounds, width))
    n_failed = int(n_made - finite.sum())
    return SimulationTable(summaries[finite], parameters[finite], n_failed, bounds)


def _batch(prior, simulator, size, seed, vectorized):
    """Return summaries and parameters of one batch."""
    generator = np.random.default_rng(seed)
    parameters = as_numbers(
        "the draw of prior", _draw(prior, size, generator), ensure_all_finite=False
    )
    if parameters.ndim not in (1, 2) or len(parameters) != size:
        raise ValueError(
            f"prior must return {size} rows of parameters, got an array of shape "
            f"{parameters.shape}."
        )
    if not np.isfinite(parameters).all():
        raise ValueError("prior must return finite parameters.")
    # Copies: a simulator may write into its parameters, and a prior or a simulator may
    # return the same array each time.
    parameters = parameters.copy()
    if vectorized:
        summaries = simulator(parameters.copy(), generator)
    else:
        summaries = [_one_row(simulator, row, generator) for row in parameters.copy()]
        for row in summaries:
            _refuse_other_widths(len(summaries[0]), len(row))
        summaries = np.stack(summaries)
    summaries = as_numbers(
        "the result of simulator", summaries, ensure_all_finite=False
    ).copy()
    if summaries.ndim != 2 or len(summaries) != size:
        raise ValueError(
            f"simulator must return a row of summaries for each of {size} rows of "
            f"parameters, an array of shape ({size}, n_summaries), got one of shape "
            f"{summaries.shape}."
        )
    return summaries, parameters


def _one_row(simulator, row, generator):
    """Return the summaries of one set of parameters."""
    summaries = simulator(row, generator)
    refuse_hidden(summaries, "the result of simulator")
    values = np.array(summaries)
    if values.ndim != 1:
        raise ValueError(
            "simulator must return a list or an array of the summaries of one set of "
            f"parameters, such as [1.5, 4.0], with vectorized=False; got {summaries!r}."
        )
    return values


def _refuse_other_widths(first, width):
    """Raise ValueError if simulations have different numbers of summaries."""
    if width != first:
        raise ValueError(
            f"simulator must return the same number of summaries each time, got "
            f"{first} and then {width}."
        )


def _check(prior):
    """Raise TypeError or ValueError for a prior that cannot be drawn from."""
    if isinstance(prior, list | tuple) and prior:
        for part in prior:
            _check(part)
    elif hasattr(prior, "rvs"):
        try:  # distributions of several parameters have no support
            ends = prior.support() if hasattr(prior, "support") else 0.0
        except TypeError as error:
            raise ValueError(
                "prior should be a distribution with its parameters, such as "
                f"scipy.stats.gamma(2), got {type(prior).__name__} without: {error}"
            ) from error
        if np.ndim(ends) > 1:
            raise ValueError(
                f"prior has a distribution with arrays of {np.size(ends[0])} "
                "parameters: give a list of distributions of one number each."
            )
    elif hasattr(prior, "resample"):  # calling it gives its density
        raise TypeError(
            f"prior is a {type(prior).__name__}: give a function that draws from it, "
            "such as lambda n, rng: prior.resample(n, seed=rng).T."
        )
    elif not callable(prior):
        # SciPy 1.17 forgets the mean of scipy.stats.Normal when it is pickled.
        raise TypeError(
            f"prior must be a callable, a frozen distribution such as "
            f"scipy.stats.norm(0, 1), or a list of these; got {prior!r}."
        )


def _draw(prior, size, generator):
    """Draw from a callable, a distribution, or a list of these."""
    if hasattr(prior, "rvs"):
        draws = np.asarray(prior.rvs(size=size, random_state=generator))
        # Multivariate distributions drop the first axis of a single draw.
        return draws if draws.shape[:1] == (size,) else draws[None]
    if callable(prior):
        return prior(size, generator)
    return np.column_stack([_draw(part, size, generator) for part in prior])


def _support(prior, n_parameters):
    """Return the bounds of the parameters by the supports of frozen distributions.

    In a list with other priors, the bounds of their parameters are infinite. None if no
    bound is known, or if it is not known which parameters the others draw.
    """
    supports = [_support_of(part) for part in _parts(prior)]
    n_unknown = sum(support is None for support in supports)
    n_others = n_parameters - len(supports) + n_unknown
    if n_unknown == len(supports) or (n_unknown > 1 and n_others != n_unknown):
        return None
    width = n_others // max(n_unknown, 1)
    whole = np.array([[-np.inf, np.inf]])
    return np.concatenate(
        [np.repeat(whole, width, axis=0) if s is None else s for s in supports]
    )


def _support_of(prior):
    """Return the support of a distribution of one number, (1, 2), or None."""
    if not (hasattr(prior, "support") and hasattr(prior, "rvs")):
        return None
    support = np.asarray(prior.support(), dtype=np.float64)
    return support[None] if support.shape == (2,) else None


def _parts(prior):
    """Return the priors in a list of lists, one after the other."""
    if not isinstance(prior, list | tuple):
        return [prior]
    return [part for parts in prior for part in _parts(parts)]
