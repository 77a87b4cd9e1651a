"""Write the map of the page "Which estimator?", whose boxes are links.

Run ``python doc/make_flowchart.py`` after a change of the table below.
"""

from pathlib import Path
from xml.sax.saxutils import escape

QUESTIONS = {
    "Rows without a target": [
        ("groups, their number unknown", "cluster.PACOClusterer"),
        ("groups that few features show", "cluster.SubspaceMixture"),
        ("twenty groups or more, number known", "cluster.SSMCKMeansInit"),
        ("a density, ellipses, outliers", "mixture.TemperedVBGaussianMixture"),
        ("rows of counts", "mixture.TemperedVBMultinomialMixture"),
        ("columns of several kinds, missing values", "mixture.TemperedVBMixture"),
    ],
    "Rows with a target": [
        ("a stream of numbers", "online.OnlineVIRegressor"),
        ("a stream of labels", "online.OnlineVIClassifier"),
        ("a stream of numbers, not linear", "online.OnlineVIMLPRegressor"),
        ("a stream of labels, not linear", "online.OnlineVIMLPClassifier"),
        ("a stream, and several models", "online.EWARegressor"),
        ("few variables of many: numbers", "additive.SparseAdditiveGibbsRegressor"),
        ("few variables of many: labels", "additive.SparseAdditiveGibbsClassifier"),
        (
            "few variables of many: counts",
            "additive.SparseAdditiveGibbsPoissonRegressor",
        ),
        ("few variables of many: a ranking", "additive.SparseAdditiveGibbsRanker"),
    ],
    "A sequence": [
        ("regimes, no model of them", "hmm.DirichletProcessHMM"),
        ("a model: follow its state", "filtering.ClusteredParticleFilter"),
        ("a model: learn its parameters", "filtering.ParticleMarginalMetropolis"),
        ("a model: its likeliest parameters", "filtering.ParticleMaximumLikelihood"),
        ("a model: its parameters, on a stream", "filtering.SMC2"),
    ],
    "A simulator": [
        ("parameters that fit an observation", "likelihood_free.ABCPosteriorKDE"),
    ],
}
ROW, GAP, WIDTH = 34, 14, 800  # heights of a row and between questions; the width
LEFT, MIDDLE, RIGHT = 190, 230, 526  # edges of the columns


def flowchart():
    """Return the map as SVG."""
    parts, y = [], 4
    for question, answers in QUESTIONS.items():
        top, bottom = y, y + ROW * len(answers) - 8
        center = (top + bottom) / 2
        parts += [
            f'<rect x="2" y="{center - 15}" width="{LEFT - 4}" height="30" rx="15" '
            'fill="none" stroke="currentColor" stroke-width="1.5"/>',
            _text(LEFT / 2, center, question, "middle", bold=True),
        ]
        for answer, name in answers:
            middle = y + ROW / 2 - 4
            parts += [
                f'<path d="M{LEFT - 2} {center} C{LEFT + 24} {center} {LEFT + 14} '
                f'{middle} {MIDDLE - 6} {middle}" fill="none" stroke="currentColor" '
                'opacity="0.5"/>',
                _text(MIDDLE, middle, answer, "start"),
                _link(name, middle),
            ]
            y += ROW
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" '
        'aria-label="A map from what you have to the estimator for it: the table below '
        'says the same." font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def _text(x, y, words, anchor, *, bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y + 4.5}" text-anchor="{anchor}" fill="currentColor"'
        f"{weight}>{escape(words)}</text>"
    )


def _link(name, y):
    short = name.rpartition(".")[2]
    return (
        f'<a href="../generated/skpacbayes.{name}.html">'
        f'<rect x="{RIGHT}" y="{y - 13}" width="{WIDTH - RIGHT - 4}" height="26" '
        'rx="4" fill="#1f77b4" fill-opacity="0.15" stroke="#1f77b4"/>'
        f"{_text((RIGHT + WIDTH - 4) / 2, y, short, 'middle')}</a>"
    )


if __name__ == "__main__":
    path = Path(__file__).parent / "images/choose.svg"
    path.write_text(flowchart(), encoding="utf-8")
