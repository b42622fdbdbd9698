"""No request computes longer than the limit, and the next one is answered again."""

import asyncio
import time

import pytest

from ratedist.http.worker import MOST_WAITING, Overload, Worker

POINT = {"theorem": "unbiased_bits", "at": {"d": 10, "omega": 1}}
SLOW = {"op": "tcdq:omega=1", "seed": 0}


@pytest.mark.slow
def test_a_long_request_is_given_up_and_the_worker_replaced():
    async def scenario():
        worker = Worker(limit_s=30)
        try:
            assert (await worker.call("certify", POINT))["value"] == 5
            worker.limit_s = 0.1
            start = time.monotonic()
            with pytest.raises(Overload, match=r"longer than 0.1 s and was given up") as caught:
                await worker.call("check", SLOW)
            assert caught.value.status == 422
            assert time.monotonic() - start < 5
            worker.limit_s = 30
            with pytest.raises(ValueError, match="try worst_case_bits"):
                await worker.call("certify", {"theorem": "worst_case", "at": {}})
            assert (await worker.call("certify", POINT))["value"] == 5
        finally:
            worker.close()

    asyncio.run(scenario())


def test_too_many_waiting_requests_are_refused_at_once():
    async def scenario():
        worker = Worker()
        worker._waiting = MOST_WAITING
        with pytest.raises(Overload, match="waiting already: try again"):
            await worker.call("certify", POINT)

    asyncio.run(scenario())
