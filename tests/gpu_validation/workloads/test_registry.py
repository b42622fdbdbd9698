import pytest

import gpu_validation.workloads as workloads
from gpu_validation.workloads import Quadratic, Workload, all_workloads, workload


def test_every_exported_workload_is_found_by_its_name_and_documented():
    kinds = all_workloads()
    exported = {kind for kind in vars(workloads).values() if isinstance(kind, type) and issubclass(kind, Workload)} - {
        Workload
    }

    assert set(kinds.values()) == exported
    for name, kind in kinds.items():
        assert kind.name == name
        assert f"\n{name} " in workloads.__doc__
        assert workload(name) == kind()


def test_fields_can_be_given():
    assert workload("quadratic", eta=0.2) == Quadratic(eta=0.2)


def test_unknown_names_and_fields_are_refused():
    with pytest.raises(ValueError, match="no workload 'resnet21'; choose one of quadratic, "):
        workload("resnet21")
    with pytest.raises(TypeError, match="colour"):
        workload("quadratic", colour="red")
