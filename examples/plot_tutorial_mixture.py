"""
Tutorial: the density of a table with missing values, by TemperedVBGaussianMixture
==================================================================================

Measurements of 569 tumours, which ship with scikit-learn; the columns are the means of
ten features of the nuclei of their cells. The steps of this page: fit a density, see
how the number of components was chosen, compare with scikit-learn on new rows, use rows
with missing values, predict one column from the others, and find unusual rows.
"""

# %%
# Fit
# ---
# ``n_components="auto"`` takes the number with the largest evidence bound. Columns need
# no scaling. Half of the rows are kept for the comparison below.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from skpacbayes import ChoiceDisplay, EllipsesDisplay, TemperedVBGaussianMixture

tumours = load_breast_cancer(as_frame=True)
columns = ["mean radius", "mean texture", "mean smoothness", "mean concavity"]
X, X_new, kind, kind_new = train_test_split(
    tumours.data[columns], tumours.target, test_size=0.5, random_state=0
)
mixture = TemperedVBGaussianMixture("auto", max_components=8, random_state=0).fit(X)
print(f"{mixture.n_components_} components, with weights {mixture.weights_.round(2)}")

# %%
# How was the number chosen?
# --------------------------
# Left: the bound for each number. If two numbers are within a few nats, `fit` warns
# that another seed may choose the other number. It also warns that the groups seem
# skewed: normal components cut them in parts, and two groups may be enough. Right: the
# components, over the rows in the colour of their most probable component.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ChoiceDisplay.from_estimator(mixture, ax=left)
EllipsesDisplay.from_estimator(mixture, X, features=(0, 3), ax=right)
left.set_title("evidence of each number")
right.set_title("components, in two of four columns")
plt.show()

# %%
# Is it a good density?
# ---------------------
# The mean log density of new rows, in nats, and that of scikit-learn's mixture with the
# number of components chosen by BIC.

candidates = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 9)]
by_bic = min(candidates, key=lambda candidate: candidate.bic(X))
print(f"this mixture:            {mixture.score(X_new):.3f}")
print(f"GaussianMixture and BIC: {by_bic.score(X_new):.3f}, {by_bic.n_components} used")

# %%
# Rows with missing values
# ------------------------
# A tenth of the values is removed. Nothing is imputed: missing values are integrated
# out. The density of complete new rows is nearly the same.

rng = np.random.default_rng(0)
holes = X.mask(rng.random(X.shape) < 0.1)
from_holes = TemperedVBGaussianMixture(mixture.n_components_, random_state=0).fit(holes)
print(f"complete rows: {holes.notna().all(axis=1).mean():.0%}")
print(f"fitted to the rows with holes: {from_holes.score(X_new):.3f}")

# %%
# One column from the others
# --------------------------
# `conditional` gives the mean and the standard deviation of missing values, given the
# other values of the row. Here the concavity of new tumours is missing.

hidden = X_new.copy()
hidden["mean concavity"] = np.nan
found = from_holes.conditional(hidden)
truth = X_new["mean concavity"].to_numpy()
error = truth - found.mean[:, 3]
explained = 1 - error.var() / truth.var()
covered = np.mean(np.abs(error) < 2 * found.std[:, 3])
print(f"explained variance {explained:.2f}; within two deviations: {covered:.0%}")

# %%
# Unusual rows, and the two kinds of tumours
# ------------------------------------------
# The rows with the lowest density, and how the components relate to the diagnosis,
# which the mixture does not know.

strangest = X_new.iloc[np.argsort(mixture.score_samples(X_new))[:3]]
print(strangest.round(2).to_string())
labels = mixture.predict(X_new)
for component in range(mixture.n_components_):
    malignant = kind_new[labels == component] == 0
    share = malignant.mean()
    print(f"component {component}: {share:.0%} of {len(malignant)} rows malignant")

# %%
# What next
# ---------
# Counts, categories and heavy tails: :ref:`mixed columns
# <sphx_glr_auto_examples_plot_mixture_families.py>`. Rows that come one by one: `fit`
# becomes `partial_fit`. Skewed groups that should stay whole: a smaller
# `inverse_temperature`, see :ref:`this example
# <sphx_glr_auto_examples_plot_mixture_choose.py>`. All options: :ref:`mixture`.
