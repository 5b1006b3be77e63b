"""What pages and code say of each other: links, equation numbers, public names, versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import featurestep
from docs.tools import architecture, generate
from docs.tools.pages import DOCS, ROOT, fences, pages

SOURCE = ROOT / "src" / "featurestep"
THEORY = (DOCS / "theory.md").read_text()
WRITTEN = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def prose(path: Path) -> str:
    """A page without its fenced blocks and its code."""
    lines = path.read_text().splitlines()
    for block in fences(path.read_text()):
        lines[block.start : block.stop] = [""] * (block.stop - block.start)
    return re.sub(r"`[^`\n]*`|\$\$.+?\$\$|\$[^$]+\$", "", "\n".join(lines), flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The places that a link into a page may name, as GitHub makes them from headings."""
    found = set()
    for title in re.findall(r"^#+ (.+)$", prose_with_code(path), flags=re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", title.strip().lower())
        found.add(plain.replace(" ", "-"))
    return found


def prose_with_code(path: Path) -> str:
    lines = path.read_text().splitlines()
    for block in fences(path.read_text()):
        lines[block.start : block.stop] = [""] * (block.stop - block.start)
    return "\n".join(lines)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists() or "generated" in file.parts, f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name}: no heading for {target}"


def numbers(text: str) -> set[str]:
    """`5, 6`, `7–10` or `26a` as single numbers; letters and primes stay."""
    found: set[str] = set()
    for part in re.split(r",\s*|\s+and\s+|\s+to\s+", text):
        ends = re.split(r"[–-]", part)
        if len(ends) == 2 and all(end.isdigit() for end in ends):
            found.update(str(k) for k in range(int(ends[0]), int(ends[1]) + 1))
        else:
            found.update(ends)
    return found


TAGS = set(re.findall(r"\\tag\{(\w+)\}", THEORY))
TAGS |= {tag.rstrip("ab") for tag in TAGS}  # (26) is (26a) and (26b)
SECTIONS = set(re.findall(r"^## (\d+)\. ", THEORY, flags=re.MULTILINE))
ONE = r"\d+[a-z]?(?:[–-]\d+[a-z]?)?"
CITED = re.compile(rf"\beqs?\.\s+({ONE}(?:(?:,\s*|\s+and\s+|\s+to\s+){ONE})*)")


EQUATIONS = (
    (1, 88),
    (90, 126),
    (130, 152),
    (160, 181),
)  # first and last number of each topic
TOPICS = ((1, 35), (40, 44), (50, 53), (60, 66))  # the same for sections


def test_the_theory_is_numbered_without_gaps() -> None:
    """But for the numbers between topics: one step, other losses, small d, several steps.

    Small d leaves out (138) of its derivation.
    """
    for found, blocks in ((filter(str.isdigit, TAGS), EQUATIONS), (SECTIONS, TOPICS)):
        expected = [k for first, last in blocks for k in range(first, last + 1)]
        assert sorted(map(int, found)) == expected


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_cited_equations_and_sections_exist(path: Path) -> None:
    text = path.read_text()
    for cited in CITED.findall(text):
        missing = {n for n in numbers(cited) if n not in TAGS}
        assert not missing, f"{path.name} cites eq. {missing}"
    for cited in re.findall(r"theory, sections?\s+(\d+)", text):
        assert cited in SECTIONS, f"{path.name} cites section {cited}"


def test_numbered_formulas_have_no_double_backslash() -> None:
    """Sphinx puts a formula with one into an environment that allows no number: write \\cr."""
    displayed = re.findall(r"\$\$(.+?)\$\$", THEORY, flags=re.DOTALL)
    assert any("tag{" in formula for formula in displayed)
    assert not [f for f in displayed if "\\\\" in f and "tag{" in f]


def test_there_are_citations_to_check() -> None:
    cited = [n for path in SOURCE.rglob("*.py") for n in CITED.findall(path.read_text())]
    assert len(cited) > 30


def test_every_public_name_has_an_example_that_runs() -> None:
    shown = generate.api_examples()
    names = {path.rpartition(".")[2] for path in generate.public_names()}
    without = sorted(n for n in names if not generate.has_example(shown.get(n, "")))
    assert not without, f"docs/api-examples.md has no example of {without}"
    unknown = set(shown) - names
    assert not unknown, f"docs/api-examples.md speaks of {unknown}, which is not public"


def test_every_public_name_says_what_it_is_and_is_in_the_reference() -> None:
    page = generate.api_page()
    for path, value in generate.public_names().items():
        assert (value.__doc__ or "").strip(), path
        assert f":: {path}\n" in page


def test_the_diagram_shows_the_imports_of_today() -> None:
    """After a change of imports: python -m docs.tools.architecture."""
    assert architecture.TARGET.read_text() == architecture.drawing()


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None
    assert project["version"] == featurestep.__version__ == citation[1]
    assert re.search(
        rf"^## \[{re.escape(featurestep.__version__)}\] - \d{{4}}-\d{{2}}-\d{{2}}$",
        (ROOT / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )
    assert f"version = {{{featurestep.__version__}}}" in (ROOT / "README.md").read_text()


def test_the_readme_says_how_many_inaccurate_predictions_have_a_note() -> None:
    rows = [line.split("|") for line in (ROOT / "docs/validity-map.md").read_text().splitlines()]
    off = {row[1].strip(" *"): row[-2].strip() for row in rows if len(row) == 9}
    words = (
        f"{off['with a note']} of the {off['all']} problems that are surely off by more than 3 %"
    )
    assert words in (ROOT / "README.md").read_text()
