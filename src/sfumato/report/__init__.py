"""One page about a release, for people who decide: what it holds, whom it protects, what it cost, how good it is."""

from sfumato.report.write import write_report

__all__ = ["write_report"]
