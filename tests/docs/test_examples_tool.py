"""The tool that runs the pages' examples: it must find what is wrong, and the README is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.tools import examples, pages
from docs.tools.agreement import agrees
from docs.tools.pages import ROOT


@pytest.mark.parametrize(
    ("promised", "printed", "same"),
    [
        ("error 0.1234", "error 0.1234", True),
        ("error 0.1234", "error 0.1235", True),  # one unit of the last digit
        ("error 0.1234", "error 0.1237", False),
        ("error 0.1234", "loss 0.1234", False),
        ("3 spikes", "4 spikes", False),  # counts are exact
        (" a   1.0\n ────── ", "a 1.0\n ──", True),
        ("took ... s, 1.50", "took 3.2 s, 1.50", True),
        ("1.2e-05", "1.3e-05", True),
        ("1.2e-05", "1.2e-04", False),
        ("residual 6.75e-14", "residual 6.57e-14", True),  # rounding, of this processor
        ("residual 6.75e-14", "residual 6.57e-08", False),
        ("−0.5", "-0.5", True),
        ("H1 + H2", "H1 + H3", False),  # a digit in a name is no number
        ("[0.1 0.2]", "[0.1 0.2 0.3]", False),
        ("ok", "", False),
    ],
)
def test_agreement(promised: str, printed: str, same: bool) -> None:
    assert agrees(promised, printed) is same


def page_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


def test_wrong_outputs_and_failures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
```python
x = 2
print(x)
```

```text
3
```

```python
x + 1
```

```text
3
```

```python
1 / 0
```

<!-- not run: it would fail -->
```python
raise SystemExit
```

<!-- slow -->
```python
y = 1
```
"""
    outcomes = examples.run_page(page_with(tmp_path, monkeypatch, text))
    assert [outcome.complaint is None for outcome in outcomes] == [False, True, False]
    assert "ZeroDivisionError" in (outcomes[2].failure or "")
    assert len(examples.run_page(tmp_path / "page.md", slow=True)) == 4


def test_commands_are_run_and_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "```sh\npip install nothing\nfeaturestep --version\n```\n\n```text\nnonsense\n```\n\n"
    text += "```sh\nfeaturestep predict --ridge -1\n```\n"
    outcomes = examples.run_page(page_with(tmp_path, monkeypatch, text))
    assert "version" in outcomes[0].printed
    assert all(outcome.complaint for outcome in outcomes)
    assert "exit code 2" in (outcomes[1].failure or "")


def test_update_writes_what_was_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, monkeypatch, "```python\nprint(7)\n```\n\n```text\n```\n")
    assert examples.update(page, examples.run_page(page)) == 1
    assert page.read_text() == "```python\nprint(7)\n```\n\n```text\n7\n```\n"
    assert examples.run_page(page)[0].complaint is None


def test_update_keeps_lines_that_leave_something_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "```python\nprint('error 8.5\\ntook 3.2 s')\n```\n\n"
    page = page_with(tmp_path, monkeypatch, code + "```text\nerror 7.1\ntook ...\n```\n")
    assert examples.update(page, examples.run_page(page)) == 1
    assert page.read_text().endswith("```text\nerror 8.5\ntook ...\n```\n")


@pytest.mark.slow  # `make test` runs the examples of every page beside the tests
def test_the_readme_prints_what_it_says() -> None:
    outcomes = examples.run_page(ROOT / "README.md")
    assert len(outcomes) >= 2
    assert not [outcome.complaint for outcome in outcomes if outcome.complaint]


def test_reasons_stand_where_an_example_is_not_run() -> None:
    for page in pages.pages():
        for example in pages.examples(page):
            assert example.mark.partition(":")[0] in ("", "slow", "any output", "not run")
