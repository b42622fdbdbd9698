"""Every back end has the functions of a primitive's contract, with its parameters and defaults."""

import inspect
from importlib import import_module

import pytest
import torch

from operators.kernels import Kernels, kernels_for
from operators.kernels.backend import use

from .equality import OTHERS


@pytest.mark.parametrize("primitive", Kernels.__annotations__)
@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
def test_back_end_has_what_the_contract_says(backend, primitive):
    contract = getattr(import_module(f"operators.kernels.{primitive}"), primitive.capitalize())
    with use(backend):
        kernels = getattr(kernels_for(torch.empty(0)), primitive)
    for name, method in inspect.getmembers(contract, inspect.isfunction):
        if not name.startswith("_"):
            promised = list(inspect.signature(method).parameters.values())[1:]
            given = inspect.signature(getattr(kernels, name)).parameters.values()
            assert [(p.name, p.default) for p in given] == [(p.name, p.default) for p in promised], name
