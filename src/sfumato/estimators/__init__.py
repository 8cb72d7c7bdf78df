"""Private estimators with the interface of scikit-learn: mixtures, factor analysis, two kinds of k-means.

They need scikit-learn: `pip install 'sfumato[evaluate]'`.
"""

from sfumato._lazy import lazy_names
from sfumato.extras import require_extra

require_extra("evaluate", "use estimators with the interface of scikit-learn")

__getattr__, __dir__, __all__ = lazy_names(__name__)
