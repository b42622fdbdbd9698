"""``ratedist serve``: uvicorn on the loopback address by default, with limits on idle connections."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import sys
from collections.abc import Sequence
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# -- connections ---------------------------------------------------------------------------------------

MOST_CONNECTIONS = 256
HEADER_S = 10.0  # from the first byte of a header, or the opening of a connection, to its last
UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # the client has not sent a whole request


class Connection(H11Protocol):
    """uvicorn's connection with a clock for headers and a place that it may lose."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._clock: asyncio.TimerHandle | None = None
        self._since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and wait for a header."""
        _make_room(self.connections)
        super().connection_made(transport)
        self._follow()

    def data_received(self, data: bytes) -> None:
        """Read on; the clock runs while a header is incomplete."""
        if self.conn.their_state is h11.IDLE and self._clock is None:
            self._since = self.loop.time()
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """From here on the next request is awaited."""
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    @property
    def unfinished_since(self) -> float | None:
        """Since when a whole request is awaited; None while one is answered."""
        return self._since if self.conn.their_state in UNFINISHED else None

    def _follow(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(HEADER_S, self._too_slow)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        self._clock = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()


def _make_room(connections: set[Any]) -> None:
    """Of too many connections end the one that has owed its request for longest."""
    if len(connections) < MOST_CONNECTIONS:
        return
    owing = [(c.unfinished_since, c) for c in connections if c.unfinished_since is not None]
    if owing:
        _, oldest = min(owing, key=lambda pair: pair[0])
        connections.discard(oldest)
        oldest.transport.abort()


def _answer(status: str, sentence: str) -> bytes:
    body = json.dumps({"detail": [{"loc": ["header"], "msg": sentence, "type": "limit"}]}).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + body


_TOO_SLOW = _answer("408 Request Timeout", f"a header must arrive within {HEADER_S:g} s: send it faster")


# -- server --------------------------------------------------------------------------------------------

KEEP_ALIVE_S = 5
BACKLOG = 2048


def serve(*, host: str = "127.0.0.1", port: int = 8000, allow_host: Sequence[str] = ()) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    host : str, optional
        The address to listen on.
    port : int, optional
        The port to listen on.
    allow_host : sequence of str, optional
        Further names that the server is reached by, as behind a proxy.

    Raises
    ------
    ValueError
        Without the extra ``serve``, for an empty host, a bad port, or if the address cannot be had.
    """
    if not host.strip():
        raise ValueError(
            f"host must name an address; got {host!r}: 127.0.0.1 for this machine alone, 0.0.0.0 for others too"
        )
    if not 0 < port < 1 << 16:
        raise ValueError(f"port must satisfy 1 <= port <= 65535; got port = {port}: choose for example 8000")
    try:
        import uvicorn

        from .app import create_app
    except ImportError as missing:
        raise ValueError(f'serving needs {missing.name}: pip install "ratedist[serve]"') from None
    listener = _listen(host, port)
    if not _is_loopback(host):
        sys.stderr.write(f"ratedist serve: {host} can be reached from other machines; there is no authentication\n")
    sys.stderr.write(f"ratedist serve: http://{host}:{port}/ (Ctrl-C ends it)\n")
    config = uvicorn.Config(
        create_app(hosts=(host, socket.gethostname(), *allow_host)),
        log_level="warning",
        access_log=False,
        server_header=False,
        http=Connection,
        limit_concurrency=2 * MOST_CONNECTIONS,  # of requests that are being answered; see connections
        timeout_keep_alive=KEEP_ALIVE_S,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises
    ------
    ValueError
        If the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sends at once only on TCP
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as failure:
        listener.close()
        reason = failure.strerror or str(failure)
        raise ValueError(f"{host}:{port} cannot be listened on ({reason}): choose another --port or --host") from None
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
