"""Workloads by name."""

from __future__ import annotations

from typing import Any

from operators import outside

from .characters import Characters
from .heterogeneous import HeterogeneousQuadratics
from .kink import Kink
from .lenet import LeNet
from .logistic import LogisticRegression
from .multiplicative import MultiplicativeQuadratic
from .quadratic import Quadratic
from .resnet20 import ResNet20
from .resnet50 import ResNet50
from .ridge import Ridge
from .small_network import SmallNetwork
from .vgg16 import Vgg16
from .workload import Workload

_KINDS: tuple[type[Workload], ...] = (
    Quadratic,
    MultiplicativeQuadratic,
    HeterogeneousQuadratics,
    Kink,
    Ridge,
    LogisticRegression,
    SmallNetwork,
    LeNet,
    Characters,
    ResNet20,
    Vgg16,
    ResNet50,
)


def all_workloads() -> dict[str, type[Workload]]:
    """Name -> class, from the problems whose law is known to the largest network."""
    return {kind.name: kind for kind in _KINDS}


def workload(name: str, **fields: Any) -> Workload:
    """Return the workload of a name, with its fields changed where given.

    ``workload("resnet20", source=Cifar("cifar-10-binary.tar.gz"), split=Dirichlet(4, alpha=0.3))`` One from outside has
    the name "module:Class", or the one by which an installed package announces it in the group ``ratedist.workloads``.

    Parameters
    ----------
    name : str
        Name of the workload.
    **fields
        Its fields that differ from the defaults.

    Raises
    ------
    ValueError
        For an unknown name or what the class raises.
    TypeError
        For a field it does not have.
    """
    kinds = all_workloads()
    return (kinds[name] if name in kinds else _from_outside(name))(**fields)


def _from_outside(name: str) -> type[Workload]:
    offered, reference = outside.announced(outside.WORKLOADS), outside.split(name)
    if name in offered:
        kind = offered[name].load()
    elif reference is not None and not reference[1]:
        kind = outside.load(reference[0], "workload")
    else:
        names = ", ".join([*all_workloads(), *offered])
        raise ValueError(f"no workload {name!r}; choose one of {names}, or module:Class")
    if not (isinstance(kind, type) and issubclass(kind, Workload)):
        raise ValueError(f"{name} must be a subclass of gpu_validation.workloads.Workload; got {kind!r}: derive it")
    return kind
