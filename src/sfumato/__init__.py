"""Sfumato: publish data about people without publishing the people.

>>> import sfumato
>>> release = sfumato.fit(frame, epsilon=1.0, delta=1e-6)  # doctest: +SKIP
>>> synthetic = release.sample(10_000)  # doctest: +SKIP

Public are the names below and those of `sfumato.settings`, `columns`, `engines`, `estimators`, `evaluate`, `holders`,
`report`, `audit`, `errors` and `demo`. Each is imported when it is first asked for.
"""

from sfumato._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
