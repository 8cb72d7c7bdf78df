"""The command line: each command calls one public function.

Exit codes: 0 done, 1 the work failed, 2 the call was wrong. Errors are one sentence on standard error, never a
traceback: a traceback can hold a cell of the data.
"""

from sfumato.cli.app import main

__all__ = ["main"]
