"""What an adapter cannot do, in one sentence with the way out."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

SCALED = SimpleNamespace(scaler=object())


def test_a_missing_library_is_named_with_the_command_that_installs_it():
    code = (
        "import sys\n"
        "from importlib import import_module\n"
        "for library, adapter in (('transformers', 'hugging_face'), ('lightning', 'lightning')):\n"
        "    sys.modules[library] = None\n"
        "    try:\n"
        "        import_module('gpu_validation.adapters.' + adapter)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert result.stdout.splitlines() == [
        f'gpu_validation.adapters.{adapter} needs {library}, which is not installed: pip install "ratedist[adapters]"'
        for library, adapter in (("transformers", "hugging_face"), ("lightning", "lightning"))
    ]


@pytest.mark.thorough
def test_a_gradient_scaler_allows_no_measured_schedule():
    from gpu_validation.adapters import hugging_face, lightning

    callback = hugging_face.AveragingCallback(SimpleNamespace(accelerator=SCALED), schedule="auto")
    with pytest.raises(ValueError, match="fp16=True does not allow: give bf16=True, or another schedule"):
        callback.on_train_begin(None, None, None)
    trainer, module = SimpleNamespace(precision_plugin=SCALED), SimpleNamespace(automatic_optimization=True)
    with pytest.raises(ValueError, match='no gradient scaler: give precision="bf16-mixed"'):
        lightning.AveragingCallback(schedule="auto").on_train_start(trainer, module)
