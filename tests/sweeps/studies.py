"""A small sweep as a file, and how far its store is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

PROBLEM = """
[problem]
n = 60
d = 30
width = 40
noise_std = 0.1
step_exponent = 0.3
[grid]
ridge = [0.01, 0.1, 1.0]
"""


def stored(path: Path) -> int:
    """Results in a store that may not be there yet."""
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return int(db.execute("SELECT count(*) FROM results").fetchone()[0])
        finally:
            db.close()
    except sqlite3.Error:
        return 0
