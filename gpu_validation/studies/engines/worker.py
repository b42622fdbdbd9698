"""``python -m gpu_validation.studies.engines.worker FOLDER PARENT``: run the call in a folder."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from ...processes.linux import end_with_parent
from .engine import ANSWER, CALL


def main(folder: Path, parent: int) -> None:
    """Run the call and write the answer to the folder atomically."""
    end_with_parent(parent)
    call = pickle.loads((folder / CALL).read_bytes())
    temporary = folder / f"{ANSWER}.tmp"
    temporary.write_bytes(pickle.dumps(call()))
    os.replace(temporary, folder / ANSWER)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
