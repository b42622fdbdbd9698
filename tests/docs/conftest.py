"""Tests of the documentation share ``pages`` and the modules of docs/_ext."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs/_ext")]
