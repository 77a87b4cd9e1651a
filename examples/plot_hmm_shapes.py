"""
===================================================================
Hidden states whose emissions are not Gaussian: DirichletProcessHMM
===================================================================

A chain moves between three states. An observation is the location of the state plus
noise. The first kind of noise has two modes, and the second mode lies where the next
state has its first mode. The second kind has tails so heavy that its variance is
infinite. With Gaussian emissions, the states of a hidden Markov model describe the
noise instead. :class:`~skpacbayes.hmm.DirichletProcessHMM` learns the shape of the
noise together with the states.
"""

# %%
# Two kinds of noise, two models
# ------------------------------
# With one atom for each state the emissions are Gaussian. The other model is a
# Dirichlet process mixture of up to ten atoms. Its shape is common to all states, and
# each state has a location of its own. This is true here; the default,
# ``emission="auto"``, would mostly choose the same.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm, t
from sklearn.metrics import confusion_matrix

from skpacbayes import (
    DirichletProcessHMM,
    EmissionsDisplay,
    RegimesDisplay,
    make_hidden_markov,
)

noises = {
    "bimodal": lambda x: 0.7 * norm(-0.6, 0.4).pdf(x) + 0.3 * norm(1.4, 0.6).pdf(x),
    "heavy-tailed": t(2, scale=0.6).pdf,
}
models = {
    "Gaussian emissions": {"emission": "per_state", "n_atoms": 1},
    "shape learnt": {"emission": "translated"},
}
transitions = np.full((3, 3), 0.05) + 0.85 * np.eye(3)


def compare(model, X, states):
    """Share of right states, largest error of a transition, name of each state."""
    counts = confusion_matrix(states, model.predict(X))
    rows, names = linear_sum_assignment(-counts)
    error = np.abs(model.transmat_[np.ix_(names, names)] - transitions).max()
    return counts[rows, names].sum() / len(X), error, names


fits = {}
print(
    "                                    right states   largest error of a transition"
)
for shape in noises:
    X, states = make_hidden_markov(shape, random_state=0)
    for name, options in models.items():
        model = DirichletProcessHMM(3, random_state=0, **options).fit(X)
        right, error, names = compare(model, X, states)
        fits[shape, name] = model, X, right, names
        print(f"{shape:14} {name:20} {right:12.1%} {error:22.3f}")

# %%
# With heavy tails the Gaussian model loses less here than it could. Chains start from a
# k-means that is robust to outliers, and the posterior of a spread is more stable than
# its maximum likelihood estimate.
#
# What emissions look like, by each model
# ---------------------------------------
# In colour: the posterior mean of the density of each state, with a band of 90 %.
# Black: the true densities.

grid = np.linspace(-3.5, 8, 300)
figure, axes = plt.subplots(2, 2, figsize=(11, 6), sharex=True, layout="constrained")
for column, shape in zip(axes.T, noises, strict=True):
    truth = np.transpose([noises[shape](grid - place) for place in (0, 2, 4)])
    for axis, name in zip(column, models, strict=True):
        model, X, right, names = fits[shape, name]
        EmissionsDisplay.from_estimator(
            model,
            X,
            states=names,
            names=["left", "middle", "right"],
            grid=grid,
            ax=axis,
        )
        axis.plot(grid, truth, color="black", lw=0.8, label=["truth", None, None])
        axis.legend()
        axis.set_ylim(0, 1.05 * max(truth.max(), axis.get_ylim()[1]))
        axis.set(title=f"{shape} noise, {name}: {right:.0%} right", xlabel="")
for axis in axes[1]:
    axis.set_xlabel("observation")

# %%
# A part of the sequence
# ----------------------
# The shades are the probabilities of the states, given the whole sequence. The Gaussian
# model takes the second mode of a state for the neighbouring state.

X, states = make_hidden_markov("bimodal", random_state=0)
steps = np.arange(200, 400)
found = {"the true states": np.eye(3)[states]}
for name in models:
    model, _, _, names = fits["bimodal", name]
    found[name] = model.predict_proba(X)[:, names]
figure, axes = plt.subplots(3, 1, figsize=(11, 6), sharex=True, layout="constrained")
for axis, (name, probabilities) in zip(axes, found.items(), strict=True):
    values = X[steps, 0]
    RegimesDisplay(values, probabilities[steps], times=steps).plot(ax=axis)
    axis.set(title=name, xlabel="", ylabel="observation")
    axis.get_legend().remove()
axes[2].set_xlabel("step")
plt.show()
