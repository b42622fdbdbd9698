"""Check that this environment has the versions of tests/oldest.txt and the oldest Python: python tests/oldest.py."""

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Print each difference; return 1 if there is one."""
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "tests/oldest.txt").read_text(), flags=re.MULTILINE))
    pins["python"] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"][2:]
    installed = {name: version(name).partition("+")[0] for name in pins if name != "python"}
    installed["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
    wrong = [f"{name} is {installed[name]}, not {pin}\n" for name, pin in pins.items() if installed[name] != pin]
    sys.stderr.writelines(wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
