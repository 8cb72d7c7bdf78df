from sfumato.estimators.densities import DPFactorAnalysis as DPFactorAnalysis
from sfumato.estimators.densities import DPGaussianMixture as DPGaussianMixture
from sfumato.estimators.kmeans import DPKernelKMeans as DPKernelKMeans
from sfumato.estimators.kmeans import DPKMeans as DPKMeans
