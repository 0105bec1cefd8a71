from pathlib import Path

import pytest

from semif_bento.cli.environment import ENVIRONMENT, MADE, TOKEN, read_env_file, read_environment
from semif_bento.errors import StartupError
from semif_bento.settings import Settings, variable

TOKEN_TEXT = "t" * 40
CONFIGS = Path(__file__).parents[2] / "configs"


def env_file(directory: Path, text: str, name: str = "a.env") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_the_environment_wins_over_an_env_file(tmp_path: Path) -> None:
    path = env_file(tmp_path, "SEMIF_DTYPE=bfloat16\nSEMIF_DEVICE=cpu\n")

    found = read_environment({"SEMIF_DTYPE": "float32"}, [path])

    assert found.values["SEMIF_DTYPE"] == "float32"
    assert found.sources["SEMIF_DTYPE"] == ENVIRONMENT
    assert found.values["SEMIF_DEVICE"] == "cpu"
    assert found.sources["SEMIF_DEVICE"] == str(path)


def test_an_empty_variable_does_not_hide_the_file(tmp_path: Path) -> None:
    path = env_file(tmp_path, "SEMIF_DTYPE=float32\n")

    assert read_environment({"SEMIF_DTYPE": ""}, [path]).values["SEMIF_DTYPE"] == "float32"


def test_a_later_file_wins_over_an_earlier_one(tmp_path: Path) -> None:
    first = env_file(tmp_path, "A=1\nB=1\n", "first.env")
    second = env_file(tmp_path, "A=2\n", "second.env")

    assert read_environment({}, [first, second]).values == {"A": "2", "B": "1"}


def test_comments_and_blank_lines_say_nothing(tmp_path: Path) -> None:
    path = env_file(tmp_path, "# a comment\n\n  # another\n A = 1=2 # kept\n")

    assert read_env_file(path) == {"A": "1=2 # kept"}


@pytest.mark.parametrize("line", ["SEMIF_DEVICE", "=cpu", "export A=1", "A-B=1"])
def test_a_line_that_is_not_name_and_value_is_refused_by_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(StartupError, match="Line 2 of the env file"):
        read_env_file(env_file(tmp_path, f"A=1\n{line}\n"))


def test_a_missing_env_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be read: FileNotFoundError"):
        read_env_file(tmp_path / "none.env")


def test_a_token_is_made_only_where_none_is_given(tmp_path: Path) -> None:
    made = read_environment({}, []).with_token()
    given = read_environment({TOKEN: TOKEN_TEXT}, []).with_token()
    by_file = read_environment({"SEMIF_API_TOKEN_FILE": "token"}, []).with_token()

    assert made.sources[TOKEN] == MADE
    assert given.values[TOKEN] == TOKEN_TEXT
    assert TOKEN not in by_file.values


def test_every_start_makes_another_token_that_the_service_takes() -> None:
    first, second = (read_environment({"SEMIF_DEVICE": "cpu"}, []).with_token() for _ in range(2))

    assert first.values[TOKEN] != second.values[TOKEN]
    assert first.settings().api_token == first.values[TOKEN]


@pytest.mark.parametrize("name", ["local.env", "qwen3.5-4b.env", "gateway.env"])
def test_our_env_files_are_valid_and_hold_no_token(name: str) -> None:
    found = read_environment({}, [CONFIGS / name])

    assert not found.has_token()
    assert isinstance(found.with_token().settings(), Settings)


def test_the_production_file_names_every_setting() -> None:
    text = (CONFIGS / "qwen3.5-4b.env").read_text()

    missing = [f for f in Settings.__dataclass_fields__.values() if f"{variable(f)}=" not in text]
    assert missing == []
