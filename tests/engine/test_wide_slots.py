"""More options than letters: the wide slots are proven, and the narrow ones keep their bits."""

import json

import pytest
import torch
from torch import nn

from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.letters.encoding import Encoder, render_chat
from semif_bento.engine.letters.head import SlotHead
from semif_bento.engine.letters.slots import find_wide_slots
from semif_bento.errors import InvalidRequest, PromptTooLong
from semif_bento.protocol import (
    LETTERS,
    SYSTEM_TEXT,
    prompt_sha256,
    prompt_version,
    render_decision,
    render_payload,
    wide_letters,
)

STATE = {"ticket": "The tea was cold."}


def choice(count: int, name: str = "d") -> Decision:
    return Decision(name, "Which?", tuple(Option(str(n), f"team {n}") for n in range(count)))


@pytest.fixture(scope="module", params=["qwen", "smollm2"])
def tokenizer(request, qwen_tokenizer, smollm2):
    return qwen_tokenizer if request.param == "qwen" else smollm2("float32").tokenizer


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return Encoder(tokenizer, 10**9)


def whole_prompt(tokenizer, decision, letters):
    messages = [
        {"role": "system", "content": SYSTEM_TEXT},
        {"role": "user", "content": render_payload(STATE, decision, letters)},
    ]
    return render_chat(tokenizer, messages)


def test_the_wide_letters_are_a_to_z_and_then_pairs_in_order():
    letters = list(wide_letters())
    assert letters[:16] == list(LETTERS)
    assert letters[24:29] == ["Y", "Z", "AA", "AB", "AC"]
    assert letters[-1] == "ZZ"
    assert len(set(letters)) == 26 + 26 * 26


def test_255_slots_are_found_in_both_vocabularies_and_begin_with_the_narrow_ones(encoder):
    slots = encoder.wide_slots
    assert len(slots.letters) == len(slots.ids) == len(set(slots.ids)) == 255
    assert slots.ids[:16] == encoder.slot_ids
    assert list(slots.letters) == sorted(slots.letters, key=lambda one: (len(one), one))


def test_each_wide_slot_is_what_appending_it_to_a_wide_prompt_appends(encoder, tokenizer):
    slots = encoder.wide_slots
    prompt = whole_prompt(tokenizer, choice(255), slots.letters)
    ids = tokenizer.encode(prompt, add_special_tokens=False)
    for letter, slot_id in zip(slots.letters, slots.ids, strict=True):
        appended = tokenizer.encode(prompt + letter, add_special_tokens=False)
        assert appended == [*ids, slot_id]
        assert tokenizer.decode([slot_id]) == letter


@pytest.mark.parametrize("count", [17, 26, 27, 53, 255])
def test_a_wide_row_is_split_as_it_is_whole_and_hashed_as_it_is_rendered(encoder, tokenizer, count):
    decision = choice(count)
    encoded = encoder.encode(ScoreRequest(STATE, (decision,)))
    prompt = whole_prompt(tokenizer, decision, encoder.wide_slots.letters)
    assert list(encoded.whole(0)) == tokenizer.encode(prompt, add_special_tokens=False)
    assert encoded.decisions[0].prompt_sha256 == prompt_sha256(prompt)
    assert encoded.decisions[0].slot_ids == encoder.wide_slots.ids[:count]
    shown = json.loads(render_payload(STATE, decision, encoder.wide_slots.letters))["options"]
    assert [option["letter"] for option in shown] == list(encoder.wide_slots.letters[:count])


@pytest.mark.parametrize("count", [2, 16])
def test_narrow_rows_are_what_they_were(encoder, tokenizer, count):
    decision = choice(count)
    beside = encoder.encode(ScoreRequest(STATE, (decision, choice(17))))
    prompt = whole_prompt(tokenizer, decision, LETTERS)
    assert list(beside.whole(0)) == tokenizer.encode(prompt, add_special_tokens=False)
    assert beside.decisions[0].slot_ids == encoder.slot_ids[:count]
    assert prompt_version(count) == "direct-options-v1"
    assert prompt_version(17) == "direct-options-wide-v1"


def test_more_options_than_slots_are_refused_with_both_counts(encoder):
    with pytest.raises(InvalidRequest, match="has 256 options; this model has slots for 255"):
        encoder.encode(ScoreRequest(STATE, (choice(256),)))
    with pytest.raises(ValueError, match="zip"):
        render_decision(choice(17))


@pytest.mark.parametrize(
    "is_broken",
    [
        lambda text: text == "AB",  # two tokens by itself
        lambda text: text == "a prompt\nAB",  # one token, but not after a prompt
    ],
)
def test_a_pair_that_is_no_slot_is_left_out_and_the_rest_move_up(tokenizer, is_broken):
    class Without:
        """The tokenizer, but for one text that comes out with a token more."""

        decode = staticmethod(tokenizer.decode)

        @staticmethod
        def encode(text, **options):
            found = tokenizer.encode(text, **options)
            return [*found, 0] if is_broken(text) else found

    letters = find_wide_slots(Without(), "a prompt\n").letters
    assert letters[25:28] == ("Z", "AA", "AC")


def test_a_request_over_its_token_limit_is_refused_before_more_is_encoded(tokenizer):
    encoder = Encoder(tokenizer, 4096, max_request_tokens=142)
    fits = encoder.encode(ScoreRequest(STATE, (choice(2), choice(2))))
    total = len(fits.prefix_ids) + sum(len(one.suffix_ids) for one in fits.decisions)
    assert 100 < total <= 142
    unencodable = Decision("d", "\ud800", choice(2).options)  # is not reached
    with pytest.raises(PromptTooLong, match=r"first 3 decisions make \d+ tokens; .* is 142 "):
        encoder.encode(ScoreRequest(STATE, (choice(2),) * 3 + (unencodable,)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_wide_rows_are_read_from_their_own_slots_and_leave_narrow_bits_alone(dtype):
    torch.manual_seed(0)
    with torch.inference_mode():
        linear = nn.Linear(32, 2000, bias=True).to(dtype)
        hidden = torch.randn(4, 32).to(dtype)
        narrow, wide = range(0, 32, 2), range(0, 510, 2)
        head = SlotHead(linear, narrow, wide)
        rows = head.declared(hidden, [3, 255, 16, 17])
        assert [len(row) for row in rows] == [3, 255, 16, 17]
        assert torch.equal(rows[0], head.logits(hidden)[0, :3])
        assert torch.equal(rows[2], head.logits(hidden)[2])
        whole = linear(hidden).float()
        tolerance = 1e-6 if dtype == torch.float32 else 2e-2
        for row, count in ((1, 255), (3, 17)):
            assert (rows[row] - whole[row, list(wide[:count])]).abs().max() <= tolerance
        masses = head.letter_mass(hidden, rows, [3, 255, 16, 17])
        expected = whole.softmax(-1)[1, list(wide)].sum()
        assert masses[1] == pytest.approx(float(expected), rel=2e-2)


def test_a_scorer_answers_wide_rows_the_same_directly_and_shared(assemble, tiny_qwen):
    scorer = assemble(tiny_qwen("float32"))
    assert (scorer.slot_count, scorer.most_options) == (16, 255)
    wide, narrow = choice(40, "wide"), choice(3, "narrow")
    alone = scorer.shared(ScoreRequest(STATE, (narrow,))).scores[0]
    both = scorer.shared(ScoreRequest(STATE, (wide, narrow), diagnostics=True)).scores
    direct = scorer.direct(ScoreRequest(STATE, (wide,))).scores
    assert len(direct.option_logits) == 40
    assert both[0].option_logits == pytest.approx(direct.option_logits, abs=1e-3)
    assert both[1].option_logits == pytest.approx(alone.option_logits, abs=1e-3)
    assert sum(both[0].probabilities) == pytest.approx(1)
    assert 0 < (both[0].letter_mass or 0) <= 1


def test_many_decisions_run_in_passes_of_the_most_a_request_may_have(assemble, tiny_qwen):
    scorer = assemble(tiny_qwen("float32"), max_decisions=4)
    decisions = tuple(choice(2, f"d{n}") for n in range(9))
    outcome = scorer.shared(ScoreRequest(STATE, decisions))
    assert outcome.timing.branch_groups == 3
    assert [scores.decision_id for scores in outcome.scores] == [f"d{n}" for n in range(9)]
    first, *others = (scores.option_logits for scores in outcome.scores)
    for logits in others:  # a pass of another size may round otherwise
        assert logits == pytest.approx(first, abs=1e-5)
    again = scorer.shared(ScoreRequest(STATE, decisions))
    assert again.scores == outcome.scores  # but the same request gives the same bits
