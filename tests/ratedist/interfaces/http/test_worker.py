"""Whatever happens in a worker process, the caller hears what it was and the next request is answered."""

import asyncio
import os

import pytest

from ratedist.interfaces.http.worker import Fault, Overload, Pool, Worker

SURVIVED = {
    "type": (Fault, r"fault of ratedist, not of the request \(TypeError: unsupported operand type\(s\)\): report"),
    "value": (ValueError, r"^d must satisfy d >= 1; got d = 0: give more$"),
    "memory": (Overload, r"needs more than 2 GiB of memory"),
    "torch": (Overload, r"needs more than 2 GiB of memory"),
    "runtime": (Fault, r"\(RuntimeError: a generator\)"),
    "recursion": (Fault, r"\(RecursionError: maximum recursion depth exceeded"),
    "exit": (Fault, r"\(SystemExit: 3\)"),
    "interrupt": (Fault, r"\(KeyboardInterrupt\)"),
    "unspeakable": (Fault, r"\(\w+: .*lambda"),
}
ENDED = {
    "end": (Fault, "ended with status 5, a fault of ratedist"),
    "kill": (Overload, "was killed, as by a machine without memory: try again"),
    "abort": (Fault, "was ended by SIGABRT, a fault of ratedist"),
}


@pytest.fixture
def worker(module):
    """A process that answers with faults."""
    made = Worker(calls=module)
    yield made
    made.stop()


def test_every_exception_is_told_and_the_process_lives_on(worker):
    process = worker.ask("well", {})["value"]
    for name, (kind, words) in SURVIVED.items():
        with pytest.raises(kind, match=words):
            worker.ask(name, {})
        assert worker.ask("well", {})["value"] == process, name


def test_the_end_of_the_process_is_told_by_its_status_and_another_takes_over(worker):
    before = worker.ask("well", {})["value"]
    for name, (kind, words) in ENDED.items():
        with pytest.raises(kind, match=words):
            worker.ask(name, {})
        after = worker.ask("well", {})["value"]
        assert after != before
        before = after


@pytest.mark.parametrize(
    ("name", "limits", "status", "words"),
    [
        ("compute", {"limit_s": 0.2}, 422, r"takes more than 0\.2 s and was given up: ask for less"),
        ("sleep", {"wall_s": 0.5}, 503, r"nothing was found within 0\.5 s: try again later"),
    ],
)
def test_a_long_request_is_given_up_and_the_process_replaced(module, name, limits, status, words):
    worker = Worker(calls=module, **limits)
    try:
        before = worker.ask("well", {})["value"]
        with pytest.raises(Overload, match=words) as caught:
            worker.ask(name, {"seconds": 600})
        assert caught.value.status == status
        worker.wall_s = 60
        assert worker.ask("well", {})["value"] != before
    finally:
        worker.stop()


def test_a_long_request_does_not_hold_up_the_others(module):
    async def scenario():
        pool = Pool(2, worker=lambda: Worker(wall_s=600, calls=module))
        try:
            long = asyncio.create_task(pool.call("sleep", {"seconds": 600}))
            others = await asyncio.gather(*(pool.call("well", {}) for _ in range(20)))
            assert not long.done()
            assert len({found["value"] for found in others}) == 1
        finally:
            pool.close()
            with pytest.raises(Overload):
                await long

    asyncio.run(scenario())


def test_waiting_is_bounded_in_number_and_in_time(module, monkeypatch):
    monkeypatch.setattr("ratedist.interfaces.http.worker.MOST_WAITING", 3)

    async def scenario():
        pool = Pool(1, wait_s=0.3, worker=lambda: Worker(wall_s=600, calls=module))
        try:
            busy = asyncio.create_task(pool.call("sleep", {"seconds": 600}))
            await asyncio.sleep(0)
            found = await asyncio.gather(*(pool.call("well", {}) for _ in range(5)), return_exceptions=True)
            assert {error.status for error in found} == {503}
            texts = sorted(str(error) for error in found)
            assert texts == [
                *["3 requests are waiting already: try again in a few seconds"] * 2,
                *["no worker was free within 0.3 s: try again in a few seconds"] * 3,
            ]
        finally:
            pool.close()
            with pytest.raises(Overload):
                await busy

    asyncio.run(scenario())


def test_a_request_that_its_caller_abandons_keeps_its_worker_until_it_is_done(module):
    async def scenario():
        pool = Pool(1, worker=lambda: Worker(wall_s=600, calls=module))
        try:
            left = asyncio.create_task(pool.call("sleep", {"seconds": 0.5}))
            await asyncio.sleep(0)
            left.cancel()
            assert (await pool.call("well", {}))["value"] != os.getpid()
        finally:
            pool.close()

    asyncio.run(scenario())
