"""Rules that every row of a table keeps: public facts, kept exactly in every sampled row."""

from sfumato.rules.plan import RulePlan
from sfumato.rules.reading import read_rules, rule_text

__all__ = ["RulePlan", "read_rules", "rule_text"]
