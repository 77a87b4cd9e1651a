"""Sparse additive classification and ranking, against l1-logistic and boosting.

1. Four of fifty variables: excess Kullback-Leibler divergence and variables selected,
   and the AUC of the rankings, against l1-penalised logistic regression, its penalty
   cross-validated, on the same functions of each variable, and gradient boosting
   without interactions.
2. Linear scores and gross errors: one negative row in twenty has a feature far on the
   positive side. The likelihood adapts to such rows, the AUC does not.
3. Breast cancer (scikit-learn's): log loss and AUC in five folds.
4. One move of the chains, and a fit, in CPU time.
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRanker,
)

N_FEATURES = 50
SLOPE = 0.65  # the best AUC is then about .83


def log_odds(X):
    first = -np.sin(2 * X[:, 0]) + X[:, 1] ** 3 + X[:, 2]
    return 2 * SLOPE * (first + np.exp(-X[:, 3]) - np.e / 2)


def four_of_fifty(n_samples, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_samples, N_FEATURES))
    return X, rng.random(n_samples) < expit(log_odds(X))


def gross_errors(n_samples, seed, share=0.05):
    """Draw features, two of them larger in positives, and far off in few negatives."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_samples) < 0.5
    X = rng.normal(size=(n_samples, 20))
    X[y, :2] += 1
    wrong = (rng.random(n_samples) < share) & ~y
    X[wrong, 0] = 8 + 0.5 * rng.normal(size=wrong.sum())
    return X, y


def legendre(X, low, high):
    """Legendre polynomials of degree 1 to 8, in each variable's range."""
    t = np.clip(2 * (X - low) / (high - low) - 1, -1, 1)
    return np.polynomial.legendre.legvander(t, 8)[..., 1:].reshape(len(X), -1)


def l1_logistic():
    return LogisticRegressionCV(
        l1_ratios=(1.0,),
        use_legacy_attributes=False,
        solver="liblinear",
        Cs=10,
        cv=5,
        scoring="neg_log_loss",
    )


def l1_on_functions(X):
    """Chain the same functions, standardised, and l1-penalised logistic regression."""
    functions = FunctionTransformer(
        legendre, kw_args={"low": X.min(axis=0), "high": X.max(axis=0)}
    )
    return make_pipeline(functions, StandardScaler(), l1_logistic())


def boosting():
    return HistGradientBoostingClassifier(
        interaction_cst="no_interactions", early_stopping=True, random_state=0
    )


def fitted(model, X, y):
    """Return the model, fitted, and the CPU seconds this took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return model, cpu_seconds(lambda: model.fit(X, y))


def scores_of(model, X):
    return model.decision_function(X)


def expected_auc(scores, probability):
    """AUC over both labels of each row, weighted by how probable they are."""
    labels = np.repeat([True, False], len(scores))
    weights = np.append(probability, 1 - probability)
    return roc_auc_score(labels, np.tile(scores, 2), sample_weight=weights)


def four_variables(report, n, seeds):
    kl_rows, auc_rows = [], []
    kl, auc, found, seconds = {}, {}, {}, {}
    for seed in seeds:
        X, y = four_of_fifty(n, seed)
        X_new, _ = four_of_fifty(20_000, 10_000 + seed)
        truth = log_odds(X_new)
        models = {
            "SparseAdditiveGibbsClassifier": SparseAdditiveGibbsClassifier(
                random_state=seed
            ),
            "l1-logistic, same functions": l1_on_functions(X),
            "HistGradientBoosting, additive": boosting(),
            'Ranker, "auc"': SparseAdditiveGibbsRanker("auc", random_state=seed),
            'Ranker, "pairwise_logistic"': SparseAdditiveGibbsRanker(
                "pairwise_logistic", random_state=seed
            ),
        }
        for name, model in models.items():
            model, spent = fitted(model, X, y)
            seconds.setdefault(name, []).append(spent)
            area = expected_auc(scores_of(model, X_new), expit(truth))
            auc.setdefault(name, []).append(area)
            if "Ranker" not in name:
                scores = scores_of(model, X_new)
                excess = np.logaddexp(0, scores) - np.logaddexp(0, truth)
                excess -= expit(truth) * (scores - truth)
                kl.setdefault(name, []).append(excess.mean())
            if "l1" in name:
                coef = model[-1].coef_.reshape(N_FEATURES, 8)
                support = np.flatnonzero(coef.any(axis=1))
            elif "Hist" in name:
                continue
            else:
                support = model.get_support(indices=True)
            true = int((support < 4).sum())
            found.setdefault(name, []).append((true, len(support) - true))
        auc.setdefault("the truth", []).append(expected_auc(truth, expit(truth)))
    for name, values in kl.items():
        kl_rows.append([name, *row_of(values, found.get(name), seconds[name])])
    reference = np.array(auc["SparseAdditiveGibbsClassifier"])
    for name, values in auc.items():
        difference = np.array(values) - reference
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        auc_rows.append(
            [
                name,
                f"{np.mean(values):.4f}",
                f"{difference.mean():+.4f} ± {error:.4f}",
                variables(found.get(name)),
                f"{np.median(seconds[name]):.1f}" if name in seconds else "",
            ]
        )
    report.table(
        f"Four of {N_FEATURES} variables, {n} rows: excess Kullback-Leibler divergence "
        f"to the true probabilities, mean (least to largest) over {len(seeds)} samples",
        ["method", "excess", "true, false variables of each", "CPU s"],
        kl_rows,
    )
    report.table(
        f"The same samples of {n} rows: AUC on 20,000 new rows, labels averaged out, "
        "and difference from the classifier (mean, standard error)",
        ["method", "AUC", "less classifier's", "true, false", "CPU s"],
        auc_rows,
    )


def variables(found):
    return " ".join(f"{t},{f}" for t, f in found) if found else ""


def row_of(values, found, seconds):
    return [
        f"{np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})",
        variables(found),
        f"{np.median(seconds):.1f}",
    ]


def prior_of_models(report, seeds):
    """Compare the classifier's default beta, where its prior is flat, with 1/3."""
    rows = []
    for n in (300, 600):
        for name, beta in (("1/2, the default", 0.5), ("1/3", 1 / 3)):
            excess, found = [], []
            for seed in seeds:
                X, y = four_of_fifty(n, seed)
                X_new, _ = four_of_fifty(20_000, 10_000 + seed)
                truth = log_odds(X_new)
                model = SparseAdditiveGibbsClassifier(beta=beta, random_state=seed)
                scores = scores_of(fitted(model, X, y)[0], X_new)
                loss = np.logaddexp(0, scores) - np.logaddexp(0, truth)
                excess.append((loss - expit(truth) * (scores - truth)).mean())
                support = model.get_support(indices=True)
                true = int((support < 4).sum())
                found.append((true, len(support) - true))
            low, high = min(excess), max(excess)
            mean = f"{np.mean(excess):.4f} ({low:.4f} to {high:.4f})"
            rows.append([n, name, mean, variables(found)])
    report.table(
        f"The classifier's beta: excess Kullback-Leibler divergence, {len(seeds)} "
        "samples",
        ["rows", "beta", "excess", "true, false variables of each"],
        rows,
    )


def linear_scores(report, seeds):
    auc = {}
    for seed in seeds:
        X, y = gross_errors(300, seed)
        X_new, y_new = gross_errors(20_000, 10_000 + seed)
        models = {
            "l1-logistic": make_pipeline(StandardScaler(), l1_logistic()),
            "Classifier, max_order=1": SparseAdditiveGibbsClassifier(
                max_order=1, random_state=seed
            ),
            'Ranker, "pairwise_logistic", max_order=1': SparseAdditiveGibbsRanker(
                "pairwise_logistic", max_order=1, random_state=seed
            ),
            'Ranker, "auc", max_order=1': SparseAdditiveGibbsRanker(
                "auc", max_order=1, random_state=seed
            ),
            "Classifier, max_order=8": SparseAdditiveGibbsClassifier(random_state=seed),
            'Ranker, "auc", max_order=8': SparseAdditiveGibbsRanker(
                "auc", random_state=seed
            ),
        }
        for name, model in models.items():
            model, _ = fitted(model, X, y)
            area = roc_auc_score(y_new, scores_of(model, X_new))
            auc.setdefault(name, []).append(area)
        angles = np.linspace(0, np.pi, 181)
        best = [
            roc_auc_score(y_new, X_new[:, :2] @ [np.cos(a), np.sin(a)]) for a in angles
        ]
        auc.setdefault("the best linear score", []).append(max(best))
    reference = np.array(auc['Ranker, "auc", max_order=1'])
    rows = []
    for name, values in auc.items():
        difference = np.array(values) - reference
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        rows.append(
            [
                name,
                f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})",
                f"{difference.mean():+.3f} ± {error:.3f}",
            ]
        )
    report.table(
        "Gross errors in 5% of the negatives, 300 rows, 20 features: AUC on 20,000 new "
        f"rows, mean (least to largest) over {len(seeds)} samples",
        ["method", "AUC", "less that of the ranker, max_order=1"],
        rows,
    )


def breast_cancer(report, n_folds, seeds):
    X, y = load_breast_cancer(return_X_y=True)
    losses, areas, seconds, sizes = {}, {}, {}, {}
    for seed in seeds:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        for train, test in folds.split(X, y):
            models = {
                "SparseAdditiveGibbsClassifier": SparseAdditiveGibbsClassifier(
                    random_state=seed
                ),
                "same, beta=1/3": SparseAdditiveGibbsClassifier(
                    beta=1 / 3, random_state=seed
                ),
                "l1-logistic, linear": make_pipeline(StandardScaler(), l1_logistic()),
                "l1-logistic, same functions": l1_on_functions(X[train]),
                "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
                'Ranker, "pairwise_logistic"': SparseAdditiveGibbsRanker(
                    random_state=seed
                ),
                'Ranker, "auc"': SparseAdditiveGibbsRanker("auc", random_state=seed),
            }
            for name, model in models.items():
                model, spent = fitted(model, X[train], y[train])
                seconds.setdefault(name, []).append(spent)
                area = roc_auc_score(y[test], scores_of(model, X[test]))
                areas.setdefault(name, []).append(area)
                if "Ranker" not in name:
                    loss = log_loss(y[test], model.predict_proba(X[test]))
                    losses.setdefault(name, []).append(loss)
                if hasattr(model, "get_support"):
                    sizes.setdefault(name, []).append(model.get_support().sum())
                elif "l1" in name:
                    coef = model[-1].coef_.reshape(X.shape[1], -1)
                    sizes.setdefault(name, []).append(coef.any(axis=1).sum())
    rows = [
        [
            name,
            f"{np.mean(losses[name]):.4f}" if name in losses else "",
            f"{np.mean(areas[name]):.4f}",
            f"{np.mean(sizes[name]):.1f}" if name in sizes else "30",
            f"{np.median(seconds[name]):.1f}",
        ]
        for name in areas
    ]
    report.table(
        f"Breast cancer, 569 rows, 30 features: means over {len(seeds)} x {n_folds} "
        "folds",
        ["method", "log loss", "AUC", "variables", "CPU s of a fit"],
        rows,
    )


def time_of_a_move(report, sizes):
    rows = []
    for n, p in sizes:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (n, p))
        y = rng.random(n) < expit(log_odds(X))
        for name, kind, few, many in (
            ("classifier", SparseAdditiveGibbsClassifier, 100, 300),
            ('ranker, "pairwise_logistic"', SparseAdditiveGibbsRanker, 100, 300),
        ):
            spent = []
            for count in (few, few, many):  # the first compiles
                model = kind(n_iter=count, burn_in=0, n_chains=1, random_state=0)
                spent.append(fitted(model, X, y)[1])
            move = (spent[2] - spent[1]) / (many - few)
            rows.append([n, p, name, f"{1e6 * move:.0f}"])
    report.table(
        "CPU microseconds of one iteration: twenty moves and a draw",
        ["rows", "features", "chain", "us"],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("additive_classes", quick=options.quick)
    seeds = range(2) if options.quick else range(3)
    fitted(SparseAdditiveGibbsClassifier(n_iter=10), *four_of_fifty(100, 0))  # compiles
    fitted(SparseAdditiveGibbsRanker(n_iter=10), *four_of_fifty(100, 0))
    more = range(2 if options.quick else 8)
    four_variables(report, 300, more)
    prior_of_models(report, more)
    linear_scores(report, seeds)
    breast_cancer(report, 2 if options.quick else 5, range(1))
    if not options.quick:
        four_variables(report, 600, more)
    time_of_a_move(report, [(300, 50)] if options.quick else [(300, 50), (600, 200)])
    report.save()


if __name__ == "__main__":
    main()
