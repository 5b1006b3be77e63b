"""The command that adds an extra fits how the package was installed."""

from __future__ import annotations

import json

import pytest

from featurestep.core import errors

PLACES = [
    (None, "pip install 'featurestep[page]'"),
    ({"url": "file:///a%20b/c", "dir_info": {}}, "pip install '/a b/c[page]'"),
    (
        {"url": "file:///src/it", "dir_info": {"editable": True}},
        "pip install --editable '/src/it[page]'",
    ),
    (
        {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "0"}},
        "pip install 'featurestep[page] @ git+https://host/it.git'",
    ),
]


@pytest.mark.parametrize(("origin", "words"), PLACES)
def test_it_names_the_place_that_the_package_came_from(origin, words, monkeypatch):
    class Installed:
        def read_text(self, name):
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(errors, "distribution", lambda name: Installed())
    assert errors.install_command("page") == words
