"""Gaussian mixtures fitted by tempered variational Bayes."""

from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.utils.metaestimators import available_if

from .._compat import Interval, StrOptions
from .._validation import as_numbers, refuse_large
from ._column_family import refuse_empty_columns
from ._conditional import ConditionalMixture
from ._covariance_types import (
    simpler_or_whole,
    warn_of_covariance_type,
    warn_of_merged_components,
)
from ._default_priors import BLUR, NormalF
from ._diagonal_families import (
    IndependentNormalInverseGamma,
    KnownVariance,
    NormalInverseGamma,
)
from ._gaussian_families import GaussianFamily, are_few, covariance, variances
from ._inherited_docs import NotInherited, inherits_entries
from ._matrix_f import NormalMatrixF
from ._missing import column_means
from ._mixture import TemperedVBMixture, parameter
from ._rows import column_indices
from ._wishart import NormalWishart

TYPES = "full", "tied", "diag", "spherical"  # between which "auto" chooses
NARROWING = 10  # factor of the prior volume of a component (factorized prior)
WITHOUT_FAMILY = {
    name: constraint
    for name, constraint in TemperedVBMixture._parameter_constraints.items()
    if name != "family"
}


def predicts_columns(mixture):
    """Return whether the mixture predicts columns given others."""
    mixture = mixture._as_fitted()
    default = mixture.prior == "conjugate" and mixture.covariance_type != "known"
    return default and not mixture.outliers


@inherits_entries
class TemperedVBGaussianMixture(TemperedVBMixture):
    """Bayesian Gaussian mixture by tempered variational inference.

    The likelihood is raised to the power `inverse_temperature`, and the posterior is
    approximated by independent distributions of the weights and of each component. The
    exact evidence bound is maximised by coordinate ascent, on all rows (`fit`), on a
    stream (`partial_fit`) or on distributed data (`sufficient_statistics` and
    `absorb`), in memory that does not grow with the number of rows. The number of
    components and the type of the covariances may be chosen by the bound. With "full"
    and "tied" covariances, NaN is a missing value, which is integrated out.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical", "known", "auto"}, \
            default="full"
        Covariances of the components. "full": unrestricted; "tied": one for all
        components; "diag": diagonal; "spherical": a variance times the identity;
        "known": `known_covariance` times the identity. "auto" chooses from the first
        four (with missing values, the first two) by the largest bound, minus log(1 /
        pi_K) if `n_components` is "auto" too, or by five-fold cross-validation where
        the bounds are so near that the data in the default priors may decide; it takes
        about 1.5 times as long as "full". A stream keeps the type of its first rows.
    prior : {"conjugate", "factorized"}, default="conjugate"
        "conjugate": the prior variance of a mean is proportional to the component's
        variance. "factorized": it is independent of it ("diag" and "spherical" only).
    mean_prior : array-like of shape (n_features,), default=None
        Prior mean of the means. None: the mean of the data.
    mean_precision_prior : float, default=0.05
        Prior precision of the means, in pseudo-observations of the component. With the
        default `covariance_prior`, each component has its own precision, with a Gamma
        prior of this mean. With the factorized prior a mean has the variance
        covariance_prior / degrees_of_freedom_prior / mean_precision_prior.
    degrees_of_freedom_prior : float, default=None
        Degrees of freedom of the Wishart distribution, more than n_features - 1; twice
        the shape of the inverse Gamma distribution for "diag" and "spherical". None:
        n_features + 2, or 3 for "diag" and "spherical".
    covariance_prior : float or array-like, default=None
        Inverse scale of the Wishart distribution, (n_features, n_features); twice the
        scale of the inverse Gamma distributions for "diag", (n_features,), and
        "spherical", a float. None: an empirical prior. Each component has its own
        inverse scale, with a Wishart prior whose scale is the covariance of the data
        times a factor; the factor and the degrees of freedom of this prior maximise the
        bound. With the factorized prior, None: the covariance of the data times 10^(-2
        / n_features).
    known_covariance : float, default=None
        Variance of each feature within a component, for "known". 1.0 gives the paper's
        Algorithm 3.

    Attributes
    ----------
    covariance_type_ : {"full", "tied", "diag", "spherical", "known"}
        Type of the covariances, given or chosen.
    means_ : ndarray of shape (n_components, n_features)
        Posterior means of the means.
    covariances_ : ndarray
        Inverses of the expected precisions: (n_components, n_features, n_features)
        for "full", (n_features, n_features) for "tied", (n_components, n_features)
        for "diag", (n_components,) for "spherical" and "known".
    precisions_ : ndarray
        Inverses of `covariances_`, in the same shape.
    precisions_cholesky_ : ndarray
        Upper triangular factors of the precisions, in the same shape.
    mean_precision_ : ndarray of shape (n_components,)
        Posterior precision of the means, in units of the component's precision;
        (n_components, n_features) for a factorized "diag". Missing values do not count.
    degrees_of_freedom_ : ndarray of shape (n_components,) or float
        Degrees of freedom of the precisions: a single number if "tied", infinite if
        "known". Rows with missing values count by their share of observed pairs.
    parameters_ : dict of str to ndarray
        The attributes of the components, by name.
    elbo_ : float
        Evidence bound J of all rows, with all constants, in nats. It can be compared
        between numbers of components and priors.
    statistics_ : ndarray of shape (n_components, n_columns)
        Sufficient statistics of all rows: counts, sums and products about fixed
        origins, with "full" and "tied" the effective numbers of missing values and
        pairs, and entropies.

    See Also
    --------
    TemperedVBMultinomialMixture : The same for counts.
    sklearn.mixture.BayesianGaussianMixture : Batch only; its "tied", "diag" and
        "spherical" are different models.

    Notes
    -----
    Algorithms 1 and 3 of [1]_. In the variational family, weights and components are
    independent, q(p) q(theta_1) ... q(theta_K). `elbo_` is

        J = alpha sum_i log sum_k exp(E log p_k + E log q_k(x_i)) - KL(q, prior),

    which is below the paper's bound (2.1), itself below the log-evidence of the
    tempered likelihood. Theorems 3.1 and 4.1 hold for the global maximiser of J, for
    alpha < 1, and for priors that do not depend on the data, as the default priors do.
    The functions of `skpacbayes.certificates` give the bounds.

    The default prior of a precision is a matrix-F distribution [2]_, with polynomial
    tails in every direction: components may be thin in some directions. The posterior
    of the inverse scales is a factor of q, so that `elbo_` stays a lower bound, though
    for one component and alpha = 1 it is the evidence only if `covariance_prior` is
    given. The scale of the prior of the inverse scales begins as a multiple of the
    covariance of all rows. For "full" and "tied" the bound also chooses its shape, less
    a penalty of n_features / 2 times the logarithm of the determinant that is lost:
    where groups are apart, the covariance of all rows is too wide. The more degrees of
    freedom the inverse scales have, the more precisely the components determine the
    scale of their prior. As in a Laplace approximation, each of its n_features
    (n_features + 1) / 2 numbers then costs half the logarithm of this precision,
    relative to the fewest degrees of freedom. With fewer rows than 3 `n_features`, the
    shape stays without a price, and the correlations of the data are shrunk for the
    prior, by the share with the least expected error [3]_: otherwise the covariance
    could be singular. A variance of 1e-12 times that of a feature is added to each row,
    which bounds the density of rows with equal values of a feature.

    Tempering gives fewer components when the components are misspecified, and valid
    risk bounds. It does not give a better density. With few rows for the model, n alpha
    < 5 K n_features (n_features + 3) / 2, a small alpha also merges true components.

    For "full" and `n_components` > 1 an iteration takes two matrix products with n K
    n_features^2 / 2 terms. No array of the length of X is allocated. An update takes
    some 20 n_features^3 operations for each covariance, or n_features^2 times its
    number of rows if these are fewer than 3/4 n_features. With hundreds of columns, the
    search of "auto" therefore takes minutes with "full", and seconds with "diag".

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.
    .. [2] J. Mulder and L. R. Pericchi (2018). The matrix-F prior for estimating and
       testing covariance matrices. Bayesian Analysis 13, 1193-1214.
    .. [3] J. Schäfer and K. Strimmer (2005). A shrinkage approach to large-scale
       covariance matrix estimation. Statistical Applications in Genetics and Molecular
       Biology 4, 32.

    Examples
    --------
    Choose the number of components, and compare with a stream:

    >>> import numpy as np
    >>> from skpacbayes.mixture import TemperedVBGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2)) + 6 * rng.integers(0, 2, (600, 2))
    >>> mixture = TemperedVBGaussianMixture("auto", max_components=6, random_state=0)
    >>> mixture.fit(X).n_components_
    4
    >>> stream = TemperedVBGaussianMixture(4, block_size=200, random_state=0)
    >>> for start in range(0, 600, 50):
    ...     _ = stream.partial_fit(X[start : start + 50])
    >>> bool(abs(stream.elbo_ - mixture.elbo_) < 0.01 * len(X))
    True
    """

    _parameter_constraints: dict = {
        **WITHOUT_FAMILY,
        "covariance_type": [StrOptions({*TYPES, "known", "auto"})],
        "prior": [StrOptions({"conjugate", "factorized"})],
        "mean_prior": [None, "array-like"],
        "mean_precision_prior": [Interval(Real, 0, None, closed="neither")],
        "degrees_of_freedom_prior": [None, Interval(Real, 0, None, closed="neither")],
        "covariance_prior": [
            None,
            "array-like",
            Interval(Real, 0, None, closed="neither"),
        ],
        "known_covariance": [None, Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        prior="conjugate",
        inverse_temperature=0.9,
        max_components=20,
        component_prior="geometric",
        weight_concentration_prior=1.0,
        mean_prior=None,
        mean_precision_prior=0.05,
        degrees_of_freedom_prior=None,
        covariance_prior=None,
        known_covariance=None,
        outliers=False,
        n_init=3,
        max_iter=300,
        tol=1e-5,
        block_size="auto",
        window="auto",
        n_sweeps=3,
        random_state=None,
        warm_start=False,
        n_jobs=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.prior = prior
        self.inverse_temperature = inverse_temperature
        self.max_components = max_components
        self.component_prior = component_prior
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.known_covariance = known_covariance
        self.outliers = outliers
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.block_size = block_size
        self.window = window
        self.n_sweeps = n_sweeps
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    # Predictions of columns.

    @available_if(predicts_columns)
    def conditional(self, X, columns=None):
        """Predict some columns given the others.

        Given the component, columns are dependent with "full" and "tied" covariances
        only; with "diag", the other columns only determine the probabilities of the
        components. Not available with `outliers=True`, `prior="factorized"` or known
        covariances.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows; NaN values are predicted.
        columns : slice or array-like of int, bool or str, default=None
            Columns to predict, whatever their values in X; by name if the mixture was
            fitted to a data frame.

        Returns
        -------
        conditional : ConditionalMixture
            The posterior-predictive distribution of the missing values of each row
            given its other values: `mean`, `std`, `weights` and `sample`.

        Examples
        --------
        A nonlinear regression, with predictive standard deviations:

        >>> import numpy as np
        >>> from skpacbayes.mixture import TemperedVBGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, 2000)
        >>> X = np.column_stack([x, np.abs(x) + 0.1 * rng.normal(size=2000)])
        >>> mixture = TemperedVBGaussianMixture(4, random_state=0).fit(X)
        >>> found = mixture.conditional([[-0.5, np.nan], [0.5, np.nan]])
        >>> found.mean[:, 1].round(1)
        array([0.5, 0.5])
        >>> found.std[:, 1].round(1)
        array([0.1, 0.1])
        """
        answer, X = self._answer(), self._check_rows(X, incomplete=True)
        if columns is not None:
            X = X.copy()
            names = vars(self).get("feature_names_in_", ())
            X[:, column_indices(columns, names, X.shape[1], "columns has")] = np.nan
        scorer = answer.mixture.family.conditional_scorer(answer.state.components)
        scores = np.empty((len(X), scorer.n_components))
        scorer.write(X, scores)
        weights = softmax(scores + answer.log_weights, axis=1)
        return ConditionalMixture(X, weights, scorer)

    predict_target = NotInherited()  # there is no regression family

    # Fitted attributes.

    @property
    def covariance_type_(self):
        """Type of the covariances, given or chosen."""
        return self._answer().mixture.family.covariance_type

    means_ = parameter("means_", "Posterior means of the means.")
    covariances_ = parameter("covariances_", "Inverses of the expected precisions.")
    precisions_ = parameter("precisions_", "Expected precisions.")
    precisions_cholesky_ = parameter("precisions_cholesky_", "Triangular factors.")
    mean_precision_ = parameter("mean_precision_", "Posterior precision of the means.")
    degrees_of_freedom_ = parameter("degrees_of_freedom_", "Those of the precisions.")

    # Steps of `fit` that are specific to Gaussians.

    def _family(self):
        full = self.covariance_type in ("full", "tied", "auto")
        return NormalWishart if full else GaussianFamily

    def _check_rows(self, X, *, reset=False, least=1, incomplete=False):
        if reset:
            self._check_combination()
        learned = None if reset else self._learned_family()
        rows = None if reset else self._plain(X)
        if rows is None:
            takes = incomplete or self._takes_missing(reset=reset)
            takes |= self._takes_missing(reset=True)  # it may not be allowed
            finite = "allow-nan" if takes else True
            rows = self._rows(
                X, reset=reset, ensure_all_finite=finite, ensure_min_samples=least
            )
            if learned is not None and not incomplete:
                learned.check_rows(rows)
        refuse_large("X", rows)
        return rows

    def _why_no_missing(self):
        if self._family().allows_missing:
            return super()._why_no_missing()
        return (
            f"covariance_type={self.covariance_type!r} takes no missing values: leave "
            f"out these rows, or choose 'full' or 'tied'"
            f"{' with outliers=False' if self.outliers else ''}."
        )

    def _warn_of(self, fit, fits, X, weight, learner):
        """Warn if covariances with fewer parameters are clearly better."""
        if len(X) == 1 or (X[0] == X).all():  # no spread that a type could describe
            return
        family, degrees = fit.mixture.family, self.degrees_of_freedom_prior
        pooled = isinstance(family, NormalF) and family.pooled and X.shape[1] > 1
        if pooled and (np.ptp(X, axis=0) > 0).all():
            warn_of_covariance_type(fit, degrees)
        default = isinstance(family, (NormalMatrixF, NormalF)) and not pooled
        if not default or self.covariance_type == "auto" or X.shape[1] == 1:
            return
        kind, kinds = self.covariance_type, self._types_for(X)
        if kind == "full" and warn_of_covariance_type(fit, degrees):
            return
        kinds = [each for each in kinds if each in simpler_or_whole(kind, X.shape[1])]
        others = [self._begin_family(each, X, weight) for each in kinds]
        warn_of_merged_components(fit, fits, others, X, weight, learner)

    def _begin_families(self, X, weight):
        """Return the families of the covariance types to compare."""
        kinds = [self.covariance_type]
        if kinds == ["auto"]:
            kinds = self._types_for(X)
            if self.n_components == 1:
                kinds.remove("tied")
            if are_few(X, weight):  # the first type limits the number of components
                kinds.reverse()
        return [self._begin_family(kind, X, weight) for kind in kinds]

    @staticmethod
    def _types_for(X):
        """Return the covariance types that differ for such rows, and take them."""
        few = X.shape[1] == 1 or np.isnan(X).any()
        return ["full", "tied"] if few else list(TYPES)

    def _begin_family(self, kind, X, weight):
        """Return the family of a covariance type, with its prior."""
        refuse_empty_columns(X)
        d, mean = X.shape[1], column_means(X, weight)
        if self.mean_prior is not None:
            mean = as_numbers("mean_prior", self.mean_prior)
            require_shape("mean_prior", mean, (d,))
        if kind == "known":
            return KnownVariance(mean, self.mean_precision_prior, self.known_covariance)
        matrix, pooled = kind in ("full", "tied"), kind == "spherical"
        degrees = self.degrees_of_freedom_prior
        if matrix and degrees is not None and degrees <= d - 1:
            raise ValueError(
                f"degrees_of_freedom_prior={degrees} must exceed n_features - 1 "
                f"= {d - 1} with covariance_type={kind!r}."
            )
        if self.covariance_prior is None and self.prior == "conjugate":
            return self._default_family(kind, X, weight, mean, degrees)
        if matrix:
            scale = self._covariance_prior((d, d))
            degrees = d + 2 if degrees is None else degrees
            return NormalWishart(
                mean, self.mean_precision_prior, degrees, scale, tied=kind == "tied"
            )
        if self.covariance_prior is None:
            scale = variances(X, weight) / NARROWING ** (2 / d)
            scale = scale.mean() if pooled else scale
        else:
            scale = self._covariance_prior(() if pooled else (d,))
        family = (
            NormalInverseGamma
            if self.prior == "conjugate"
            else IndependentNormalInverseGamma
        )
        shape = 0.5 * (3 if degrees is None else degrees)
        return family(mean, self.mean_precision_prior, shape, 0.5 * scale, pooled)

    def _default_family(self, kind, X, weight, mean, degrees):
        """Return a family with an empirical prior."""
        d, spread = X.shape[1], variances(X, weight)
        if kind in ("full", "tied"):
            family = NormalMatrixF(
                mean,
                self.mean_precision_prior,
                d + 2 if degrees is None else degrees,
                covariance(X, weight),
                BLUR * spread,
                tied=kind == "tied",
            )
            family.shape_follows = d > 1 and not are_few(X, weight)
            return family
        pooled = kind == "spherical"
        return NormalF(
            mean,
            self.mean_precision_prior,
            3 if degrees is None else degrees,
            spread.mean() if pooled else spread,
            BLUR * spread,
            pooled,
        )

    def _check_combination(self):
        """Raise ValueError for conflicting parameters."""
        kind = self.covariance_type
        if (kind == "known") != (self.known_covariance is not None):
            raise ValueError(
                "known_covariance must be given with covariance_type='known', and only "
                f"then; got covariance_type={kind!r} and "
                f"known_covariance={self.known_covariance!r}."
            )
        own = self.covariance_prior, self.degrees_of_freedom_prior
        if kind == "auto" and any(prior is not None for prior in own):
            raise ValueError(
                "covariance_prior and degrees_of_freedom_prior must be None with "
                "covariance_type='auto': types are compared under their default "
                "priors. Choose a type, or leave the priors out."
            )
        if self.prior == "factorized" and kind not in ("diag", "spherical"):
            raise ValueError(
                "prior='factorized' needs covariance_type 'diag' or 'spherical', got "
                f"{kind!r}."
            )

    def _covariance_prior(self, shape):
        """Return the user's prior covariance, if it has the right shape."""
        prior = np.atleast_1d(as_numbers("covariance_prior", self.covariance_prior))
        if shape == ():
            prior = prior.reshape(()) if prior.size == 1 else prior
        require_shape("covariance_prior", prior, shape)
        positive = (
            np.allclose(prior, prior.T) and np.linalg.eigvalsh(prior)[0] > 0
            if len(shape) == 2
            else (prior > 0).all()
        )
        if not positive:
            raise ValueError(
                "covariance_prior must be symmetric and positive definite."
                if len(shape) == 2
                else "covariance_prior must be positive."
            )
        return prior


def require_shape(name, array, shape):
    """Raise a ValueError unless the array has this shape."""
    if array.shape != shape:
        raise ValueError(
            f"The parameter {name!r} should have the shape {shape}, but got "
            f"{array.shape}."
        )
