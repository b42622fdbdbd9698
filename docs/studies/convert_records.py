"""Convert the records of studies from format 0.1, once: settings as values in place of a ``repr``, code as a digest.

``python docs/studies/convert_records.py`` rewrites docs/data/studies.  The values of the units are not touched.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from gpu_validation.records.environment import PACKAGES
from gpu_validation.studies import all_presets
from gpu_validation.studies.record_file import described

ROOT = Path(__file__).parent.parent.parent
RECORDS = ROOT / "docs" / "data" / "studies"


@cache
def code_at(commit: str) -> str:
    """The digest of the packages' files in a commit, as ``Environment`` computes it; unknown for a changed tree."""
    present = subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, capture_output=True)
    if present.returncode:
        return "unknown"
    archive = subprocess.run(["git", "archive", commit, *PACKAGES], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.name.endswith(".py")}
    digest = hashlib.sha256()
    for path in sorted(map(Path, files)):
        name, content = path.as_posix().encode(), files[path.as_posix()]
        digest.update(b"%d %s %d %s" % (len(name), name, len(content), content))
    return digest.hexdigest()[:16]


def converted(line: dict[str, Any], study: Any) -> dict[str, Any]:
    """One line of a file of records."""
    if "study" not in line:
        return line
    assert line["study"] == repr(study), study.name
    return {**line, "code": code_at(line["commit"]), "study": described(study)}


def main() -> None:
    """Convert all files, and check that no unit has changed."""
    for name, study in all_presets().items():
        path = RECORDS / f"{name}.jsonl"
        if path.exists():
            lines = [json.loads(text) for text in path.read_text().splitlines()]
            new = [converted(line, study) for line in lines]
            assert [line for line in new if "unit" in line] == [line for line in lines if "unit" in line]
            path.write_text("".join(json.dumps(line) + "\n" for line in new))
            print(name, [line["code"] for line in new if "study" in line])


if __name__ == "__main__":
    main()
