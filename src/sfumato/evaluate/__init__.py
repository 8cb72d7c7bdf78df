"""How good is a release: scores of synthetic against real data.

Everything here reads real records without noise. No figure it returns is private: publish one
only if the real data may be published.
"""

from sfumato._lazy import explain_calls
from sfumato.evaluate.counting_queries import counting_query_errors
from sfumato.evaluate.fidelity import correlation_differences, rule_breaks, total_variation
from sfumato.evaluate.likelihood import log_likelihood, release_log_likelihood
from sfumato.evaluate.mixtures import mixture_scores
from sfumato.evaluate.neighbours import nearest_rows
from sfumato.evaluate.scores import evaluate, over_runs
from sfumato.evaluate.utility import classifier_scores, clustering_accuracy

__all__ = [
    "classifier_scores",
    "clustering_accuracy",
    "correlation_differences",
    "counting_query_errors",
    "evaluate",
    "log_likelihood",
    "mixture_scores",
    "nearest_rows",
    "over_runs",
    "release_log_likelihood",
    "rule_breaks",
    "total_variation",
]

explain_calls(__name__)
