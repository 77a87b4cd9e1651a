"""Overdispersed or correlated columns, for which several components fit one group.

A negative binomial distribution is a continuous mixture of Poisson distributions, a
beta-binomial one of binomial distributions, and counts with extra zeros are a mixture
of two. Counts that rise and fall together, in all columns, are a mixture too. Where
the groups have such counts, the evidence prefers more components than there are groups.
Components are merged, pair after pair, into groups with broader distributions, and BIC
compares these groups with the components. The same is done for real numbers that are
correlated within groups: components without covariances divide a group along its
longest axis. It is also done for categories that depend on each other within groups,
and for shares that add to one, whose distributions are skewed towards the boundary of
the simplex. All other columns keep their family, with one distribution for each group.
"""

from .._base import warn_user
from ._correlated_columns import CorrelatedColumns
from ._dependent_categories import DependentCategories
from ._group_kinds import (
    BinomialGroups,
    CorrelatedGroups,
    PoissonGroups,
    ProportionalGroups,
    ShareGroups,
)
from ._groups import DECISIVE, OtherColumns
from ._moves import shares_and_losses
from ._product import ProductFamily
from ._search import scaled_part

CLEARLY = 1.2  # ratio of the gains of groups that are named instead of others,
FAR = 3.0  # and of others that say that columns are correlated


def parts_and_others(family, n_features, takes):
    """Return the families that `takes` accepts, with columns; product of the others."""
    if takes(family):
        return [(family, list(range(n_features)))], None
    if not isinstance(family, ProductFamily):
        return [], None
    right = [(part, own) for _, part, own in family.families if takes(part)]
    others = [part for part in family.families if not takes(part[1])]
    return right, family.of(others) if others else None


KINDS = (
    PoissonGroups,
    BinomialGroups,
    CorrelatedGroups,
    ShareGroups,
    CorrelatedColumns,
    DependentCategories,
)
TOGETHER = {PoissonGroups: ProportionalGroups}  # if columns rise and fall together


def warn_of_merged_groups(fit, X, weight, kinds=KINDS, of_stream=False, names=()):
    """Warn if fewer groups with broader columns are better; return whether they are.

    `kinds` are the subclasses of `Groups` that are tried; `of_stream` says whether the
    rows are the first of a stream; `names` are those of the columns, if there are any.
    """
    later = " These are the first rows of the stream. Later rows may show other groups."
    K, family = fit.n_components, fit.mixture.family
    warnings = []
    for kind in kinds:
        parts, others = parts_and_others(family, X.shape[1], kind.takes)
        if K < 2 or not parts or not kind.suits(parts):
            continue
        rows, w = scaled_part(X, weight, 1, 0, most=kind.most_rows(parts))
        numbers = rows[:, [column for _, own in parts for column in own]]
        if not kind.can_read(numbers):
            continue
        shares, _ = shares_and_losses(fit.mixture, fit.state, rows, w)
        if others is not None:
            others = OtherColumns(others, rows, fit.mixture.inverse_temperature)
        tried = [kind]
        if kind in TOGETHER and numbers.shape[1] > 1:
            tried.append(TOGETHER[kind])
        tries = [each(numbers, w, parts, shares, others) for each in tried]
        found = [each.best_merge() for each in tries]
        groups, (best, gain) = max(
            zip(tries, found, strict=True), key=lambda pair: pair[1][1]
        )
        to_beat = DECISIVE
        if kind.instead:
            for other, _, own in warnings:
                right = isinstance(other, (CorrelatedGroups, ProportionalGroups))
                to_beat = max(to_beat, (FAR if right else CLEARLY) * own + DECISIVE)
        if gain > to_beat:
            warnings = [] if kind.instead else warnings
            groups.names = names
            warnings.append((groups, best, gain))
    for groups, best, gain in warnings:
        warn_user(groups.complaint(best, K, gain) + later * of_stream)
    return bool(warnings)
