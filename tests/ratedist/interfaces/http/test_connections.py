"""Many clients, slow clients and wrong hosts, over real sockets."""

import contextlib
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import uvicorn

from ratedist.interfaces.http import serve as connections
from ratedist.interfaces.http.app import create_app
from ratedist.interfaces.http.worker import Pool, Worker

POINT = {"theorem": "worst_case_bits", "at": {"d": 1000, "alpha": "0.3"}}
WHOLE = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
PART_OF_A_HEADER = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-"
PART_OF_A_BODY = b"POST /v1/bits HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{"


def address(server):
    parts = urlsplit(server.url)
    return parts.hostname, parts.port


@pytest.mark.parametrize("beginning", [b"", PART_OF_A_HEADER, PART_OF_A_BODY], ids=["nothing", "header", "body"])
def test_half_open_requests_do_not_keep_others_out(server, beginning):
    with contextlib.ExitStack() as stack:
        for _ in range(connections.MOST_CONNECTIONS + 50):
            one = stack.enter_context(socket.create_connection(address(server), timeout=60))
            one.sendall(beginning)
        assert server.get("/healthz")[0] == 200
        status, body, _ = server.post("/v1/certify", POINT)
        assert status == 200, body


def test_64_clients_are_all_answered(server):
    with ThreadPoolExecutor(64) as clients:
        found = list(clients.map(lambda _: server.post("/v1/certify", POINT)[0], range(200)))
    assert found == [200] * 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example:80", "[::1"])
def test_a_page_of_another_site_cannot_read_the_answers(server, host):
    for method, path in (("GET", "/"), ("GET", "/v1/theorems"), ("POST", "/v1/bits")):
        connection = http.client.HTTPConnection(*address(server), timeout=60)
        connection.request(method, path, headers={"host": host})
        answer = connection.getresponse()
        assert answer.status == 421
        message = json.loads(answer.read())["detail"][0]["msg"]
        assert message.startswith("the host must be an address or one of 127.0.0.1, ")
        assert message.endswith(f"got {host!r}: start the server with --allow-host")
        connection.close()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "192.168.1.5"])
def test_its_own_names_and_addresses_are_answered(server, host):
    connection = http.client.HTTPConnection(*address(server), timeout=60)
    connection.request("GET", "/healthz", headers={"host": host})
    assert connection.getresponse().status == 200
    connection.close()


@contextlib.contextmanager
def serving(app):
    """(host, port) of a server in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, http=connections.Connection, log_level="critical", ws="none")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not running.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield listener.getsockname()
        finally:
            running.should_exit = True
            thread.join(60)


async def empty(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


def received(connection):
    """All that is sent until the other end closes."""
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)


def test_a_header_that_does_not_end_is_cut_off_however_it_drips(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_S", 0.3)
    with serving(empty) as place:
        for before, beginning in ((b"", b""), (b"", PART_OF_A_HEADER), (WHOLE, PART_OF_A_HEADER)):
            with socket.create_connection(place, timeout=60) as one:
                one.sendall(before)
                assert not before or one.recv(4096).startswith(b"HTTP/1.1 200 OK")
                one.sendall(beginning)
                answer = received(one)
            assert b"HTTP/1.1 408 Request Timeout\r\n" in answer, beginning
            assert answer.endswith(b'send it faster", "type": "limit"}]}')
        with socket.create_connection(place, timeout=60) as one, contextlib.suppress(OSError):
            one.sendall(PART_OF_A_HEADER)
            while True:  # ends with a reset, or never
                one.sendall(b"x")
                time.sleep(0.01)


def test_a_connection_that_is_kept_serves_many_requests():
    with serving(empty) as place:
        connection = http.client.HTTPConnection(*place, timeout=60)
        for _ in range(20):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b""
        connection.close()


def test_a_fault_is_answered_with_500_and_the_truth(module):
    names = iter(["type", "memory", "kill", "end", "well"])

    class Faulty(Worker):
        def ask(self, name, given):
            return super().ask(next(names), given)

    pool = Pool(1, worker=lambda: Faulty(calls=module))
    found = []
    with serving(create_app(pool=pool)) as place:
        for _ in range(5):
            connection = http.client.HTTPConnection(*place, timeout=60)
            connection.request("GET", "/v1/theorems")
            answer = connection.getresponse()
            found.append((answer.status, answer.read().decode()))
            connection.close()
    assert [status for status, _ in found] == [500, 422, 503, 500, 200]
    assert "fault of ratedist, not of the request (TypeError" in found[0][1]
    assert "more than 2 GiB of memory" in found[1][1]
    assert "was killed" in found[2][1]


def test_a_request_whose_client_has_left_is_not_computed():
    asked, may_end = [], threading.Event()

    class Slow(Worker):
        def start(self):
            pass

        def ask(self, name, given):
            asked.append(given["d"])
            assert may_end.wait(120)
            return {"value": 1}

    def send(place, d):
        body = json.dumps({"d": d, "omega": [1, 2]}).encode()
        head = f"POST /v1/bits HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
        one = socket.create_connection(place, timeout=120)
        one.sendall(head.encode() + b"content-type: application/json\r\n\r\n" + body)
        return one

    def server_has_read_on():
        with socket.create_connection(place, timeout=120) as one:
            one.sendall(WHOLE.replace(b"/ ", b"/healthz ").replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            assert received(one).startswith(b"HTTP/1.1 200 OK")

    with serving(create_app(pool=Pool(1, worker=Slow))) as place, contextlib.ExitStack() as stack:
        stack.callback(may_end.set)
        first = stack.enter_context(send(place, 10))
        while not asked:
            time.sleep(0.01)
        left = [send(place, d) for d in range(20, 25)]
        server_has_read_on()
        for one in left:
            one.close()
        server_has_read_on()
        last = stack.enter_context(send(place, 30))
        server_has_read_on()
        may_end.set()
        assert received(first).startswith(b"HTTP/1.1 200 OK")
        assert received(last).startswith(b"HTTP/1.1 200 OK")
    assert asked == [10, 30]
