"""``ratedist serve``: uvicorn on the loopback address unless told otherwise."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Sequence

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
        from .connections import MOST_CONNECTIONS, Connection
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
