# Written by .ci/make_stubs.py.

from skpacbayes import additive as additive
from skpacbayes.additive import SparseAdditiveGibbsClassifier as SparseAdditiveGibbsClassifier
from skpacbayes.additive import SparseAdditiveGibbsPoissonRegressor as SparseAdditiveGibbsPoissonRegressor
from skpacbayes.additive import SparseAdditiveGibbsRanker as SparseAdditiveGibbsRanker
from skpacbayes.additive import SparseAdditiveGibbsRegressor as SparseAdditiveGibbsRegressor
from skpacbayes import certificates as certificates
from skpacbayes.certificates import Certificate as Certificate
from skpacbayes.certificates import gaussian_mixture_rate as gaussian_mixture_rate
from skpacbayes.certificates import mixture_risk_bound as mixture_risk_bound
from skpacbayes.certificates import mixture_selection_bound as mixture_selection_bound
from skpacbayes.certificates import multinomial_mixture_rate as multinomial_mixture_rate
from skpacbayes.certificates import variational_risk_bound as variational_risk_bound
from skpacbayes import cluster as cluster
from skpacbayes.cluster import PACOClusterer as PACOClusterer
from skpacbayes.cluster import SSMCKMeansInit as SSMCKMeansInit
from skpacbayes.cluster import SubspaceMixture as SubspaceMixture
from skpacbayes import datasets as datasets
from skpacbayes.datasets import make_hidden_markov as make_hidden_markov
from skpacbayes.datasets import make_mixture as make_mixture
from skpacbayes.datasets import make_paco_model as make_paco_model
from skpacbayes.datasets import make_subspace_groups as make_subspace_groups
from skpacbayes import filtering as filtering
from skpacbayes.filtering import SMC2 as SMC2
from skpacbayes.filtering import ClusteredParticleFilter as ClusteredParticleFilter
from skpacbayes.filtering import ParticleMarginalMetropolis as ParticleMarginalMetropolis
from skpacbayes.filtering import ParticleMaximumLikelihood as ParticleMaximumLikelihood
from skpacbayes import hmm as hmm
from skpacbayes.hmm import DirichletProcessHMM as DirichletProcessHMM
from skpacbayes import likelihood_free as likelihood_free
from skpacbayes.likelihood_free import ABCPosteriorKDE as ABCPosteriorKDE
from skpacbayes.likelihood_free import PosteriorDisplay as PosteriorDisplay
from skpacbayes.likelihood_free import SimulationTable as SimulationTable
from skpacbayes.likelihood_free import simulate as simulate
from skpacbayes import mixture as mixture
from skpacbayes.mixture import TemperedVBGaussianMixture as TemperedVBGaussianMixture
from skpacbayes.mixture import TemperedVBMixture as TemperedVBMixture
from skpacbayes.mixture import TemperedVBMultinomialMixture as TemperedVBMultinomialMixture
from skpacbayes import online as online
from skpacbayes.online import EWARegressor as EWARegressor
from skpacbayes.online import OnlineVIClassifier as OnlineVIClassifier
from skpacbayes.online import OnlineVIMLPClassifier as OnlineVIMLPClassifier
from skpacbayes.online import OnlineVIMLPRegressor as OnlineVIMLPRegressor
from skpacbayes.online import OnlineVIRegressor as OnlineVIRegressor
from skpacbayes import plotting as plotting
from skpacbayes.plotting import ChoiceDisplay as ChoiceDisplay
from skpacbayes.plotting import ClusterCountDisplay as ClusterCountDisplay
from skpacbayes.plotting import EllipsesDisplay as EllipsesDisplay
from skpacbayes.plotting import EmissionsDisplay as EmissionsDisplay
from skpacbayes.plotting import FilterDisplay as FilterDisplay
from skpacbayes.plotting import PartialEffectsDisplay as PartialEffectsDisplay
from skpacbayes.plotting import ParticlesDisplay as ParticlesDisplay
from skpacbayes.plotting import ProgressiveLossDisplay as ProgressiveLossDisplay
from skpacbayes.plotting import RegimesDisplay as RegimesDisplay
from skpacbayes.plotting import StreamDisplay as StreamDisplay
from skpacbayes.plotting import TraceDisplay as TraceDisplay

__version__: str
TRUSTED_TYPES: list[str]

def show_versions() -> None: ...
