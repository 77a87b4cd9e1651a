"""Figures that the guide quotes are those of the saved tables of the benchmarks."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "doc").exists() or not (ROOT / "benchmarks").exists():
    pytest.skip("the tests stand without the guide", allow_module_level=True)

# Of each page: the benchmark and the beginning of the title of a table, then words of
# the page, with its figures in braces, and the cell of each figure: a row by its first
# cells, with " | " between two, and a column.
QUOTED = {
    "clustering": [
        (
            "paco_r_tables",
            "Means over",
            "classes is {0.284}, the highest of six methods: k-means chosen by the "
            "silhouette has {0.264}, "
            ":class:`~sklearn.mixture.BayesianGaussianMixture` {0.263}, and BIC with "
            "full covariances {0.255}",
            [
                "PACOClusterer > ARI",
                "KMeans, silhouette > ARI",
                "BayesianGaussianMixture > ARI",
                "GaussianMixture, full, BIC > ARI",
            ],
        ),
        (
            "paco_order",
            "ARI of a batch less",
            "at most {0.006} below that of `fit`. Of streams sorted by group, it is "
            "more than {0.1} below in {1}",
            [
                "random order > largest",
                "by label > bar",
                "by label > above the bar",
            ],
        ),
        (
            "paco_kinds",
            "Right answers of 4 draws",
            "`fit` is right in {104} of 120 draws, wrong with a warning in {12}, and "
            "wrong without a warning in {4}",
            3 * ["all > PACOClusterer"],
        ),
        (
            "paco_kinds",
            "Right answers of 4 draws",
            "right in {102} draws. Of the other 18, {17} have a warning",
            2 * ["all > the same, stream"],
        ),
        (
            "paco_kinds",
            "Right answers of 4 draws",
            "BIC is right in {47}, and k-means chosen by the silhouette in {76}",
            ["all > Gaussian mixture, BIC", "all > k-means, silhouette"],
        ),
        (
            "paco_candidates",
            "models, 200 rows",
            "are found in {83} of 100 draws, and found or named as a candidate in {89}",
            ["2 > right", "2 > right or named"],
        ),
        (
            "paco_candidates",
            "parts whose number",
            "({174} cases, {29} tables)",
            ["silent > parts", "silent > tables"],
        ),
        (
            "paco_candidates",
            "parts whose number",
            "in {14} of {108} cases ({18} tables)",
            ["warned > not named", "warned > parts", "warned > tables"],
        ),
        (
            "paco_columns",
            "Number of clusters",
            "right in {18} of 20 draws (Gaussian mixtures chosen by BIC: {11} with a "
            "tied covariance, {13} with a diagonal one)",
            [
                "30 | 2 | 3 | 400 | 5.0 | PACOClusterer > right",
                "30 | 2 | 3 | 400 | 5.0 | BIC, tied > right",
                "30 | 2 | 3 | 400 | 5.0 | BIC, diagonal > right",
            ],
        ),
        (
            "paco_columns",
            "Number of clusters",
            "right in {18} of 20 ({10} and {12})",
            [
                "60 | 4 | 4 | 600 | 6.0 | PACOClusterer > right",
                "60 | 4 | 4 | 600 | 6.0 | BIC, tied > right",
                "60 | 4 | 4 | 600 | 6.0 | BIC, diagonal > right",
            ],
        ),
        (
            "paco_drift",
            "2 streams of 1600 rows",
            "Without forgetting {25} and {33} % of the steps are right, and k-means "
            "with the silhouette on the last 200 rows is right in {69} and {92} %",
            [
                "PACOClusterer > leaves",
                "PACOClusterer > jumps",
                "KMeans + silhouette, 200 rows > leaves",
                "KMeans + silhouette, 200 rows > jumps",
            ],
        ),
    ],
    "starts": [
        (
            "ssmc",
            "Final inertia above the best known",
            "ends {9.5} % above the best known inertia after scikit-learn's k-means++ "
            '("greedy"), and {0.25} % above',
            [
                "groups, d=5 | 50 > greedy, %",
                "groups, d=5 | 50 > SSMC, %",
            ],
        ),
        (
            "subspace",
            "Adjusted Rand index: mean",
            "the adjusted Rand index is {0.89}, that of a diagonal Gaussian mixture "
            "{0.50}, and that of k-means {0.04}",
            [
                "extreme example, spread 0.03 | 10 > SubspaceMixture",
                "extreme example, spread 0.03 | 10 > diagonal GaussianMixture, "
                "10 starts",
                "extreme example, spread 0.03 | 10 > k-means, 10 starts",
            ],
        ),
        (
            "subspace",
            "Adjusted Rand index: mean",
            "with the number given is {0.97}, that of k-means {0.99}",
            [
                "shifted means | 200 > SubspaceMixture",
                "shifted means | 200 > k-means, 10 starts",
            ],
        ),
    ],
    "mixture_families": [
        (
            "mixture_families",
            "Columns of several kinds",
            "the adjusted Rand index is {0.61}, against {0.61} for StepMix, {0.49} for "
            "k-means on one-hot columns and {0.19} for k-modes",
            [
                "phishing, K=2 | ours > ARI",
                "phishing, K=2 | StepMix > ARI",
                "phishing, K=2 | k-means > ARI",
                "phishing, K=2 | k-modes > ARI",
            ],
        ),
    ],
    "online": [
        (
            "online",
            "Latency of one row",
            "in {5.1} microseconds and learns it in {18}; `SGDRegressor` takes {133} "
            "and {340} on the same machine",
            [
                "OnlineVIRegressor() | predict > microseconds",
                "OnlineVIRegressor() | learn an array > microseconds",
                "SGDRegressor() | predict > microseconds",
                "SGDRegressor() | learn an array > microseconds",
            ],
        ),
        (
            "online",
            "Accuracy on streams of river",
            "the network has an accuracy of {0.72} in one pass, and ``n_fourier=60`` "
            "has {0.86}",
            [
                "OnlineVIMLPClassifier() > Bananas",
                "OnlineVIClassifier(n_fourier=60) > Bananas",
            ],
        ),
        (
            "online",
            "Certificates",
            "a loss of {0.61} per row by {0.997}",
            ["pima | sva > loss a row", "pima | sva > bound a row"],
        ),
        (
            "online",
            "Intervals on the last fifth",
            "({0.305} against {0.299} in relative squared error",
            [
                "California | OnlineVIRegressor(covariance='diagonal') > "
                "relative squared error",
                "California | OnlineVIRegressor() > relative squared error",
            ],
        ),
        (
            "online_losses",
            "Poisson deviance",
            "is {3.8} per row; that of the best fixed rates is {1.03}. With 5 features "
            "the deviances are {1.19} and {0.99}",
            [
                "simulated, 30 features, mean about 400 > ours",
                "simulated, 30 features, mean about 400 > batch, in hindsight",
                "simulated, 5 features, mean about 400 > ours",
                "simulated, 5 features, mean about 400 > batch, in hindsight",
            ],
        ),
        (
            "online_order",
            "Both kinds of tables",
            "{291} of {318} fits that an order has spoilt warn of it, and {42} of "
            "{191} that it has not; of {320} fits in random order none does",
            [
                *2 * ["all fits in other orders > fit: spoilt, told"],
                *2 * ["all fits in other orders > fit: not spoilt, told"],
                "all fits in random order > fit: not spoilt, told",
            ],
        ),
        (
            "online_order",
            "Both kinds of tables",
            "these are {285} of {318}, {64} of {191} and {3} of {320}",
            [
                *2 * ["all fits in other orders > partial_fit: spoilt, told"],
                *2 * ["all fits in other orders > partial_fit: not spoilt, told"],
                *2 * ["all fits in random order > partial_fit: not spoilt, told"],
            ],
        ),
        (
            "online_dependent",
            "Loss of 2000 new rows",
            "after 2,000 rows of two prices it has {0.09} of the variance of the "
            "target as its squared error on new rows. Other settings and estimators of "
            "this page hardly learn such an effect: they have {0.69} or more, and "
            "{0.09} with whitened columns",
            [
                "two prices | OnlineVIRegressor() > loss",
                "two prices | OnlineVIClassifier() > loss",
                "two prices | covariance='diagonal' > whitened",
            ],
        ),
        (
            "online_rare",
            "Sum of the probabilities",
            "{1.87} times too high in sum with two classes (logistic regression of all "
            "rows {1.32}). With four classes it is {1.15} times with the softmax, but "
            '{5.86} times with ``multi_class="one_vs_rest"`` and {5.48} times with '
            "the network: do not use these for rare classes. For 1 row in 60 of two "
            "classes the sum is {1.00} times",
            [
                "two classes, 1 in 1,200 > OnlineVIClassifier()",
                "two classes, 1 in 1,200 > LogisticRegression",
                "four classes, one 1 in 1,800 > OnlineVIClassifier()",
                "four classes, one 1 in 1,800 > multi_class='one_vs_rest'",
                "four classes, one 1 in 1,800 > OnlineVIMLPClassifier()",
                "two classes, 1 in 60 > OnlineVIClassifier()",
            ],
        ),
        (
            "online_confidence",
            "Mean largest probability",
            "After 120 digits its largest probability is {0.23} on average, though "
            "{0.57} of its labels are right. :class:`OnlineVIClassifier` has {0.83} "
            "({0.83}) after 120",
            [
                "digits, 120 rows > network, mean",
                "digits, 120 rows > network, right",
                "digits, 120 rows > OnlineVIClassifier, mean",
                "digits, 120 rows > OnlineVIClassifier, right",
            ],
        ),
        (
            "online_wide",
            "squared_error",
            "the default has {1.12}, a scale of 1 has {1.41}",
            ["only noise > default", "only noise > prior_scale=1.0"],
        ),
        (
            "online_wide",
            "squared_error",
            "the default has {0.41}, a scale of 1 has {2.0}",
            ["1 % of 500 are on > default", "1 % of 500 are on > prior_scale=1.0"],
        ),
        (
            "online_wide",
            "squared_error",
            "the target rises all the time ({0.80} and {0.99} of the loss of the best "
            "constant)",
            [
                "rising target > SGD",
                "rising target > default",
            ],
        ),
        (
            "online_streams",
            "Labels: log loss",
            "iris with sorted classes ({0.184}; SGD, which predicts the last label "
            "seen, {0.112})",
            [
                "iris, sorted classes > OnlineVIClassifier()",
                "iris, sorted classes > SGD, log loss",
            ],
        ),
        (
            "online_streams",
            "Labels: log loss",
            "a log loss of {0.517}, with ``forgetting=0.0`` {0.598}, and river's "
            "logistic regression {0.569}",
            [
                "drift > OnlineVIClassifier()",
                "drift > forgetting=0.0",
                "drift > river, logistic",
            ],
        ),
        (
            "online_streams",
            "Numbers: R2",
            "On TrumpApproval it has {0.90} and the network {0.93}",
            ["TrumpApproval > OnlineVIRegressor()", "TrumpApproval > network"],
        ),
        (
            "online_intervals",
            "Intervals of 50 %",
            "in {13} of {52} tables on which nothing was chosen, and with normal "
            "quantiles in {25}",
            [
                "confirmed, 52 tables > predict_quantiles",
                "confirmed, 52 tables > tables",
                "confirmed, 52 tables > normal",
            ],
        ),
        (
            "online_unseen",
            "Labels: log loss",
            "the mode of travel ({0.490}; forests {0.471}) and on Hastie's ten "
            "variables ({0.509}; trees {0.363})",
            [
                "mode of travel > OnlineVIClassifier()",
                "mode of travel > river, adaptive forest",
                "Hastie's ten > OnlineVIClassifier()",
                "Hastie's ten > river, adaptive tree",
            ],
        ),
        (
            "online_unseen",
            "Numbers: R2",
            "a roll ({0.03}, the default {0.92}; forests {0.80})",
            [
                "a roll > n_fourier=0",
                "a roll > OnlineVIRegressor()",
                "a roll > river, adaptive forest",
            ],
        ),
    ],
    "mixture": [
        (
            "mixture_r_tables",
            "Summary",
            "On {167} numeric tables of R packages",
            ['"auto" > tables'],
        ),
        (
            "mixture_r_tables",
            "Summary",
            "in {162}. The median gain over BIC's is {1.398} nats a row, in {1.73} "
            "times the time ({1.49} with full covariances only). In {3} it is more "
            "than 0.02 nats below",
            [
                '"auto" > above both others',
                '"auto" > median gain over BIC\'s, nats a row',
                '"auto" > time / that of the fits for BIC',
                "full > time / that of the fits for BIC",
                '"auto" > more than 0.02 nats a row below the better one',
            ],
        ),
    ],
    "additive": [
        (
            "classes_r_tables",
            "Log loss of new rows, 300 tables",
            "the least log loss of six methods in {36} %, and is within two standard "
            "errors of the least in {77} %: more often than logistic regression with a "
            "cross-validated l2 penalty ({59} %), boosted trees ({51} %) and a random "
            "forest ({51} %)",
            [
                "additive > least loss",
                *(
                    f"{name} > within two standard errors of the least"
                    for name in ("additive", "logistic, l2", "boosting", "forest")
                ),
            ],
        ),
        (
            "additive_r_tables",
            "New rows in random order",
            "On {323} tables of R packages, without tuning, the regressor has the "
            "least error of five methods in {44} %, and is within two standard errors "
            "of the least in {79} %",
            [
                "323 > tables",
                "323 > least error",
                "323 > within two standard errors of the least",
            ],
        ),
        (
            "additive_r_tables",
            "Rows beyond the range",
            "a lower error than constants in {52} % of the tables and a higher one in "
            "{27} %. Intervals of 90 % hold {0.89} of the rows",
            [
                "every other | sorted > lower",
                "every other | sorted > higher",
                "every other | sorted > in 90 % intervals",
            ],
        ),
        (
            "additive_tables",
            "Log loss in five folds",
            "predictions: {6.2} instead of {30.0} on breast cancer, {8.4} instead of "
            "{22.4} on digits",
            [
                "breast cancer | same, on projected_support > variables",
                "breast cancer | SparseAdditiveGibbsClassifier > variables",
                "digits 3 and 8 | same, on projected_support > variables",
                "digits 3 and 8 | SparseAdditiveGibbsClassifier > variables",
            ],
        ),
        (
            "additive_tables",
            "Log loss in five folds",
            "a log loss of {0.102} and {0.071}, and with all variables {0.072} and "
            "{0.048}",
            [
                "breast cancer | same, on projected_support > log loss",
                "digits 3 and 8 | same, on projected_support > log loss",
                "breast cancer | SparseAdditiveGibbsClassifier > log loss",
                "digits 3 and 8 | SparseAdditiveGibbsClassifier > log loss",
            ],
        ),
        (
            "additive",
            "AR(.5), noise sd 1, other samples",
            "it finds {3.73} instead of {3.57}, and {0.30} false ones instead of "
            "{0.07}",
            [
                "50 | 30 | 0.5 > found of 4",
                "50 | 30 | auto > found of 4",
                "50 | 30 | 0.5 > false",
                "50 | 30 | auto > false",
            ],
        ),
        (
            "additive_several",
            "Log loss in three folds",
            "On ecoli it is {.420}, against {.413} and, with ``slab_scale=1``, {.398}",
            [
                "ecoli (327 rows, 5 classes) | SparseAdditiveGibbsClassifier "
                "> log loss",
                "ecoli (327 rows, 5 classes) | same, one for each class > log loss",
                "ecoli (327 rows, 5 classes) | same, slab_scale=1 > log loss",
            ],
        ),
        (
            "additive_several",
            "Log loss in three folds",
            "{.22} with a fixed scale, {.12} with a drawn one",
            [
                "image segments (400 rows, 7 classes) | same, slab_scale=1 > log loss",
                "image segments (400 rows, 7 classes) | SparseAdditiveGibbsClassifier "
                "> log loss",
            ],
        ),
        (
            "additive_counts",
            "Mean Poisson deviance",
            "it is {0.047}, and that of a linear fit {0.215}",
            [
                "mean 1.3, 300 rows, 50 variables | ours > deviance",
                "mean 1.3, 300 rows, 50 variables | PoissonRegressor, linear > "
                "deviance",
            ],
        ),
        (
            "additive_doubts",
            "Of 20 tables",
            "the error is {0.293} of the variance (LassoCV {0.179}, ridge regression "
            "{0.177})",
            [
                "n = 15, linear, 4 of 5 > ours",
                "n = 15, linear, 4 of 5 > LassoCV",
                "n = 15, linear, 4 of 5 > ridge",
            ],
        ),
        (
            "additive",
            "California housing",
            "the error is {0.25} of the variance, with pairs; the Lasso on the same "
            "functions of the whole ranges, without pairs, has {0.31}",
            ["ours, legendre > error", "LassoCV, legendre > error"],
        ),
    ],
    "hidden_markov": [
        (
            "hmm_r_series",
            "Summary",
            "Of {70} series, which a rule found before any fit, the last third is "
            "forecast better than by both models of hmmlearn in {64}, and more than "
            ".01 nats per row and two standard errors worse in {0}",
            [
                "all > number",
                "all > ahead of both peers",
                "all > behind by more, and by two standard errors",
            ],
        ),
        (
            "hmm_r_series",
            "Summary",
            "The median lead over the better one is {.212} nats per row",
            ["all > median lead"],
        ),
        (
            "hmm_r_series",
            "Summary",
            "was chosen on {37} of these series. Of the other {33}, {28} are forecast "
            "better and {0} worse in that sense, and the median lead is {.180}",
            [
                "decay chosen > number",
                "the others > number",
                "the others > ahead of both peers",
                "the others > behind by more, and by two standard errors",
                "the others > median lead",
            ],
        ),
        (
            "hmm_dependence",
            "True hidden Markov models",
            "of those with fewer states, {2} of {20}",
            2 * ["fewer states chosen than the truth has > warned"],
        ),
        (
            "hmm_durations",
            "Durations",
            "{.13} instead of {.59} if regimes last 8 to 12 rows",
            [
                "8 to 12 rows | negative_binomial > Brier",
                "8 to 12 rows | geometric > Brier",
            ],
        ),
        (
            "hmm_durations",
            "Durations",
            "{.30} instead of {.44} if they last 25 to 45 rows",
            [
                "25 to 45 rows, spreads | negative_binomial > Brier",
                "25 to 45 rows, spreads | geometric > Brier",
            ],
        ),
        (
            "hmm_durations",
            "Durations",
            "{.32} instead of {.38} if they last 15 to 25 rows",
            [
                "15 to 25 rows | negative_binomial > Brier",
                "15 to 25 rows | geometric > Brier",
            ],
        ),
    ],
    "filtering": [
        (
            "filtering",
            "Mean squared error",
            "a factor of {76} in one dimension, {21} in two and {2} in four",
            [
                "volatility, d = 1 | 1,024 > bootstrap / sqmc",
                "linear, d = 2 | 1,024 > bootstrap / sqmc",
                "linear, d = 4 | 1,024 > bootstrap / sqmc",
            ],
        ),
        (
            "filtering",
            "One mode",
            "is {0.99} times the plain filter's with ``conservation=0.5``, and {1.56} "
            "times with 1",
            [
                "conservation=0.5 > ratio to plain",
                "conservation=1 (the paper) > ratio to plain",
            ],
        ),
        (
            "filtering_constants",
            "A state that hardly moves",
            "is {1.9} exact standard deviations (median of ten series; at most {8.7}), "
            "and the standard deviation {0.08} times",
            [
                "100 | 0 | 1000 > error of the mean (worst)",
                "100 | 0 | 1000 > error of the mean (worst)",
                "100 | 0 | 1000 > deviation (least)",
            ],
        ),
        (
            "filtering_constants",
            "A season over 120 rows",
            "the log-likelihood of 120 rows is {148} too low (median of ten series; at "
            "most {446}) with 1,000 particles, and {55} with 10,000",
            [
                "7 | 0.02 | 1,000 > nats too low (worst)",
                "7 | 0.02 | 1,000 > nats too low (worst)",
                "7 | 0.02 | 10,000 > nats too low (worst)",
            ],
        ),
        (
            "filtering_terrain",
            "96 flights",
            "1,000 particles cover {0.67} of the modes with clusters ({0.73} with "
            "``n_clusters=100``) and {0.585} without",
            [
                "conservation=0.5 | 1,000 > coverage of modes",
                "conservation=0.5, n_clusters=100 > coverage of modes",
                "plain | 1,000 > coverage of modes",
            ],
        ),
        (
            "filtering_smc2",
            "8 data sets",
            "by {0.13} (SMC2) and {0.17} (PMMH)",
            ["level | SMC2 > error of the mean", "level | PMMH > error of the mean"],
        ),
    ],
    "likelihood_free": [
        (
            "abc_tasks",
            "10,000 simulations",
            '{2.93} with "cv", {2.99} with "cv" and the prior\'s `bounds`, and {1.43}',
            [
                "two moons | default > mean, nats",
                "two moons | bounds > mean, nats",
                "two moons | linear, Silverman > mean, nats",
            ],
        ),
        (
            "abc_neural",
            "10,000 simulations",
            "({0.60} against {0.72})",
            ["Gaussian mixture | default > C2ST", "Gaussian mixture | NPE > C2ST"],
        ),
        (
            "abc_speed",
            "Many observations",
            "{1.00} s with two summaries, {1.28} s with five and {1.68} s with six",
            ["2 > all, s", "5 > all, s", "6 > all, s"],
        ),
    ],
}
CASES = [(page, *case) for page, cases in QUOTED.items() for case in cases]


def cell_of(table, place):
    """Return the cell of a table in a row and a column, as text."""
    first, _, column = place.rpartition(" > ")
    first = first.split(" | ")
    rows = [
        row for row in table["rows"] if [str(c) for c in row[: len(first)]] == first
    ]
    assert len(rows) == 1, f"{len(rows)} rows begin with {first}"
    return str(rows[0][table["columns"].index(column)])


def agrees(figure, cell):
    """Whether a figure is a number of the cell, rounded."""
    decimals = len(figure.partition(".")[2])
    near = 0.5 * 10.0**-decimals * (1 + 1e-9)
    numbers = re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", cell.replace(",", ""))
    return any(abs(float(figure) - float(number)) <= near for number in numbers)


@pytest.mark.parametrize(
    ("page", "benchmark", "title", "words", "cells"),
    CASES,
    ids=[f"{case[0]}-{case[1]}-{number}" for number, case in enumerate(CASES)],
)
def test_figures_of_the_guide_are_those_of_the_tables(
    page, benchmark, title, words, cells
):
    text = (ROOT / f"doc/user_guide/{page}.rst").read_text("utf-8")
    text = re.sub(r"\s+", " ", text)
    assert re.sub(r"[{}]", "", words) in text
    result = json.loads((ROOT / f"benchmarks/results/{benchmark}.json").read_text())
    tables = [one for one in result["tables"] if one["title"].startswith(title)]
    assert len(tables) == 1
    figures = re.findall(r"{(.+?)}", words)
    assert len(figures) == len(cells)
    read = [cell_of(tables[0], place) for place in cells]
    assert [
        (figure, cell)
        for figure, cell in zip(figures, read, strict=True)
        if not agrees(figure, cell)
    ] == []


@pytest.mark.parametrize(
    ("figure", "cell", "same"),
    [
        ("0.92", "0.920 / 0.1", True),
        ("17", "101 (17 warned, 2 silent)", True),
        (".25", "0.2467", True),
        (".24", "0.2467", False),
        ("1.5", "1.45", True),
        ("1.6", "1.45", False),
    ],
)
def test_a_figure_is_compared_at_its_own_precision(figure, cell, same):
    assert agrees(figure, cell) == same
