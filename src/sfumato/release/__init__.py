"""What leaves: a generative model made of noisy measurements, its certificate, and its files."""

from sfumato.release.manifest import Measurement, SourceForm
from sfumato.release.model import Release, load, save

__all__ = ["Measurement", "Release", "SourceForm", "load", "save"]
