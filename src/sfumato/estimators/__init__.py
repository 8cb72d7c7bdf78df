"""Private estimators with the interface of scikit-learn: mixtures, factor analysis, two kinds of k-means.

They need scikit-learn: `pip install 'sfumato[evaluate]'`.
"""

from sfumato._lazy import explain_calls
from sfumato.extras import require_extra

# before the imports below, which need it
require_extra("evaluate", "use estimators with the interface of scikit-learn")

from sfumato.estimators.densities import DPFactorAnalysis, DPGaussianMixture  # noqa: E402
from sfumato.estimators.kmeans import DPKernelKMeans, DPKMeans  # noqa: E402

__all__ = ["DPFactorAnalysis", "DPGaussianMixture", "DPKMeans", "DPKernelKMeans"]

explain_calls(__name__)
