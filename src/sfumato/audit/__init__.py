"""Attacks on release methods: a lower bound on ε, found by trying, beside the certificate's upper bound."""

from sfumato.audit.attack import audit

__all__ = ["audit"]
