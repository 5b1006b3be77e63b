"""What the workers of the tests do."""

from __future__ import annotations

import os
import time
from pathlib import Path

from featurestep.processes import report_progress


def work(what: str, value: str = "") -> object:
    if what == "die" and not Path(value).exists():
        Path(value).touch()
        os._exit(3)
    if what == "sleep":
        time.sleep(float(value))
    if what == "print":
        print("noise on stdout")
    if what == "raise":
        raise ValueError(value)
    if what == "tell":
        report_progress(0.5)
    return os.getpid() if what == "who" else value
