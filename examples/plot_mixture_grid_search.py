"""
The inverse temperature of TemperedVBGaussianMixture by cross-validation
========================================================================

``score`` is the log posterior-predictive density of held-out rows, so ``GridSearchCV``
can choose any parameter. For the inverse temperature it chooses values near one: the
whole likelihood gives the best density of new rows, also if the components have the
wrong shape. Choose a smaller value for fewer components, or for the risk bound.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture

warnings.simplefilter("ignore")  # each fold says how unsure its number is
grid = [0.1, 0.3, 1.0]
figure, ax = plt.subplots(layout="constrained")
for shape, style in {"gaussian": "o-", "skewed": "s--", "heavy-tailed": "^:"}.items():
    X, _ = make_mixture(shape, 600, n_components=3, random_state=0)
    pipeline = make_pipeline(
        StandardScaler(),
        TemperedVBGaussianMixture("auto", max_components=6, n_init=1, random_state=0),
    )
    name = "temperedvbgaussianmixture__inverse_temperature"
    search = GridSearchCV(pipeline, {name: grid}, cv=3).fit(X)
    found = search.best_estimator_[-1].n_components_
    print(f"{shape}: {search.best_params_[name]}, {found} components for 3 groups")
    scores = search.cv_results_["mean_test_score"]
    ax.semilogx(grid, scores - scores[-1], style, label=shape)
ax.set(
    xlabel="inverse temperature",
    ylabel="held-out log-density, nats a row,\nfrom that of inverse temperature 1",
    title="the whole likelihood predicts best",
)
ax.legend()
plt.show()
