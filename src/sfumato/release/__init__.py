"""A release: a generative model made of noisy measurements, its certificate, and its files."""

from sfumato.measurements import Measurement
from sfumato.release.manifest import SourceForm
from sfumato.release.model import ReleaseValue, read_release

__all__ = ["Measurement", "ReleaseValue", "SourceForm", "read_release"]
