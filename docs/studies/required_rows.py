"""Write the rows that each preset requires, from the recorded runs: ``python docs/studies/required_rows.py [FOLDER]``.

FOLDER has results of ``ratedist run NAME --seed 0 --out FOLDER`` of studies without committed records, such as
quick and smoke.  The rows of other studies are kept as they are.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from gpu_validation.records.storage import read_lines, write_atomically
from gpu_validation.studies import all_presets
from gpu_validation.studies.required import LISTED, as_list, required_of

RECORDS = Path(__file__).parents[1] / "data" / "studies"
OF_THE_MACHINE = (
    "interface bytes, whole cell",
    "payload within the bytes of TCP streams",
)  # not every system counts them


def main(folder: Path | None) -> None:
    """Judge all records without a list, so that no row of an earlier list is repeated."""
    lists = json.loads(LISTED.read_text(encoding="utf-8"))
    for name, study in all_presets().items():
        paths = [RECORDS / f"{name}.jsonl", *([folder / name / "measurements.jsonl"] if folder else [])]
        path = next((path for path in paths if path.exists()), None)
        if path is not None:
            rows = study.judge([record for record in read_lines(path) if "unit" in record])
            required = Counter()
            for key, times in required_of(rows).items():
                required[key._replace(judged=key.judged and key.quantity not in OF_THE_MACHINE)] += times
            lists[name] = as_list(required)
    lines = [f'"{name}": {json.dumps(lists[name], ensure_ascii=False)}' for name in sorted(lists)]
    write_atomically(LISTED, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
