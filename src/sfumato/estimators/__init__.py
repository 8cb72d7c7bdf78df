"""Private estimators with the interface of scikit-learn: mixtures of Gaussians, factor analysis, k-means."""

from sfumato.estimators.factor_analysis import DPFactorAnalysis
from sfumato.estimators.kmeans import DPKMeans
from sfumato.estimators.mixture import DPGaussianMixture

__all__ = ["DPFactorAnalysis", "DPGaussianMixture", "DPKMeans"]
