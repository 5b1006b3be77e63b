"""The command line as tests use it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from click.testing import CliRunner, Result

from featurestep.cli import main


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def run_json(*arguments: str, code: int = 0) -> Any:
    return strict_json(run(*arguments, "--json", code=code).stdout)


def strict_json(text: str | bytes) -> Any:
    """What JSON says; NaN and infinities are not JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"not strict JSON: {constant}")

    return json.loads(text, parse_constant=refuse)


def examples(*command: str) -> list[list[str]]:
    """The arguments of every example in a command's help."""
    start = " ".join(["featurestep", *command])
    lines = run(*command, "--help").stdout.splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith(start)]


class Ran(Exception):
    """The work would have begun."""


def stop(*args: Any, **kwargs: Any) -> None:
    """Stands in for the work."""
    raise Ran


def run_until_work(arguments: list[str]) -> None:
    """Read and check everything; `stop` has taken the work's place."""
    result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, Ran), (arguments, result.output)
