"""Put machine code that was compiled for levels of x86-64 into the wheel, which is then one for this system."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CODE = "operators/compilation/code"


class CompiledLoops(BuildHookInterface):
    """A wheel of a tree in which ``python -m operators.precompile --portable`` has run; others stay pure."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; code for the processor of this machine alone stays out.

        Parameters
        ----------
        version : str
            "standard" or "editable".
        build_data : dict
            What hatch builds.
        """
        files = sorted((Path(self.root) / CODE).glob("*.x86-64-v*.bin"))
        if version == "standard" and files:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"] |= {str(file): f"{CODE}/{file.name}" for file in files}
