"""The additive classifier against linear logistic regression, on tables of two classes.

Log loss and AUC in five folds, of the defaults, against l1- and l2-penalised logistic
regression, linear, whose penalties are cross-validated, and against boosted trees with
their defaults. If they are installed, three more are compared: an explainable boosting
machine (EBM, of the library `interpret`) with its defaults, which boosts effects of
single variables and of pairs; linear logistic regression with the minimax concave
penalty (MCP, of `skglm`), cross-validated, too; and splines of each variable (pyGAM),
whose one penalty is found by its own search, on tables of at most 20 variables.

The prior of the classifier was chosen on the first two tables; the others confirm. The
share that `projected_support` explains was chosen on the first; the second row of a
table is the classifier fitted again to the variables that it names.
"""

import warnings
from pathlib import Path

import numpy as np
from _harness import Report, arguments, cpu_seconds
from scipy.special import expit
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsClassifier

try:
    from interpret.glassbox import ExplainableBoostingClassifier
except ImportError:
    ExplainableBoostingClassifier = None
try:
    import pygam
except ImportError:
    pygam = None
try:
    import skglm
except ImportError:
    skglm = None

MOST_OF_SPLINES = 20  # variables for which pyGAM does not take half a minute
DATA = Path(__file__).parents[2] / "shared" / "data"


def pima():
    table = np.loadtxt(DATA / "pima.csv.gz", delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1] > 0


def digits():
    """Threes and eights."""
    X, y = datasets.load_digits(return_X_y=True)
    some = (y == 3) | (y == 8)
    return X[some], y[some] == 3


def diabetes():
    X, y = datasets.load_diabetes(return_X_y=True)
    return X, y > np.median(y)


def wine():
    X, y = datasets.load_wine(return_X_y=True)
    return X, y == 1


def california():
    """600 districts: above the median value, or not."""
    X, y = datasets.fetch_california_housing(
        return_X_y=True, data_home=DATA / "sklearn_data_home"
    )
    some = np.random.default_rng(0).permutation(len(y))[:600]
    return X[some], y[some] > np.median(y[some])


TABLES = {
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "Pima": pima,
    "digits 3 and 8": digits,
    "diabetes": diabetes,
    "wine": wine,
    "California": california,
}


def linear(l1_ratio):
    logistic = LogisticRegressionCV(
        l1_ratios=(l1_ratio,),
        use_legacy_attributes=False,
        solver="liblinear",
        Cs=10,
        cv=5,
        scoring="neg_log_loss",
    )
    return make_pipeline(StandardScaler(), logistic)


class OnFew:
    """The classifier, fitted again to the variables of its `projected_support`.

    The first fit has no interactions, of which there is no projection.
    """

    def fit(self, X, y):
        """Fit twice."""
        whole = SparseAdditiveGibbsClassifier(random_state=0, interactions=None)
        whole.fit(X, y)
        self.support = whole.projected_support(X)
        self.model = SparseAdditiveGibbsClassifier(random_state=0)
        self.model.fit(X[:, self.support], y)
        return self

    def predict_proba(self, X):
        """Predict by the second fit."""
        return self.model.predict_proba(X[:, self.support])

    def get_support(self):
        """Return the mask of the variables."""
        return self.support


class Concave:
    """Logistic regression with MCP on standardized columns; its strength by folds."""

    def fit(self, X, y):
        """Compare ten strengths, the largest of which keeps no variable."""
        largest = np.abs(StandardScaler().fit_transform(X).T @ (y - y.mean())).max()
        strengths = np.geomspace(1, 1e-2, 10) * largest / len(y)
        folds = list(StratifiedKFold(5).split(X, y))
        losses = [
            np.mean(
                [
                    log_loss(y[test], self._fit_one(X[train], y[train], a)(X[test]))
                    for train, test in folds
                ]
            )
            for a in strengths
        ]
        self.predicted = self._fit_one(X, y, strengths[np.argmin(losses)])
        return self

    def _fit_one(self, X, y, strength):
        """Return the function that gives probabilities."""
        scaler = StandardScaler().fit(X)
        model = skglm.GeneralizedLinearEstimator(
            skglm.datafits.Logistic(),
            skglm.penalties.MCPenalty(strength, gamma=3),
            skglm.solvers.AndersonCD(fit_intercept=True),
        ).fit(np.asfortranarray(scaler.transform(X)), y)
        coefficients = model.coef_[0]
        self.support = coefficients != 0
        return lambda X: expit(scaler.transform(X) @ coefficients + model.intercept_)

    def predict_proba(self, X):
        """Predict probabilities of the two classes."""
        positive = self.predicted(X)
        return np.column_stack([1 - positive, positive])

    def get_support(self):
        """Return the mask of the variables."""
        return self.support


class SplinesGAM:
    """LogisticGAM, one penalty by its own search."""

    def fit(self, X, y):
        """Search for the penalty among eleven."""
        self.varies_ = np.ptp(X, axis=0) > 0
        self.model_ = pygam.LogisticGAM().gridsearch(
            X[:, self.varies_], y, lam=np.logspace(-3, 3, 11), progress=False
        )
        return self

    def predict_proba(self, X):
        """Predict probabilities of the two classes."""
        positive = self.model_.predict_proba(X[:, self.varies_])
        return np.column_stack([1 - positive, positive])


METHODS = {
    "SparseAdditiveGibbsClassifier": lambda: SparseAdditiveGibbsClassifier(
        random_state=0
    ),
    "same, on projected_support": OnFew,
    "l1-logistic, linear": lambda: linear(1.0),
    "l2-logistic, linear": lambda: linear(0.0),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
}
if skglm is not None:
    METHODS["MCP-logistic, linear"] = Concave
if ExplainableBoostingClassifier is not None:
    METHODS["EBM"] = lambda: ExplainableBoostingClassifier(random_state=0, n_jobs=1)
if pygam is not None:
    METHODS["pyGAM"] = SplinesGAM


def methods(n_features):
    """Return the methods that can take so many variables."""
    few = n_features <= MOST_OF_SPLINES
    return {name: make for name, make in METHODS.items() if few or name != "pyGAM"}


def study(X, y, make, n_folds):
    """Log losses, AUCs, CPU seconds and numbers of variables of the folds."""
    found = []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for train, test in folds.split(X, y):
        model = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = cpu_seconds(lambda: model.fit(X[train], y[train]))  # noqa: B023
        probability = model.predict_proba(X[test])[:, 1]
        loss = log_loss(y[test], probability)
        if hasattr(model, "get_support"):
            n_variables = model.get_support().sum()
        elif not hasattr(model, "steps"):  # boosting uses all of them
            n_variables = X.shape[1]
        else:
            n_variables = np.count_nonzero(model[-1].coef_)
        area = roc_auc_score(y[test], probability)
        found.append([loss, area, seconds, n_variables])
    return np.array(found, dtype=float).T.tolist()


def compared(report, name, X, y, methods):
    """Run methods on a table; return the cells of a row for each.

    Table, method, log loss, its difference from that of the first method, AUC,
    variables selected, CPU seconds of a fit.
    """
    n_folds, rows, first = 2 if report.quick else 5, [], None
    for method, make in methods.items():
        found = report.stage(
            f"{name}, {method}",
            lambda: study(X, y, make, n_folds),  # noqa: B023
        )
        losses, areas, seconds, numbers = np.array(found)
        first = losses if first is None else first
        difference = losses - first
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        rows.append(
            [
                name,
                method,
                f"{losses.mean():.4f}",
                f"{difference.mean():+.4f} ± {error:.4f}",
                f"{areas.mean():.4f}",
                f"{numbers.mean():.1f}",
                f"{np.median(seconds):.1f}",
            ]
        )
        print(" | ".join(rows[-1]), flush=True)
    return rows


def main():
    options = arguments(__doc__)
    report = Report("additive_tables", quick=options.quick)
    tables = {"wine": wine} if options.quick else TABLES
    study(*wine(), METHODS["SparseAdditiveGibbsClassifier"], 2)  # compiles
    rows = []
    for name, load in tables.items():
        X, y = load()
        rows += compared(report, name, X, y, methods(X.shape[1]))
    report.table(
        "Log loss in five folds, its difference from the additive classifier's with "
        "the standard error over folds, AUC, variables selected, CPU seconds of a fit",
        ["table", "method", "log loss", "less ours", "AUC", "variables", "CPU s"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
