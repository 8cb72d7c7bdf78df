"""Private estimators with the interface of scikit-learn: mixtures, factor analysis, two kinds of k-means."""

from sfumato.estimators.factor_analysis import DPFactorAnalysis
from sfumato.estimators.kernel_kmeans import DPKernelKMeans
from sfumato.estimators.kmeans import DPKMeans
from sfumato.estimators.mixture import DPGaussianMixture

__all__ = ["DPFactorAnalysis", "DPGaussianMixture", "DPKMeans", "DPKernelKMeans"]
