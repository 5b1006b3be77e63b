"""`featurestep study`: the list, the claims of the staircase on made-up data, the real thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from click.testing import CliRunner, Result

from featurestep import studies
from featurestep.cli import main
from featurestep.figures import chosen
from featurestep.studies import STUDIES, StudyClaimFailed, staircase
from featurestep.studies.staircase import CASES, STEPS

STUDY = STUDIES["staircase"]


def made_up() -> xarray.Dataset:
    """Data on which every claim holds."""
    share = np.full((3, 3, STEPS), 0.9)
    share[:, 0] = 20.0
    share[:2, 1, 1:] = 5.0
    share[1, 2, 2] = 4.0
    share[0, 2] = np.nan
    return xarray.Dataset(
        {
            "simulated": (
                ("case", "steps"),
                [[1.2, 0.6, 0.4, 0.3], [2.4, 1.8, 1.2, 0.9], [1.3, 1.2, 1.2, 1.1]],
            ),
            "standard_error": (("case", "steps"), np.full((3, 4), 0.02)),
            "share": (("case", "direction", "after"), share),
            "predicted": (
                ("case", "first"),
                [[1.25, 0.61, 0.41], [2.4, 1.81, 1.22], [1.3, 1.21, 1.18]],
            ),
            "floor": ("case", [0.05, 1.06, 1.04]),
            "floor_second": ("case", [0.04, 0.04, 1.04]),
        },
        {
            "case": [case.name for case in CASES],
            "steps": range(STEPS + 1),
            "after": range(1, STEPS + 1),
            "direction": [1, 2, 3],
        },
    )


FALSE = [
    ("simulated", {"case": 0, "steps": 1}, 0.8, "one stair: one step within"),
    ("predicted", {"case": 0, "first": 2}, 0.6, "one stair: two steps within"),
    ("simulated", {"case": 1, "steps": 1}, 1.0, "two stairs: one step reaches"),
    ("simulated", {"case": 1, "steps": 3}, 1.03, "go below the floor of one"),
    ("simulated", {"case": 2, "steps": 3}, 0.9, "a leap: after 3 steps"),
    ("share", {"case": 1, "direction": 1, "after": 0}, 3.0, "find one direction each"),
    ("share", {"case": 1, "direction": 2, "after": 2}, 1.0, "find one direction each"),
    ("share", {"case": 2, "direction": 1, "after": 1}, 4.0, "a leap: after 3 steps"),
    ("predicted", {"case": 2, "first": 1}, np.nan, "a leap: one step within"),
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["study", *arguments])


def test_true_data_bear_out_the_answer() -> None:
    assert all(claim.holds for claim in STUDY.check(made_up()))


@pytest.mark.parametrize(("variable", "where", "value", "words"), FALSE)
def test_false_data_fail_with_the_claim_they_contradict(
    variable: str, where: dict[str, int], value: float, words: str
) -> None:
    data = made_up()
    data[variable][where] = value
    with pytest.raises(StudyClaimFailed, match="study staircase contradicts") as caught:
        STUDY.check(data)
    assert any(words in claim.text for claim in caught.value.claims if not claim.holds)


def test_the_list_has_the_questions() -> None:
    lines = run("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)
    assert all(line.endswith("?") for line in lines)
    assert chosen(STUDIES, "all") == tuple(STUDIES.values())


def test_the_answer_is_written() -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    assert f"## {STUDY.name}" in text
    assert STUDY.question in text


@pytest.mark.parametrize("arguments", [("nothing",), ()])
def test_bad_names_are_one_line(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: NAME must be all or one of ")


def test_files_and_claims_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made_up()
    monkeypatch.setitem(studies.STUDIES, "staircase", replace(STUDY, compute=lambda q, p: data))
    result = run("staircase", "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("  holds: ") == len(STUDY.check(data))
    names = [f"staircase.{kind}" for kind in ("nc", "png", "svg")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    data["simulated"][{"case": 1, "steps": 3}] = 1.2
    failed = run("staircase", "--output", str(tmp_path))
    assert failed.exit_code == 1
    assert "FAILS: two stairs" in failed.stdout


@pytest.mark.slow
def test_the_quick_study_bears_out_its_claims() -> None:
    told: list[float] = []
    data = staircase.compute(True, told.append)
    assert told[-1] == pytest.approx(1.0)
    STUDY.draw(data)
    assert STUDY.check(data)
