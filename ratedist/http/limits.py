"""Limits and headers around every request, as plain ASGI: host, size, time of arrival, what a browser may load."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ..calls.call import MOST_BYTES

ARRIVAL_S = 10.0
HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Limits:
    """Refuses other hosts (421), bodies beyond their limit (413) or that take longer than ARRIVAL_S to arrive (408).

    Parameters
    ----------
    hosts : iterable of str, optional
        Names that the server answers to, besides addresses.  A page of another site that makes its name point here (DNS
        rebinding) could otherwise read the answers.
    most_bytes : mapping of str to int, bytes, optional
        By path, where a request may be longer or has to be shorter.
    """

    def __init__(self, app: App, hosts: Iterable[str] = (), most_bytes: Mapping[str, int] | None = None) -> None:
        self.app = app
        self.most_bytes = dict(most_bytes or {})
        self.hosts = frozenset(name.lower() for name in ("localhost", *hosts))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS.items()]
            await send(message)

        named = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not _is_known(named, self.hosts):
            sentence = f"the host must be an address or one of {', '.join(sorted(self.hosts))}; got {named[:64]!r}"
            await _refuse(send_with_headers, 421, f"{sentence}: start the server with --allow-host")
            return
        if scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send_with_headers)
            return
        most = self.most_bytes.get(scope["path"], MOST_BYTES)
        try:
            async with asyncio.timeout(ARRIVAL_S):
                body = await _body(receive, most)
        except TimeoutError:
            await _refuse(send_with_headers, 408, f"a request must arrive within {ARRIVAL_S:g} s: send it faster")
            return
        if body is None:
            await _refuse(send_with_headers, 413, f"a request must have at most {most} bytes: send less")
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, replay, send_with_headers)


def _is_known(named: str, hosts: frozenset[str]) -> bool:
    """Return whether a Host header names this server: one of its names, or any address, which nobody can make point
    here.
    """
    try:
        name = urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in hosts
    return True


async def _body(receive: Receive, most: int) -> bytes | None:
    """Return the whole body, or None if it is too long; reading stops there."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"detail": [{"loc": ["body"], "msg": sentence, "type": "limit"}]}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
