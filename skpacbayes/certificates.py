"""Certificates: the bounds of the papers, computed on the user's data."""

from dataclasses import dataclass


@dataclass(frozen=True)
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
    """

    theorem: str
    observed: float
    bound: float
    terms: dict
    assumptions: dict

    def __str__(self):
        """Return a table of the terms and of the assumptions."""
        truth = {True: "holds", False: "DOES NOT HOLD", None: "cannot be checked"}
        lines = [
            self.theorem,
            f"  observed {self.observed:.6g}",
            f"  bound    {self.bound:.6g}",
        ]
        lines += [f"    {name}: {value:.6g}" for name, value in self.terms.items()]
        lines += [
            f"  {name}: {truth[value]}" for name, value in self.assumptions.items()
        ]
        return "\n".join(lines)
