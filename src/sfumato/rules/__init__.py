"""Rules that every row of a table keeps: public facts, kept exactly in every sampled row."""

from sfumato.rules.rule_entries import read_rules, rule_text
from sfumato.rules.rule_plan import RulePlan

__all__ = ["RulePlan", "read_rules", "rule_text"]
