"""What the tests of the laws share: generators of their own that begin every test alike."""

import pytest

from . import outside


@pytest.fixture(autouse=True)
def own_generators_begin_alike():
    """As the global streams do: see tests/conftest.py."""
    outside.GENERATOR.manual_seed(outside.SEED)
