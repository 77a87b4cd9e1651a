"""
==========================================================================
Select variables for two classes: SparseAdditiveGibbsClassifier and Ranker
==========================================================================

:class:`SparseAdditiveGibbsClassifier` averages additive logistic models over the sets
of variables, and over the roughness of their effects.
:class:`SparseAdditiveGibbsRanker` does the same for scores that rank one class above
the other. With ``loss="auc"`` its loss is one minus the area under the ROC curve.
"""

# %%
# Which of thirty measurements tell the kind of a tumour?
# -------------------------------------------------------
# The breast cancer data of scikit-learn; half of the rows are for learning. With
# ``beta=0.1`` each function has a larger penalty than with the default, 0.5. With 0.5
# more than half of the measurements are in most models, because the classes are nearly
# separable and many small effects predict best.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import RocCurveDisplay, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRanker,
)
from skpacbayes.plotting import PartialEffectsDisplay

tumours = load_breast_cancer()
X, X_test, y, y_test = train_test_split(
    tumours.data,
    tumours.target == 0,  # malignant
    test_size=0.5,
    random_state=0,
    stratify=tumours.target,
)
classifier = SparseAdditiveGibbsClassifier(beta=0.1, random_state=0)
lasso = make_pipeline(
    StandardScaler(),
    LogisticRegressionCV(
        l1_ratios=(1.0,),
        use_legacy_attributes=False,
        solver="liblinear",
        scoring="neg_log_loss",
    ),
)
methods = {
    "SparseAdditiveGibbsClassifier": classifier,
    "l1-logistic": lasso,
    "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
}
print(f"{'log loss and AUC on the other half':33} log loss    AUC")
for name, method in methods.items():
    probability = method.fit(X, y).predict_proba(X_test)[:, 1]
    loss, area = log_loss(y_test, probability), roc_auc_score(y_test, probability)
    print(f"   {name:30} {loss:8.3f} {area:6.3f}")

# %%
# The posterior has a probability for each measurement. Many measurements are nearly
# copies of one another, so few of the probabilities are near one.

n_lasso = np.count_nonzero(lasso[-1].coef_)
n_expected = classifier.inclusion_probabilities_.sum()
print(f"l1-logistic uses {n_lasso} of 30 measurements")
print(f"expected number in the posterior: {n_expected:.1f}")
order = np.argsort(-classifier.inclusion_probabilities_)
for j in order[:6]:
    probability = classifier.inclusion_probabilities_[j]
    print(f"   {tumours.feature_names[j]:24} {probability:.2f}")

# %%
# Their effects on the log odds, with bands of two posterior standard deviations.

display = PartialEffectsDisplay.from_estimator(
    classifier, X, features=order[:4].tolist()
)
for axes, j in zip(np.ravel(display.axes_), order, strict=False):
    axes.set_xlabel(tumours.feature_names[j])

# %%
# Gross errors and a small model: use the ranker
# ----------------------------------------------
# Two of twenty features are higher in positives. In one negative of twenty, the first
# of these is far too high: a gross error. The scores must be linear (``max_order=1``).
# The logistic loss of such a row grows with its distance, so the classifier adapts to
# these rows. The AUC counts each misordered pair once.

rng = np.random.default_rng(0)


def with_gross_errors(n_samples):
    y = rng.random(n_samples) < 0.5
    X = rng.normal(size=(n_samples, 20))
    X[y, :2] += 1
    wrong = (rng.random(n_samples) < 0.05) & ~y
    X[wrong, 0] = 8 + 0.5 * rng.normal(size=wrong.sum())
    return X, y


X, y = with_gross_errors(300)
X_test, y_test = with_gross_errors(5000)
figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
for model in (
    SparseAdditiveGibbsClassifier(max_order=1, random_state=0),
    SparseAdditiveGibbsRanker("auc", max_order=1, random_state=0),
):
    model.fit(X, y)
    first, second = model.coefficients_[:2, 0]
    print(
        f"{type(model).__name__:30} weights of the two features: "
        f"{first / second:.2f} to 1"
    )
    RocCurveDisplay.from_estimator(model, X_test, y_test, ax=axes)
axes.set_title("5000 new rows, with gross errors")

# %%
# Without the restriction to linear scores, the classifier learns that very high values
# are negative, and ranks as well as the ranker. Use the ranker if the model is too
# small for the data.

both = {
    "classifier": SparseAdditiveGibbsClassifier(n_iter=150, random_state=0),
    "ranker": SparseAdditiveGibbsRanker("auc", n_iter=300, random_state=0),
}
for name, model in both.items():
    area = roc_auc_score(y_test, model.fit(X, y).decision_function(X_test))
    print(f"{name}, eight functions of each feature: AUC {area:.3f}")
plt.show()
