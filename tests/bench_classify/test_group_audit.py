from semif_bento.bench.classify.agreement import Triple, audit, compare

GROUP = {"g": [0, 1, 2]}


def entailing(*entailments: float) -> list[Triple]:
    return [(0.0, entailment, 0.0) for entailment in entailments]


def test_equal_logits_agree_in_everything() -> None:
    rows = entailing(1.0, -1.0, 0.5)

    found = compare(["a", "b", "c"], rows, rows)

    assert (found.labels_equal, found.max_entailment_diff, found.max_logit_diff) == (3, 0.0, 0.0)
    assert found.changed == ()
    assert audit(GROUP, rows, rows).changed == ()


def test_a_row_with_another_label_is_named_and_the_largest_distances_are_told() -> None:
    expected: list[Triple] = [(2.0, 1.0, 0.0), (0.0, 3.0, 0.0)]
    found: list[Triple] = [(1.0, 2.0, 0.0), (0.0, 3.0, 0.25)]

    agreement = compare(["turned", "kept"], found, expected)

    assert agreement.changed == ("turned",)
    assert (agreement.rows, agreement.labels_equal) == (2, 1)
    assert agreement.max_logit_diff == 1.0
    assert 0.42 < agreement.max_entailment_diff < 0.43  # 0.6652 − 0.2447


def test_a_strict_winner_that_changes_is_a_failure_however_close_it_was() -> None:
    found = audit(GROUP, entailing(1.0, 1.0000002, 0.0), entailing(1.0000001, 1.0, 0.0))

    assert (found.changed, found.ties) == (("g",), ())


def test_losers_that_change_places_are_none() -> None:
    found = audit(GROUP, entailing(2.0, 0.0, 1.0), entailing(2.0, 1.0, 0.0))

    assert (found.changed, found.ties) == ((), ())


def test_another_of_exactly_equal_winners_is_a_tie_and_no_failure() -> None:
    found = audit(GROUP, entailing(1.0, 1.1, 0.0), entailing(1.0, 1.0, 0.0))

    assert (found.changed, found.ties) == ((), ("g",))


def test_a_loser_that_beats_tied_winners_is_a_failure() -> None:
    found = audit(GROUP, entailing(1.0, 1.0, 1.1), entailing(1.0, 1.0, 0.0))

    assert (found.changed, found.ties) == (("g",), ())


def test_a_strict_winner_that_is_only_tied_is_lost_to_an_earlier_option() -> None:
    found = audit(GROUP, entailing(1.0, 1.0, 0.0), entailing(0.9, 1.0, 0.0))

    assert found.changed == ("g",)


def test_entailment_decides_and_not_its_logit() -> None:
    expected: list[Triple] = [(5.0, 2.0, 0.0), (0.0, 1.0, 0.0)]
    found: list[Triple] = [(0.0, 2.0, 0.0), (0.0, 1.0, 0.0)]

    assert audit({"g": [0, 1]}, found, expected).changed == ("g",)
