"""
Tutorial: which measurements tell how diabetes progresses? SparseAdditiveGibbsRegressor
=======================================================================================

Ten measurements of 442 patients, and the progression of their disease after a year; the
table ships with scikit-learn. An additive model finds which measurements matter, and
the shapes of their effects. A hundred columns of noise show whether the selection can
be trusted. The steps of this page: select, see how sure the selection is, draw the
effects, predict with an interval, and compare.
"""

# %%
# Select
# ------
# The hundred columns of noise are permuted copies of the measurements: each has the
# distribution of a measurement, and nothing to do with the outcome.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import PartialEffectsDisplay, SparseAdditiveGibbsRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
rng = np.random.default_rng(0)
permuted = [rng.permutation(X[name]) for _ in range(10) for name in X]
noise = pd.DataFrame(dict(enumerate(permuted))).add_prefix("noise ")
wide = pd.concat([X, noise], axis=1)

model = SparseAdditiveGibbsRegressor(random_state=0).fit(wide, y)
print("selected:", *wide.columns[model.get_support()])

# %%
# How sure is the selection?
# --------------------------
# Each variable has a probability to be in the model. "error" is its Monte Carlo error:
# another seed would change the probability by about as much. An R-hat near 1 says that
# the chains agree.

print(model.inclusion_frame().head(8).round(2).to_string())
print(f"R-hat {model.r_hat_:.3f}")

# %%
# What are the effects?
# ---------------------
# The effects of the variables with a probability of 0.1 or more, with bands of two
# standard deviations. A variable with a small probability has an effect near zero.

likely = list(wide.columns[model.get_support(threshold=0.1)])
PartialEffectsDisplay.from_estimator(model, wide, features=likely)
plt.show()

# %%
# Predict, with an interval
# -------------------------
# Fit to three quarters of the patients, and predict the others. 90 % of the outcomes
# should lie within 1.64 standard deviations of their predictions.

train, test = slice(None, 331), slice(331, None)
order = rng.permutation(len(y))
rows, outcomes = wide.iloc[order], y.iloc[order]
learnt = SparseAdditiveGibbsRegressor(random_state=0).fit(rows[train], outcomes[train])
mean, std = learnt.predict(rows[test], return_std=True)
inside = np.abs(outcomes[test] - mean) < 1.64 * std
print(f"{inside.mean():.0%} of {len(inside)} new patients within 90 %")

# %%
# Compare
# -------
# Errors by five folds, in units of the variance of the outcome, without and with the
# columns of noise. On fewer rows `fit` warns that the selection is unsure. The effects
# are nearly straight lines, so a linear model predicts as well. The additive model also
# says which measurements matter.

rivals = {
    "additive Gibbs posterior": SparseAdditiveGibbsRegressor(random_state=0),
    "LassoCV": make_pipeline(StandardScaler(), LassoCV()),
}
for name, rival in rivals.items():
    errors = []
    for table in (X, wide):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # folds say how unsure the selection is
            predicted = cross_val_predict(rival, table, y, cv=5)
        errors.append(f"{np.mean((y - predicted) ** 2) / y.var():.3f}")
    print(f"{name:25}", *errors)

# %%
# What next
# ---------
# Two variables that act jointly: see `interactions`. Two classes:
# :ref:`sphx_glr_auto_examples_plot_additive_classes.py`. Columns of categories:
# `categorical_features`. Fewer variables: a smaller `beta`. All options:
# :ref:`additive`.
