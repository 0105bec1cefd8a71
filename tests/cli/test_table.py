import pytest

from semif_bento.cli.table import BAR_WIDTH, bar, render_table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert render_table(("a", "share "), [("yes", "0.5"), ("no", "12.25")]) == (
        "a    share\nyes    0.5\nno   12.25"
    )


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        render_table(("a", "b"), [("only one",)])


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [len(bar(share)) for share in (0.0, 0.5, 1.0)] == [0, BAR_WIDTH // 2, BAR_WIDTH]
