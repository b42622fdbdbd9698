"""``pytest --operator package.module:object``: every law that applies, as a test of its own.

Loaded by every pytest run in an environment where the distribution is installed, so it imports nothing but
pytest until the option is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .kit.law import Law


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("operators", "compression operators")
    group.addoption(
        "--operator",
        action="append",
        default=[],
        metavar="MODULE:OBJECT",
        help="judge a compressor (an instance, or a function or class that builds one without arguments)",
    )
    group.addoption(
        "--operator-budget",
        choices=("quick", "standard", "deep"),
        default="standard",
        help="how much the laws may spend on it",
    )


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """With --operator and no path, nothing else is collected."""
    return True if _alone(config) else None


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add one test per law of each operator."""
    specifications = config.getoption("--operator")
    if _alone(config):
        items.clear()
    for specification in specifications:
        collector = OperatorCollector.from_parent(session, name=specification)
        items.extend(collector.collect())


def load(specification: str) -> Any:
    """Return the object that "package.module:object" names; the current folder is searched too.

    Raises
    ------
    pytest.UsageError
        If it cannot be imported.
    """
    module, colon, attribute = specification.partition(":")
    if not (module and colon and attribute):
        raise pytest.UsageError(f"--operator takes package.module:object; got {specification!r}")
    from ..outside import imported

    try:
        value = imported(specification)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"--operator {specification}: {error}") from error
    return value() if isinstance(value, type) else value


class OperatorCollector(pytest.Collector):
    """The laws of one operator."""

    def collect(self) -> Iterator[pytest.Item]:
        """Return one item for each law that applies."""
        from .check import laws_for
        from .kit.subject import Subject

        try:
            target = load(self.name)
            subject = target if isinstance(target, Subject) else Subject(target)
        except (TypeError, ValueError) as error:
            raise pytest.UsageError(f"--operator {self.name}: {error}") from error
        for law in laws_for(subject):
            if law.applies(subject) is None:
                yield LawItem.from_parent(self, name=law.name, law=law, target=target)


class LawItem(pytest.Item):
    """One law of one operator."""

    def __init__(self, *, law: Law, target: Any, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.law = law
        self.target = target

    def runtest(self) -> None:
        """Judge, and raise AssertionError with the verdict on a violation."""
        from .betting.budget import Budget
        from .parametrize import LawOf

        choice = self.config.getoption("--operator-budget")
        budget = {"quick": Budget.quick, "standard": Budget, "deep": Budget.deep}[choice]()
        LawOf(self.law, None, budget, None)(self.target)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the verdict alone; anything unexpected in full."""
        return str(excinfo.value) if excinfo.errisinstance(AssertionError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, None, str]:
        """Where the report says it comes from."""
        return self.path, None, f"{self.parent.name if self.parent else ''}: {self.law.name}"


def _alone(config: pytest.Config) -> bool:
    return bool(config.getoption("--operator")) and config.args_source is not pytest.Config.ArgsSource.ARGS
