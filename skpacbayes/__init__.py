"""Batch and streaming Bayesian learners for scikit-learn.

Every public name is available here and in its family. A family is imported when one of
its names is first used, so that importing the package is fast.
"""

from importlib import import_module

__version__ = "0.1.0"

_FAMILIES = {
    "additive": [
        "SparseAdditiveGibbsClassifier",
        "SparseAdditiveGibbsPoissonRegressor",
        "SparseAdditiveGibbsRanker",
        "SparseAdditiveGibbsRegressor",
    ],
    "certificates": [
        "Certificate",
        "gaussian_mixture_rate",
        "mixture_risk_bound",
        "mixture_selection_bound",
        "multinomial_mixture_rate",
        "variational_risk_bound",
    ],
    "cluster": ["PACOClusterer", "SSMCKMeansInit", "SubspaceMixture"],
    "datasets": [
        "make_hidden_markov",
        "make_mixture",
        "make_paco_model",
        "make_subspace_groups",
    ],
    "filtering": [
        "SMC2",
        "ClusteredParticleFilter",
        "ParticleMarginalMetropolis",
        "ParticleMaximumLikelihood",
    ],
    "hmm": ["DirichletProcessHMM"],
    "likelihood_free": [
        "ABCPosteriorKDE",
        "PosteriorDisplay",
        "SimulationTable",
        "simulate",
    ],
    "mixture": [
        "TemperedVBGaussianMixture",
        "TemperedVBMixture",
        "TemperedVBMultinomialMixture",
    ],
    "online": [
        "EWARegressor",
        "OnlineVIClassifier",
        "OnlineVIMLPClassifier",
        "OnlineVIMLPRegressor",
        "OnlineVIRegressor",
    ],
    "plotting": [
        "ChoiceDisplay",
        "ClusterCountDisplay",
        "EllipsesDisplay",
        "EmissionsDisplay",
        "FilterDisplay",
        "PartialEffectsDisplay",
        "ParticlesDisplay",
        "ProgressiveLossDisplay",
        "RegimesDisplay",
        "StreamDisplay",
        "TraceDisplay",
    ],
}
_OF_THE_PACKAGE = {  # public names outside of the families, and their modules
    "TRUSTED_TYPES": "._saving",  # of saved estimators, for `skops.io.load`
    "show_versions": "._show_versions",
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}

__all__ = sorted(_FAMILY_OF)


def __dir__():
    return sorted({*globals(), *_FAMILIES, *__all__, *_OF_THE_PACKAGE})


def __getattr__(name):
    if name in _FAMILIES:
        return import_module(f".{name}", __name__)
    if name in _FAMILY_OF:
        return getattr(import_module(f".{_FAMILY_OF[name]}", __name__), name)
    if name in _OF_THE_PACKAGE:
        return getattr(import_module(_OF_THE_PACKAGE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
