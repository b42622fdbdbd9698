"""Workloads by name."""

from __future__ import annotations

from typing import Any

from operators import outside

from .images import ResNet20, ResNet50, Vgg16
from .linear import LogisticRegression, Ridge
from .network import Characters, LeNet, SmallNetwork
from .quadratic import HeterogeneousQuadratics, Kink, MultiplicativeQuadratic, Quadratic
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
    """Return the workload classes by name, from problems of known law to the largest network."""
    return {kind.name: kind for kind in _KINDS}


def workload(name: str, **fields: Any) -> Workload:
    """Return the workload with a name and changed fields.

    ``workload("resnet20", source=Cifar("cifar-10-binary.tar.gz"), split=Dirichlet(4, alpha=0.3))``

    An external workload has the name "module:Class", or the name that an installed package registers in the group
    ``ratedist.workloads``.

    Parameters
    ----------
    name : str
        Name of the workload.
    **fields
        Fields that differ from the defaults.

    Raises
    ------
    ValueError
        For an unknown name, or as the class raises.
    TypeError
        For a field that the class does not have.
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
