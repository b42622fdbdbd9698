"""``ratedist serve``: uvicorn on the loopback address unless told otherwise."""

from __future__ import annotations

import ipaddress
import sys

MOST_CONNECTIONS = 256
KEEP_ALIVE_S = 5


def serve(*, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve until interrupted.  Raises ValueError without the extra ``serve`` or for a bad port."""
    if not 0 < port < 1 << 16:
        raise ValueError(f"port must satisfy 1 <= port <= 65535; got port = {port}: choose for example 8000")
    try:
        import uvicorn

        from .app import create_app
    except ImportError as missing:
        raise ValueError(f'serving needs {missing.name}: pip install "ratedist[serve]"') from None
    if not _is_loopback(host):
        sys.stderr.write(f"ratedist serve: {host} can be reached from other machines; there is no authentication\n")
    sys.stderr.write(f"ratedist serve: http://{host}:{port}/ (Ctrl-C ends it)\n")
    uvicorn.run(
        create_app(),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        ws="none",
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
