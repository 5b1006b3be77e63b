"""`featurestep explore` on the command line: one line when it cannot start, and a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from featurestep.cli import main
from featurestep.core.errors import install_command
from featurestep.page import listener

from .conftest import COMMAND


@pytest.mark.parametrize("name", ["flask", "plotly", "waitress"])
def test_without_the_extra_one_line_says_what_to_install(name: str) -> None:
    code = (
        "import importlib.util as u, sys; found = u.find_spec; "
        f"u.find_spec = lambda n, *a: None if n == {name!r} else found(n, *a); "
        "from featurestep.cli import main; main(['explore', '--no-browser'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr == f"error: the page needs {name}: {install_command('page')}\n"


@pytest.mark.parametrize("port", ["-1", "70000", "http", "1.5", "True"])
def test_a_bad_port_is_one_line(port: str) -> None:
    result = CliRunner().invoke(main, ["explore", "--no-browser", f"--port={port}"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: port must be a whole number from 0 to 65535; got ")
    assert result.stderr.count("\n") == 1


def test_a_taken_port_is_one_line() -> None:
    taken = listener(0)
    try:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["explore", "--no-browser", "--port", str(port)])
        assert result.exit_code == 2
        assert result.stderr == f"error: port must be free (address already in use); got {port}\n"
    finally:
        taken.close()


def test_the_page_needs_neither_flask_nor_waitress_to_be_imported_first() -> None:
    code = (
        "import sys, featurestep.page.views, featurestep.cli; "
        "print([m for m in ('flask', 'waitress', 'plotly') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="counts processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_every_process(how: signal.Signals) -> None:
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
    assert found is not None
    with urllib.request.urlopen(found.group(), timeout=60) as answer:
        assert answer.status == 200
    workers = children(process.pid)
    assert workers
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors
    until = time.monotonic() + 20  # Python's own helper process ends a moment after its parent
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def children(parent: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            if int(status.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry))
    return found
