"""
An epidemic in a boarding school: parameters of a simulator with ABCPosteriorKDE
================================================================================

In January 1978 influenza spread in a boarding school of 763 boys in the north of
England. For fourteen days the number of boys in bed was noted [1]_. A stochastic
epidemic takes a few lines to simulate. Its likelihood is a sum over everything that was
not noted, and cannot be written down. Approximate Bayesian computation only needs the
simulator.

.. [1] "Influenza in a boarding school", British Medical Journal 1978, 1, 587.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpacbayes.likelihood_free import ABCPosteriorKDE, PosteriorDisplay, simulate

IN_BED = [3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4]
BOYS, STEPS = 763, 4  # steps a day
NAMES = ["infections a boy a day", "days infectious", "days in bed"]

# %%
# A boy is susceptible, then infectious, then in bed, then back in class. At each step
# he moves on with a probability given by a rate. A boy in bed infects nobody. The prior
# allows each state to last from half an hour to a week and a half.

BOUNDS = np.array([[0.5, 8.0], [0.2, 4.0], [0.5, 5.0]])


def prior(n, rng):
    """Uniform between the bounds."""
    return rng.uniform(*BOUNDS.T, size=(n, 3))


def epidemic(theta, rng):
    """Numbers in bed at the end of each day, of as many epidemics as rows."""
    infections, infectious_days, bed_days = theta.T
    leave = 1 - np.exp(-1 / (STEPS * np.array([infectious_days, bed_days])))
    ill, bed = np.full(len(theta), 1), np.zeros(len(theta), dtype=int)
    susceptible = BOYS - ill
    days = []
    for step in range(STEPS * len(IN_BED)):
        risk = 1 - np.exp(-infections * ill / (STEPS * BOYS))
        falling = rng.binomial(susceptible, risk)
        to_bed, recover = rng.binomial(ill, leave[0]), rng.binomial(bed, leave[1])
        susceptible = susceptible - falling
        ill, bed = ill + falling - to_bed, bed + to_bed - recover
        if step % STEPS == STEPS - 1:
            days.append(bed)
    return np.sqrt(np.column_stack(days))  # roots, whose noise is alike on all days


# %%
# A table of 50,000 epidemics. Which distance between epidemics is best? The log density
# of held-out pairs of the table decides: here, days compared one by one are better than
# three linear predictions of the parameters. The table has the bounds of the prior, and
# the posterior stays within them.

table = simulate(prior, epidemic, 50_000, bounds=BOUNDS, random_state=0)
posteriors = {
    metric: ABCPosteriorKDE(metric=metric, random_state=0).fit(table)
    for metric in ("mad", "regression")
}
for metric, posterior in posteriors.items():
    print(f"metric={metric!r}: held-out log-density {posterior.loo_score():.2f}")
posterior = posteriors["mad"]
observed = np.sqrt([IN_BED])

print(
    f"{posterior.n_neighbors_} of {posterior.n_simulations_:,} epidemics are accepted"
)
low, middle, high = posterior.predict_quantiles(observed, [0.05, 0.5, 0.95])[0]
for name, *values in zip(NAMES, low, middle, high, strict=True):
    print("{:24}{:5.2f} ({:.2f} to {:.2f})".format(name, values[1], *values[::2]))
display = PosteriorDisplay.from_estimator(posterior, observed, names=NAMES)
plt.show()

# %%
# Epidemics with parameters drawn from that posterior, and the observed one:

draws = posterior.sample(observed, 200)[0]
replicates = epidemic(draws, np.random.default_rng(1)) ** 2
days = np.arange(1, 15)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(days, replicates.T, color="tab:blue", alpha=0.08)
axes.plot(days, IN_BED, "ko-", label="seen")
axes.set(xlabel="day", ylabel="boys in bed", title="Drawn from the posterior")
axes.legend()
plt.show()

# %%
# **A decision.** How many beds must a school of this size keep, so that they suffice in
# 19 of 20 such epidemics? The posterior is that of one epidemic, so the answer is for a
# school whose boys meet as often as these did.

most = replicates.max(axis=1)
print(f"beds for 95 % of such epidemics: {np.quantile(most, 0.95):.0f}")
print(f"most boys in bed at a time: {max(IN_BED)}")

# %%
# Are the intervals right? Draw new parameters from the prior, and simulate an epidemic
# with each. The 90 % interval must contain nine in ten of the parameters, and the ranks
# of the parameters in the posterior must be uniform (simulation-based calibration).

X_new, y_new, _ = simulate(prior, epidemic, 500, random_state=1)
edges = posterior.predict_quantiles(X_new, np.linspace(0.05, 0.95, 10))
inside = (edges[:, 0] < y_new) & (y_new < edges[:, -1])
error = np.sqrt(0.9 * 0.1 / len(y_new))
for name, share in zip(NAMES, inside.mean(axis=0), strict=True):
    print(f"{name:24}{share:.1%} within 90 %, {(share - 0.9) / error:+.1f} s.e.")

ranks = (edges < y_new[:, None]).sum(axis=1)
figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained", sharey=True)
expected = len(y_new) * np.r_[0.05, np.full(9, 0.1), 0.05]
for axes, name, column in zip(panels, NAMES, ranks.T, strict=True):
    axes.bar(range(11), np.bincount(column, minlength=11), alpha=0.6)
    axes.step(range(11), expected, "k--", where="mid", label="expected")
    axes.set(title=name, xlabel="interval of the posterior")
panels[0].set_ylabel("truths")
panels[0].legend()
plt.show()

# %%
# The intervals cover as they should. The ranks of the days in bed are not quite
# uniform: there are too many low ranks, so this posterior is a little too high.
