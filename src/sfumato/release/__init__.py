"""What leaves: a generative model that holds no record, its certificate, and its files."""

from sfumato.release.files import load, save
from sfumato.release.model import Measurement, Release, SourceForm

__all__ = ["Measurement", "Release", "SourceForm", "load", "save"]
