"""The certificate: a theorem on one run."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Certificate:
    """A theorem's inequality on one run: what was observed, and its bound.

    Parameters
    ----------
    theorem : str
        The theorem and its paper.
    observed : float
        The left side of the theorem, as observed on the run.
    bound : float
        The right side of the theorem.
    terms : dict of str to float
        The terms whose sum is `bound`, by name.
    assumptions : dict of str to bool or None
        Each assumption of the theorem: True or False where the run shows it, None
        where it cannot be checked from the data.
    largest : float, default=inf
        Largest value that the left side can take: a bound above it says nothing.
    statement : str, default=""
        What the bound bounds, if `observed` is only an estimate of it: such as the loss
        on new rows, and the probability with which the bound holds.

    Examples
    --------
    A hundred tosses of a coin that never showed tails, and Hoeffding's inequality at
    level 1 %: the rate of tails is below the bound, if the tosses are independent.

    >>> import math
    >>> terms = {"observed": 0.0, "deviation": math.sqrt(math.log(100) / 200)}
    >>> print(
    ...     Certificate(
    ...         theorem="Hoeffding (1963), Theorem 1",
    ...         observed=0.0,
    ...         bound=sum(terms.values()),
    ...         terms=terms,
    ...         assumptions={"values within [0, 1]": True, "independence": None},
    ...         largest=1.0,
    ...         statement="The rate of tails on new tosses, with probability 0.99,",
    ...     )
    ... )
    The rate of tails on new tosses, with probability 0.99, is at most 0.151743...
    Hoeffding (1963), Theorem 1
      observed 0
      bound    0.151743
        observed: 0
        deviation: 0.151743
      values within [0, 1]: holds
      independence: cannot be checked
    """

    theorem: str
    observed: float
    bound: float
    terms: dict
    assumptions: dict
    largest: float = math.inf
    statement: str = ""

    @property
    def verdict(self):
        """What the certificate says of the run, in one sentence."""
        failed = sum(value is False for value in self.assumptions.values())
        unknown = sum(value is None for value in self.assumptions.values())
        observed, bound = f"{self.observed:.6g}", f"{self.bound:.6g}"
        if failed:
            fails = "assumption fails" if failed == 1 else "assumptions fail"
            return (
                f"No guarantee, as {failed} {fails}: observed {observed}, bound "
                f"{bound}."
            )
        if not self.observed <= self.bound:
            return f"The observed value {observed} is not within the bound {bound}."
        if self.bound >= self.largest:
            return (
                f"The bound {bound} says nothing, as no value is above "
                f"{self.largest:.6g}: observed {observed}."
            )
        if self.statement:
            verdict = f"{self.statement} is at most {bound}"
            if unknown:
                hold = "assumption holds" if unknown == 1 else "assumptions hold"
                verdict += f" if {unknown} unchecked {hold}"
            return f"{verdict}; observed {observed}."
        if unknown:
            do = "assumption does" if unknown == 1 else "assumptions do"
            return (
                f"The bound holds if {unknown} unchecked {do}: {observed} <= {bound}."
            )
        return f"The bound holds: {observed} <= {bound}."

    def __str__(self):
        """Return the verdict, the theorem, its terms and its assumptions."""
        truth = {True: "holds", False: "DOES NOT HOLD", None: "cannot be checked"}
        lines = [
            self.verdict,
            self.theorem,
            f"  observed {self.observed:.6g}",
            f"  bound    {self.bound:.6g}",
        ]
        lines += [f"    {name}: {value:.6g}" for name, value in self.terms.items()]
        lines += [
            f"  {name}: {truth[value]}" for name, value in self.assumptions.items()
        ]
        return "\n".join(lines)

    __repr__ = __str__
