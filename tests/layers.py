"""Draw the layers of the four packages from their imports; ``python -m tests.layers`` writes them into CONTRIBUTING."""

import re
from pathlib import Path

import grimp

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=<!-- python -m tests.layers -->\n```text\n).*?(?=```\n)", re.DOTALL)
PACKAGES = {
    "gpu_validation": "real training, measured and judged",
    "ratedist": "the calculator: calls, plans, pilots",
    "operators": "compressors, exchanges, hooks, laws",
    "bounds": "limits, theorems, exact models",
}
IN_DETAIL = "gpu_validation.averaging"  # the modules of this package are drawn too


def layers(graph, parts):
    """Lists of parts, highest first: a part imports only parts of lower layers, and one of the next layer."""
    below = {
        part: {other for other in parts if other != part and graph.direct_import_exists(importer=part, imported=other)}
        for part in parts
    }
    found = []
    while left := sorted(set(parts) - {part for layer in found for part in layer}):
        found.insert(0, [part for part in left if not below[part] & set(left)])
    return found


def block(title, parts, package):
    """A title and one line per layer."""
    return "\n".join(
        [title, *("  " + " | ".join(part.removeprefix(f"{package}.") for part in layer) for layer in parts)]
    )


def picture():
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    modules = [module for module in graph.find_descendants(IN_DETAIL) if not graph.find_children(module)]
    detail = block(f"{IN_DETAIL}: its modules", layers(graph, modules), IN_DETAIL)
    blocks = []
    for package, purpose in PACKAGES.items():
        parts = graph.find_children(package) - {f"{package}.__main__"}
        for part in parts:
            graph.squash_module(part)
        blocks.append(block(f"{package}: {purpose}", layers(graph, parts), package))
    return "\n\n".join([*blocks, detail]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda _: picture(), PAGE.read_text()))
