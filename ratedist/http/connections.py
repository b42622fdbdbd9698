"""Connections that do not send: each header has its time, and when there are too many the oldest idle one goes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
