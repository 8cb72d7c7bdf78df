"""Who may talk to the studio: the one browser that was given its address, and no page of anybody else.

A page in another tab can send requests to this machine, and a name it owns can be made to point here (DNS rebinding).
So every request has to name this host, come from our own page or from nowhere, and carry the secret.
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"
_READING = {"GET", "HEAD"}
_OURS = {"same-origin", "none"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    # not no-referrer, with which browsers hide the Origin of our own forms; nothing is sent to anybody else
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """The outermost layer of the studio: refuses strangers, and sets the headers of every answer.

    Args:
        app: what answers those who may ask.
        port: where the studio listens.
        token: the secret in the address.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{ADDRESS}:{port}", f"localhost:{port}"}
        self._cookie, self._key = f"sfumato_studio_{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(scope)
        await (self._app if answer is None else answer)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to those who may not ask, or who first have to show their token; else None."""
        headers, method = Headers(scope=scope), scope["method"]
        host = headers.getlist("host")
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return _no("This address does not belong to the studio.", 421)
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in _OURS:
            return _no("Another page asked for this.")
        if origin is not None and origin != f"http://{host[0].lower()}":
            return _no("Another page asked for this.")
        if method not in _READING and origin is None and site != "same-origin":
            return _no("Expected a form of the studio's own.")
        if self._knows(headers):
            return None
        return self._let_in(scope) or _no("Open the address that `sfumato studio` printed.")

    def _knows(self, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self._key)

    def _let_in(self, scope: Scope) -> Response | None:
        """Take the token out of the address, and give a cookie for it."""
        if scope["method"] != "GET" or scope["path"] != "/":
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        if len(given) != 1 or not _same(given[0], self._token):
            return None
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="strict", path="/")
        return answer


def new_token() -> str:
    """Return a fresh secret for the address."""
    return secrets.token_urlsafe(32)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _no(why: str, status: int = 403) -> Response:
    return PlainTextResponse(why, status)
