from pathlib import Path

import pytest

from semif_bento.cli.main import main
from semif_bento.cli.readme import BEGIN, END
from semif_bento.settings import settings_table


def test_the_table_is_written_between_its_markers_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    assert main(["settings-table", str(page)]) == 0
    assert page.read_text() == f"before\n{BEGIN}\n{settings_table()}\n{END}\nafter\n"
    assert main(["settings-table", "--check", str(page)]) == 0


def test_an_old_table_fails_the_check_and_stays_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = f"{BEGIN}\nold\n{END}"
    page.write_text(text)

    assert main(["settings-table", "--check", str(page)]) == 1
    assert page.read_text() == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_one_pair_of_markers_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)

    assert main(["settings-table", str(page)]) == 1
    assert "two markers" in capsys.readouterr().err
    assert page.read_text() == text


def test_the_projects_readme_is_up_to_date() -> None:
    assert main(["settings-table", "--check", str(Path(__file__).parents[2] / "README.md")]) == 0
