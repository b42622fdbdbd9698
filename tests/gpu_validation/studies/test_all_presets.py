from gpu_validation.studies import all_presets
from operators import parse, specification


def test_presets_are_found_by_name_and_quick_covers_what_it_promises():
    presets = all_presets()
    assert list(presets) == sorted(presets)
    assert {"quick", "smoke", "straggler", "wire"} <= set(presets)

    quick = presets["quick"]
    assert [o.name for o in quick.operators] == [
        *("identity", "topk", "qsgd", "scaled_sign", "sparse_dithering", "randomised_sparse_dithering")
    ]
    assert [c.workload.name for c in quick.cells] == [
        *("quadratic", "multiplicative", "kink", "heterogeneous", "logistic", "network", "quadratic", "quadratic")
    ]
    assert quick.processes == 4
    assert [len(c.taus) for c in quick.cells] == [3] * 6 + [1] * 2
    assert all(c.taus[0] == 1 for c in quick.cells)


def test_records_name_operators_so_that_they_can_be_built_again():
    for preset in all_presets().values():
        for operator in getattr(preset, "operators", ()):
            assert parse(specification(operator)) == operator
