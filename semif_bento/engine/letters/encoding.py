"""Turn a request into token ids: the state once, each decision's rest once, text always as data.

Knows nothing of models or devices. The rendered prompt is cut just after the criterion edge; both
sides are encoded apart. That is exact only where the edge is a token border, so it is proven: on
probe prompts at start against whole encoding, and on every row against the text around its edge.
"""

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.letters.slots import SlotTable, find_wide_slots, prove_slots
from semif_bento.engine.plain_text import PlainText
from semif_bento.errors import InvalidRequest, PromptTooLong, StartupError
from semif_bento.protocol import (
    CRITERION_EDGE,
    LETTERS,
    MAX_OPTIONS,
    MAX_WIDE_OPTIONS,
    SYSTEM_TEXT,
    prompt_sha256,
    render_decision,
    render_evidence,
    render_payload,
)

# Appended alone, this text must encode the same in front of any decision: it is where rows part.
EDGE_TAIL = CRITERION_EDGE.removeprefix(",")


@dataclass(frozen=True, slots=True)
class EncodedDecision:
    """One branch: the ids after the shared prefix, the slots to read, the hash of its prompt."""

    suffix_ids: tuple[int, ...]
    slot_ids: tuple[int, ...]
    prompt_sha256: str


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """The prefix that every decision of a request shares, and each decision's own rest."""

    prefix_ids: tuple[int, ...]
    decisions: tuple[EncodedDecision, ...]

    def whole(self, index: int) -> tuple[int, ...]:
        """Return the full prompt's ids of one decision."""
        return self.prefix_ids + self.decisions[index].suffix_ids

    def cache_key(self) -> bytes:
        """Return the prefix ids as bytes: equal keys mean equal prefixes."""
        return array("I", self.prefix_ids).tobytes()


class Encoder:
    """Encodes requests with one tokenizer; its template is rendered and proven once.

    Args:
        tokenizer: with a chat template.
        max_tokens: longest prompt.
        max_request_tokens: most tokens of a request, its state counted once; None for no limit.
        head_rows: logits that the model has; None where no model is at hand.
        most_slots: options of the widest prompt, where more slots could be found.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        max_tokens: int,
        max_request_tokens: int | None = None,
        head_rows: int | None = None,
        most_slots: int = MAX_WIDE_OPTIONS,
    ) -> None:
        self._tokenizer = tokenizer
        self._plain = PlainText(tokenizer)
        self._max_tokens = max_tokens
        self._max_request_tokens = max_request_tokens
        self.slot_ids = prove_slots(tokenizer)
        self.wide_slots = SlotTable(tuple(LETTERS), self.slot_ids)  # until more are proven
        self._head, self._tail = _split_template(tokenizer)
        self._head_ids = self._markup(self._head)
        self._tail_ids = self._markup(self._tail)
        self._edge_ids = self._plain.encode(EDGE_TAIL)
        prompt = self._prove_template()
        self.wide_slots = find_wide_slots(tokenizer, prompt, head_rows, most_slots)
        self._prove_split(*_wide_probe(len(self.wide_slots.ids)))

    def encode(self, request: ScoreRequest) -> EncodedRequest:
        """Encode every decision of a request against its one state.

        Returns:
            Ids such that prefix + suffix of each decision are exactly the ids of its whole prompt.

        Raises:
            PromptTooLong: a prompt, or all of them with their state counted once, is over its
                limit (with both counts).
            InvalidRequest: a decision has more options than there are slots, or a text cannot be
                encoded (a lone surrogate).
        """
        try:
            return self._encode(request, is_limited=True)
        except UnicodeEncodeError:
            raise InvalidRequest("A text holds a lone surrogate and cannot be encoded.") from None

    def _encode(self, request: ScoreRequest, *, is_limited: bool) -> EncodedRequest:
        evidence = render_evidence(request.state)
        prefix_ids = (*self._head_ids, *self._plain.encode(evidence))
        if prefix_ids[-len(self._edge_ids) :] != self._edge_ids:
            raise InvalidRequest("The end of the state cannot be told from the text after it.")
        prefix_hash = hashlib.sha256((self._head + evidence).encode())
        decisions = []
        total = len(prefix_ids)
        for index, decision in enumerate(request.decisions):
            slots = self._slots(index, decision)
            suffix_ids, rest = self._suffix(decision, slots.letters)
            total += len(suffix_ids)
            if is_limited:  # at once: a request may hold far more than it may make tokens
                self._refuse_long(index, len(prefix_ids) + len(suffix_ids), total)
            row_hash = prefix_hash.copy()
            row_hash.update((rest + self._tail).encode())
            slot_ids = slots.ids[: len(decision.options)]
            decisions.append(EncodedDecision(suffix_ids, slot_ids, row_hash.hexdigest()))
        return EncodedRequest(prefix_ids, tuple(decisions))

    def _slots(self, index: int, decision: Decision) -> SlotTable:
        count = len(decision.options)
        if count <= MAX_OPTIONS:
            return SlotTable(tuple(LETTERS), self.slot_ids)
        if count <= len(self.wide_slots.ids):
            return self.wide_slots
        raise InvalidRequest(
            f"Decision {index} has {count} options; this model has slots for "
            f"{len(self.wide_slots.ids)}."
        )

    def _suffix(self, decision: Decision, letters: tuple[str, ...]) -> tuple[tuple[int, ...], str]:
        """Encode a decision's rest, and prove on this very text that the edge is a token border."""
        rest = render_decision(decision, letters)
        joined = self._plain.encode(EDGE_TAIL + rest)
        edge = len(self._edge_ids)
        if joined[:edge] != self._edge_ids:
            raise InvalidRequest("A question's start cannot be told from the text before it.")
        return joined[edge:] + self._tail_ids, rest

    def _refuse_long(self, index: int, tokens: int, total: int) -> None:
        if tokens > self._max_tokens:
            raise PromptTooLong(
                f"Decision {index} makes a prompt of {tokens} tokens; the limit is "
                f"{self._max_tokens} and nothing is truncated."
            )
        if self._max_request_tokens is not None and total > self._max_request_tokens:
            raise PromptTooLong(
                f"The state and the first {index + 1} decisions make {total} tokens; the limit of "
                f"a request is {self._max_request_tokens} and nothing is truncated."
            )

    def _markup(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _prove_template(self) -> str:
        """Prove split encoding equal to whole encoding, and every letter's place after it.

        Returns:
            A rendered prompt.

        Raises:
            StartupError: this tokenizer or its template cannot carry the protocol.
        """
        prompt = ""
        for state, decision in _probes():
            prompt = self._prove_split(state, decision)
        ids = self._markup(prompt)
        for letter, slot_id in zip(LETTERS, self.slot_ids, strict=True):
            if self._markup(prompt + letter) != (*ids, slot_id):
                raise StartupError(f"Appending {letter!r} to a prompt does not append its token.")
        return prompt

    def _prove_split(self, state: JsonState, decision: Decision) -> str:
        """Prove one probe row and return its rendered prompt."""
        letters = self._slots(0, decision).letters
        prompt = render_prompt(self._tokenizer, state, decision, letters)
        try:
            encoded = self._encode(ScoreRequest(state, (decision,)), is_limited=False)
        except InvalidRequest as exc:
            raise StartupError(f"This tokenizer cannot carry the protocol. {exc}") from exc
        if encoded.whole(0) != self._markup(prompt):
            raise StartupError("Split encoding differs from whole encoding on this tokenizer.")
        if encoded.decisions[0].prompt_sha256 != prompt_sha256(prompt):
            raise StartupError("The chat template does not keep the payload as it is.")
        return prompt


def render_prompt(
    tokenizer: PreTrainedTokenizerFast,
    state: JsonState,
    decision: Decision,
    letters: Sequence[str] = LETTERS,
) -> str:
    """Render a whole prompt as text, in one piece."""
    return render_chat(tokenizer, _messages(render_payload(state, decision, letters)))


def render_chat(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, str]]) -> str:
    """Render messages with the tokenizer's template, generation prompt on and thinking off."""
    prompt = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    if not isinstance(prompt, str):
        raise StartupError("The chat template does not render to text.")
    return prompt


def _messages(payload: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": SYSTEM_TEXT}, {"role": "user", "content": payload}]


def _split_template(tokenizer: PreTrainedTokenizerFast) -> tuple[str, str]:
    payload = render_payload("state", _probe("question", ("first", "second")))
    prompt = render_chat(tokenizer, _messages(payload))
    if prompt.count(payload) != 1:
        raise StartupError("The chat template does not keep the payload as it is.")
    head, tail = prompt.split(payload)
    return head, tail


def _probe(question: str, descriptions: tuple[str, ...]) -> Decision:
    options = tuple(Option(str(i), text) for i, text in enumerate(descriptions))
    return Decision("probe", question, options)


def _probes() -> list[tuple[JsonState, Decision]]:
    """Return rows whose ends are known to merge with what follows under byte-level BPE."""
    plain = _probe("Did it succeed?", ("Yes", "No"))
    many = _probe("(1) Which?", tuple(f"option {letter}." for letter in LETTERS))
    odd = _probe("\u00e9\u4e2d\U0001f642 …", ("", " "))
    return [
        ("The deployment completed at 14:02 UTC.", plain),
        ({"person_said": "ok :)"}, plain),
        ({"messages": [{"role": "user", "content": "Is it open?"}]}, many),
        (["a\n\n", {"b": "};"}, 12.5], odd),
        ("ends with a brace }", odd),
    ]


def _wide_probe(option_count: int) -> tuple[JsonState, Decision]:
    return "wide", _probe("Which one?", tuple(f"option {n}" for n in range(option_count)))
