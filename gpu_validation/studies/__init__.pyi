from .grid.records import Cells as Cells
from .grid.study import Preset as Preset
from .outside import all_presets as all_presets
