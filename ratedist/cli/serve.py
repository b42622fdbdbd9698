"""The command that serves the calculator as a page and as JSON over HTTP."""

from __future__ import annotations

from typing import Any

from ..calls.call import Argument, Call, Command, Hosts, Text, Whole


def _run(**given: Any) -> None:
    from ..http.serve import serve

    serve(**given)


SERVE = Call(
    name="serve",
    summary="serve the calculator as a page and as JSON over HTTP",
    place=12,
    command=Command(
        arguments=(
            Argument("host", Text(), "127.0.0.1", help="address to bind (default: loopback only)"),
            Argument("port", Whole(), 8000, help="port (default: 8000)"),
            Argument("allow_host", Hosts(), (), help="further names that it is reached by"),
        ),
        examples=("--port 8000",),
        run=_run,
        show=lambda result: None,
    ),
)
