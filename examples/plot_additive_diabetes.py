"""
Which measurements tell how diabetes progresses? SparseAdditiveGibbsRegressor
=============================================================================

Ten measurements of 442 patients, and what became of them a year later. An additive
model says which measurements matter and the shape of their effects; a hundred columns
of noise, which are permuted copies of the measurements, show whether it is to be
believed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skpacbayes.additive import PartialEffectsDisplay, SparseAdditiveGibbsRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
rng = np.random.default_rng(0)
permuted = [rng.permutation(X[name]) for _ in range(10) for name in X]
noise = pd.DataFrame(dict(enumerate(permuted))).add_prefix("noise ")
wide = pd.concat([X, noise], axis=1)

model = SparseAdditiveGibbsRegressor(random_state=0).fit(wide, y)
for name, probability, order in sorted(
    zip(
        wide.columns,
        model.inclusion_probabilities_,
        model.expected_orders_,
        strict=True,
    ),
    key=lambda row: -row[1],
)[:8]:
    print(f"{name:9} in with probability {probability:.2f}, {order:.1f} functions")
print(f"R-hat {model.r_hat_:.3f}")

# %%
# The effects of those that are in with a probability of a tenth or more, with bands of
# two standard deviations: a variable that is out most of the time has an effect near
# zero, and a band around it.

likely = list(wide.columns[model.get_support(threshold=0.1)])
PartialEffectsDisplay.from_estimator(model, wide, features=likely)
plt.show()

# %%
# Does it predict? Errors by five folds, in units of the variance of the outcome:
# without the noise, and with it. The effects are nearly straight lines, so that a
# linear model does as well; what is gained is to know which measurements matter.

rivals = {
    "additive Gibbs posterior": SparseAdditiveGibbsRegressor(random_state=0),
    "LassoCV, linear": make_pipeline(StandardScaler(), LassoCV()),
    "LassoCV, quadratic": make_pipeline(
        PolynomialFeatures(2, include_bias=False), StandardScaler(), LassoCV(tol=1e-2)
    ),
}
for name, rival in rivals.items():
    errors = []
    for table in (X, wide):
        if "quadratic" in name and table is wide:
            continue
        predicted = cross_val_predict(rival, table, y, cv=5)
        errors.append(f"{np.mean((y - predicted) ** 2) / y.var():.3f}")
    print(f"{name:25}", *errors)
