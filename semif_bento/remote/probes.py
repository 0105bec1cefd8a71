"""The rows and pairs that every server is proven on; knows nothing of connections."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from transformers import PreTrainedTokenizerFast

from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.letters.encoding import Encoder, render_prompt
from semif_bento.engine.nli.encoding import PROBES, PairEncoder
from semif_bento.entailment import render_pair
from semif_bento.errors import EngineFault, PromptTooLong, StartupError
from semif_bento.protocol import LETTERS, MAX_OPTIONS
from semif_bento.remote.dialect import Dialect
from semif_bento.remote.proofs import Expectation, Trial
from semif_bento.remote.reading import Logits

PROBABILITY_SUM_TOLERANCE = 1e-3

_YES_NO = (Option("yes", "The deployment succeeded."), Option("no", "It did not succeed."))
_SHORT = Decision("short", "Is there evidence that the deployment succeeded?", _YES_NO)
_LONG = Decision(
    "long",
    "(1) Which of these statements does the evidence establish, if any?",
    tuple(Option(letter, f"Health checks passed in zone {letter}.") for letter in LETTERS),
)
_STATES: tuple[JsonState, ...] = (
    "The deployment completed at 14:02 UTC. Health checks passed in all three zones.",
    {"person_said": "ok :)", "größe": ["é中🙂", 12.5, None]},
)


@dataclass(frozen=True, slots=True)
class _Probe:
    text: str
    ids: tuple[int, ...]
    slot_ids: tuple[int, ...]


def expect_letters(
    dialect: Dialect,
    model: str,
    dtype: str,
    max_tokens: int,
    tokenizer: PreTrainedTokenizerFast,
    encoder: Encoder,
) -> Expectation:
    """Return what servers that read letters are proven on.

    Rows of two and of sixteen options in one call, as a shared request travels, and one of the most
    options that there are slots for; of all that, what the limit of tokens has room for.

    Raises:
        StartupError: it has room for none.
    """
    letters = encoder.wide_slots.letters
    rows = [(state, decision) for state in _STATES for decision in (_SHORT, _LONG)]
    narrow = _fitting(_probe(tokenizer, encoder, *row, LETTERS) for row in rows)
    counts = range(len(letters), MAX_OPTIONS, -1)
    wide = (_probe(tokenizer, encoder, _STATES[0], _wide(letters, n), letters) for n in counts)
    widest = list(islice(_fitting(wide), 1))
    probes = [asked for asked in (list(narrow), widest) if asked]
    if not probes:
        raise StartupError("SEMIF_MAX_TOKENS is too little for any prompt.")
    return Expectation(
        model=model,
        least_room=max_tokens + 1,  # one token is generated
        dtype=dtype,
        ask_version=dialect.ask_version(),
        texts=tuple((probe.text, probe.ids) for asked in probes for probe in asked),
        trials=tuple(_letters_trial(dialect, model, asked) for asked in probes),
    )


def expect_classes(
    dialect: Dialect, model: str, dtype: str, max_tokens: int, encoder: PairEncoder
) -> Expectation:
    """Return what servers that classify are proven on: pairs whose parts merge at their borders."""
    inputs = [given.prefix_ids + given.suffix_ids for given in encoder.encode(PROBES)]
    texts = [render_pair(encoder.template, pair) for pair in PROBES]
    return Expectation(
        model=model,
        least_room=max_tokens,
        dtype=dtype,
        ask_version=dialect.ask_version(),
        texts=tuple(zip(texts, inputs, strict=True)),
        trials=(
            Trial(
                dialect.ask_classes(model, inputs),
                lambda answer: _raw(dialect.read_classes(answer, len(inputs))),
            ),
        ),
    )


def _raw(rows: Sequence[Logits]) -> Sequence[Logits]:
    """Refuse rows that are all probabilities: the softmax of a softmax is another answer."""
    if all(min(row) >= 0 and abs(sum(row) - 1) < PROBABILITY_SUM_TOLERANCE for row in rows):
        raise EngineFault("It gives probabilities where logits were asked for.", kind="implausible")
    return rows


def _wide(letters: Sequence[str], count: int) -> Decision:
    return Decision("wide", "Which?", tuple(Option(letter, letter) for letter in letters[:count]))


def _fitting(probes: Iterable[_Probe | None]) -> Iterator[_Probe]:
    return (probe for probe in probes if probe is not None)


def _letters_trial(dialect: Dialect, model: str, probes: Sequence[_Probe]) -> Trial:
    widest = max((probe.slot_ids for probe in probes), key=len)
    return Trial(
        dialect.ask_scores(model, [probe.ids for probe in probes], widest),
        lambda answer: [
            reading.logprobs for reading in dialect.read_scores(answer, len(probes), widest)
        ],
    )


def _probe(
    tokenizer: PreTrainedTokenizerFast,
    encoder: Encoder,
    state: JsonState,
    decision: Decision,
    letters: Sequence[str],
) -> _Probe | None:
    """Return a probe, or None where it is over the limit of tokens."""
    try:
        encoded = encoder.encode(ScoreRequest(state, (decision,)))
    except PromptTooLong:
        return None
    text = render_prompt(tokenizer, state, decision, letters)
    return _Probe(text, encoded.whole(0), encoded.decisions[0].slot_ids)
