"""The server of the studio: on this machine's own address alone, and silent."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import uvicorn

from sfumato.errors import ConfigError
from sfumato.studio.guard import ADDRESS, Guard, new_token
from sfumato.studio.pages import make_app
from sfumato.studio.session import StudioSession


class Studio:
    """A studio that listens.

    Args:
        session: what it shows.
        port: where to listen; 0 takes a free one.

    Attributes:
        url: its address, with the secret.
        port: where it listens.

    Raises:
        ConfigError: the port is taken.
    """

    def __init__(self, session: StudioSession, port: int = 0) -> None:
        self._session = session
        self._socket = _listen(port)
        self.port = int(self._socket.getsockname()[1])
        token = new_token()
        self.url = f"http://{ADDRESS}:{self.port}/?token={token}"
        app = Guard(make_app(session), port=self.port, token=token)
        # no log: its lines would hold addresses, and tracebacks of libraries may hold cells
        settings = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", proxy_headers=False, server_header=False, ws="none",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        self._server = uvicorn.Server(settings)

    def run(self) -> None:
        """Answer until `stop` or Ctrl-C; a fit at work then ends first."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._session.wait()

    def stop(self) -> None:
        """Answer no more."""
        self._server.should_exit = True


def serve(session: StudioSession, port: int = 0, *, opened: Callable[[str], None]) -> None:
    """Run a studio until Ctrl-C.

    Args:
        session: what it shows.
        port: where to listen; 0 takes a free one.
        opened: called with the address, which holds the secret, when the studio listens.
    """
    studio = Studio(session, port)
    opened(studio.url)
    with contextlib.suppress(KeyboardInterrupt):  # the way it ends: nothing was interrupted, the fit was waited for
        studio.run()


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((ADDRESS, port))
        listener.listen(16)
    except OSError:
        listener.close()
        raise ConfigError(f"Expected a free port, got {port}. Leave --port out, and one is found.") from None
    return listener
