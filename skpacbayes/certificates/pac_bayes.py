"""PAC-Bayesian bounds of any Gibbs posterior whose loss is bounded."""

import math

from ._constraints import (
    COUNT,
    NOT_NEGATIVE,
    NOT_NEGATIVE_OR_INFINITE,
    POSITIVE,
    SHARE,
    checked,
)

ROUNDING = 1e-9  # by which a mean of losses may exceed the largest loss


@checked(
    {
        "observed": NOT_NEGATIVE,
        "divergence": NOT_NEGATIVE_OR_INFINITE,
        "count": COUNT,
        "inverse_temperature": POSITIVE,
        "largest": POSITIVE,
        "confidence": SHARE,
    }
)
def catoni_terms(
    observed, divergence, *, count, inverse_temperature, largest, confidence
):
    """Bound the risk of a randomised predictor, term by term.

    For a loss in [0, B] and `count` independent rows, with probability `confidence`,
    for all posteriors at once (Theorem 1.2.6 of [1]_, from losses in [0, 1] to others),

        risk <= B (1 - exp(-(lambda / n) T)) / (1 - exp(-lambda B / n)),
        T = observed + (divergence + log(1 / (1 - confidence))) / lambda.

    Parameters
    ----------
    observed : float
        Mean loss over the rows, expected under the posterior.
    divergence : float
        Kullback-Leibler divergence of the posterior from the prior.
    count : int
        n, the number of independent rows; for pairs of a positive and a negative row
        the smaller of the two numbers, by Hoeffding's decomposition.
    inverse_temperature : float
        lambda, which may not depend on the rows.
    largest : float
        B.
    confidence : float
        Probability with which the bound holds.

    Returns
    -------
    terms : dict of str to float
        Their sum is the bound. `deviation`, what the exponentials add to T, is at most
        Hoeffding's lambda B^2 / (8 n).

    Raises
    ------
    ValueError
        If a number is not in its range, or `observed` is above `largest`.

    References
    ----------
    .. [1] O. Catoni (2007). PAC-Bayesian supervised classification.

    Examples
    --------
    A tenth of a thousand rows misclassified, by a posterior that is 20 nats away from
    the prior:

    >>> from skpacbayes.certificates import catoni_terms
    >>> terms = catoni_terms(
    ...     0.1,
    ...     20.0,
    ...     count=1000,
    ...     inverse_temperature=500.0,
    ...     largest=1.0,
    ...     confidence=0.95,
    ... )
    >>> for name, value in terms.items():
    ...     print(f"{name:10} {value:.4f}")
    observed   0.1000
    divergence 0.0400
    confidence 0.0060
    deviation  0.0329
    """
    if observed > largest * (1 + ROUNDING):
        raise ValueError(
            f"observed={observed:.6g} should be at most largest={largest:.6g}, the "
            "largest loss."
        )
    rate = inverse_temperature / count
    terms = {
        "observed": observed,
        "divergence": divergence / inverse_temperature,
        "confidence": -math.log1p(-confidence) / inverse_temperature,
    }
    total = sum(terms.values())
    if math.isinf(total):
        return terms | {"deviation": 0.0}
    bound = largest * math.expm1(-rate * total) / math.expm1(-rate * largest)
    return terms | {"deviation": bound - total}
