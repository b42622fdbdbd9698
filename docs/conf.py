"""Settings of the documentation: built offline, every warning an error (``make docs``)."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "ratedist"
author = "The ratedist authors"
project_copyright = "The ratedist authors, Apache-2.0"
version = release = installed_version("ratedist")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "citations",
    "entries",
    "known_names",
    "reproduced",
    "side_bars",
    "templates",
]
exclude_patterns = ["_build", "_static", "benchmarks", "data", "studies", "figures"]
nitpicky = True
nitpick_ignore = [  # types of annotations and base classes that are no public names
    ("py:class", name)
    for name in (
        "P",
        "accelerate.accelerator.Accelerator",
        "bounds.fields.Fields",
        "bounds.runtime.laws.GammaFamily",
        "flwr.app.ArrayRecord",
        "flwr.app.ConfigRecord",
        "flwr.app.Context",
        "flwr.app.Message",
        "flwr.app.MetricRecord",
        "flwr.clientapp.typing.ClientAppCallable",
        "flwr.serverapp.Grid",
        "gpu_validation.adapters.keywords.AveragedSteps",
        "operators.ddp.collectives.Transfer",
        "operators.ddp.hook.Hook",
        "gpu_validation.adapters.keywords.AveragingKeywords",
        "gpu_validation.processes.transport.Finished",
        "gpu_validation.processes.transport.InThread",
        "gpu_validation.processes.transport.NodeLinks",
        "gpu_validation.processes.transport.Transport",
        "gpu_validation.processes.transport.VectorTransport",
        "gpu_validation.processes.vectors.Vectors",
        "gpu_validation.studies.engines.engine.Engine",
        "gpu_validation.averaging.settings.ScheduledParts",
        "gpu_validation.averaging.merge.rules.Arrival",
        "gpu_validation.averaging.merge.rules.Common",
        "gpu_validation.averaging.merge.rules.Merge",
        "gpu_validation.averaging.merge.rules._WithinRound",
        "gpu_validation.averaging.exchange.movements.Payload",
        "gpu_validation.averaging.pacing.probing.ThirdOrder",
        "gpu_validation.records.exit_status.UsageError",
        "gpu_validation.studies.grid.planned.Planned",
        "gpu_validation.studies.grid.records.Design",
        "gpu_validation.studies.required.Required",
        "gpu_validation.studies.study.Kind",
        "gpu_validation.telemetry.recorder.WatchedMixing",
        "gpu_validation.telemetry.recorder.WatchedWorker",
        "hypothesis.strategies.SearchStrategy",
        "lightning.pytorch.callbacks.callback.Callback",
        "lightning.pytorch.core.module.LightningModule",
        "lightning.pytorch.trainer.trainer.Trainer",
        "operators.ddp.comm_hook.Copies",
        "operators.ddp.comm_hook.Reduces",
        "operators.ddp.collectives.Refusal",
        "operators.ddp.failures.Spare",
        "operators.ddp.register.HookSettings",
        "operators.laws.betting.power.Power",
        "operators.laws.kit.examples.Example",
        "operators.laws.kit.subject.Coder",
        "operators.laws.kit.verdict.About",
        "pandas.DataFrame",
        "ratedist.pilots.prediction.Predictor",
        "ratedist.pilots.prediction.Sent",
        "ratedist.pilots.progress.RoundTrials",
        "ratedist.pilots.timings.ExchangeTimings",
        "ratedist.pilots.timings.LinkTimings",
        "ratedist.pilots.timings.OperatorTrial",
        "ratedist.plans.ranking.Ranked",
        "ratedist.plans.run.Limits",
        "ratedist.plans.run.Rhythm",
        "ratedist.records.quantity.Stated",
        "rich.table.Table",
        "transformers.trainer.Trainer",
        "transformers.trainer_callback.TrainerCallback",
    )
]
nitpick_ignore += [("py:exc", name) for name in ("MeanRefused", "OutOfTime", "Undeclared", "UsageError")]

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks' outputs are committed; tests/docs/test_notebooks.py makes them again
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_param = False  # types are words, not links: "float, seconds"
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # prompts and what a session prints are not copied
copybutton_prompt_is_regexp = True

bibtex_bibfiles = ["../bounds/references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "label"

html_theme = "furo"
html_title = "ratedist"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["wide_formulas.js"]
html_copy_source = False
html_show_sphinx = False
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}
