"""Turn a request into token ids: the state once, each question once, each distinct option once.

Knows nothing of models or devices. Text is always data. A prompt's parts are encoded apart, each
with the edge before it; that is exact only where an edge is a token border, so it is proven: on
probe prompts at start against whole encoding, and on every row. A state whose end merges with its
edge is encoded whole with each question instead, and shares what its prompts have in common.
"""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.likelihood.encoded import Context, EncodedOptions, EncodedRequest, Ids
from semif_bento.engine.likelihood.wording import (
    ANSWER_EDGE,
    PRIOR_TEXT,
    STATE_EDGE,
    ScoredHash,
    option_text,
    question_text,
    state_text,
)
from semif_bento.engine.plain_text import PlainText
from semif_bento.errors import InvalidRequest, PromptTooLong, StartupError


class LikelihoodEncoder:
    """Encodes requests with one tokenizer, with a chat template or without.

    Prompts begin with the tokenizer's beginning-of-text token where it puts one by itself, and
    with the text where it does not: an option always comes after the text of a question.

    Args:
        tokenizer: the model's own.
        max_tokens: longest prompt, an option included.
        max_request_tokens: most tokens of a request, its state counted once; None for no limit.

    Raises:
        StartupError: this tokenizer cannot carry the wording.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        max_tokens: int,
        max_request_tokens: int | None = None,
    ) -> None:
        self._plain = PlainText(tokenizer)
        self._max_tokens, self._max_request_tokens = max_tokens, max_request_tokens
        self._start_ids = _start_ids(tokenizer)
        self._state_edge = self._plain.encode(STATE_EDGE)
        self._answer_edge = self._plain.encode(ANSWER_EDGE)
        # Some tokenizers mark the start of a text: what an edge ends with wherever it stands.
        self._state_end = _common_end(self._plain.encode(f"x\n{STATE_EDGE}"), self._state_edge)
        self._answer_end = _common_end(self._plain.encode(f"x\n{ANSWER_EDGE}"), self._answer_edge)
        self._prove(tokenizer)

    def encode(self, request: ScoreRequest) -> EncodedRequest:
        """Encode every decision of a request against its one state.

        Returns:
            Ids such that prefix + question + option are exactly the ids of a whole prompt.

        Raises:
            PromptTooLong: a prompt, or all of them with their state counted once, is over its
                limit (with both counts).
            InvalidRequest: a text cannot be encoded (a lone surrogate), or an option has no tokens
                of its own.
        """
        try:
            return self._encode(request, is_limited=True)
        except UnicodeEncodeError:
            raise InvalidRequest("A text holds a lone surrogate and cannot be encoded.") from None

    def _encode(self, request: ScoreRequest, *, is_limited: bool) -> EncodedRequest:
        context = state_text(request.state)
        hashed = ScoredHash(context)
        prefix_ids = self._whole(context)
        total = len(prefix_ids)
        rests: list[Ids | None] = []
        options: list[EncodedOptions] = []
        for index, decision in enumerate(request.decisions):
            question = question_text(decision)
            rest = self._after(STATE_EDGE, self._state_edge, question)
            tokens = len(prefix_ids) + len(rest or self._plain.encode(question))
            row = self._options(index, decision)
            total += tokens - len(prefix_ids) + sum(map(len, row.distinct))
            if is_limited:  # at once: a request may hold far more than it may make tokens
                self._refuse_long(index, tokens + len(row.distinct[-1]), total)
            rests.append(rest)
            options.append(row)
        questions = [question_text(decision) for decision in request.decisions]
        return EncodedRequest(
            self._context(context, prefix_ids, questions, rests),
            self._context(PRIOR_TEXT, self._whole(PRIOR_TEXT), questions, rests),
            tuple(options),
            tuple(hashed.of(decision) for decision in request.decisions),
        )

    def _whole(self, text: str) -> Ids:
        """Return the ids of a prompt, or of its beginning."""
        return (*self._start_ids, *self._plain.encode(text))

    def _after(self, edge: str, edge_ids: Ids, text: str) -> Ids | None:
        """Return the ids of a text behind an edge, None where its start merges with the edge."""
        joined = self._plain.encode(edge + text)
        return joined[len(edge_ids) :] if joined[: len(edge_ids)] == edge_ids else None

    def _options(self, index: int, decision: Decision) -> EncodedOptions:
        found: list[Ids] = []
        for option in decision.options:
            text = option_text(option)
            ids = self._after(ANSWER_EDGE, self._answer_edge, text)
            if not ids:
                raise InvalidRequest(
                    f"An option of decision {index} has no tokens that can be told from the text "
                    "before it."
                )
            found.append(ids)
        return EncodedOptions.of(found)

    def _context(
        self, text: str, prefix_ids: Ids, questions: Sequence[str], rests: Sequence[Ids | None]
    ) -> Context:
        """Return questions behind one text: cut at its edge, or where their whole ids part."""
        after = [rest for rest in rests if rest is not None]
        if len(after) < len(rests) or not _ends_with(prefix_ids, self._state_end):
            wholes = [self._whole(text + question) for question in questions]
            common = _common_start(wholes)
            if not common:
                raise InvalidRequest("The end of the state cannot be told from the text after it.")
            prefix_ids, after = wholes[0][:common], [whole[common:] for whole in wholes]
        for rest in after:
            if not _ends_with(rest[-len(self._answer_end) :], self._answer_end):
                raise InvalidRequest("A question's end cannot be told from the text after it.")
        return Context(prefix_ids, tuple(after))

    def _refuse_long(self, index: int, tokens: int, total: int) -> None:
        if tokens > self._max_tokens:
            raise PromptTooLong(
                f"Decision {index} makes a prompt of {tokens} tokens with its longest option; the "
                f"limit is {self._max_tokens} and nothing is truncated."
            )
        if self._max_request_tokens is not None and total > self._max_request_tokens:
            raise PromptTooLong(
                f"The state and the first {index + 1} decisions make {total} tokens; the limit of "
                f"a request is {self._max_request_tokens} and nothing is truncated."
            )

    def _prove(self, tokenizer: PreTrainedTokenizerFast) -> None:
        """Prove on probe rows that the parts of a prompt make up its whole encoding."""
        for state, decision in _probes():
            try:
                encoded = self._encode(ScoreRequest(state, (decision,)), is_limited=False)
            except InvalidRequest as exc:
                raise StartupError(f"This tokenizer cannot carry the wording. {exc}") from exc
            (row,) = encoded.options
            for text, context in ((state_text(state), encoded.state), (PRIOR_TEXT, encoded.prior)):
                for option, place in zip(decision.options, row.place, strict=True):
                    prompt = text + question_text(decision) + option_text(option)
                    ids = context.prefix_ids + context.questions[0] + row.distinct[place]
                    whole = tokenizer.encode(prompt, add_special_tokens=False)
                    if ids != (*self._start_ids, *whole):
                        raise StartupError(
                            "Split encoding differs from whole encoding on this tokenizer."
                        )


def _start_ids(tokenizer: PreTrainedTokenizerFast) -> Ids:
    start = tokenizer.bos_token_id
    if isinstance(start, int) and tokenizer.encode("x")[:1] == [start]:
        return (start,)
    return ()


def _ends_with(ids: Ids, end: Ids) -> bool:
    return bool(end) and ids[-len(end) :] == end


def _common_end(ids: Ids, others: Ids) -> Ids:
    """Return the ids that both end with."""
    count = 0
    for one, other in zip(reversed(ids), reversed(others), strict=False):
        if one != other:
            break
        count += 1
    return ids[len(ids) - count :]


def _common_start(rows: Sequence[Ids]) -> int:
    """Return how many first ids all rows share, such that each keeps one of its own."""
    first, last = min(rows), max(rows)  # of ordered sequences these two part soonest
    longest = min(map(len, rows)) - 1
    return next((i for i in range(longest) if first[i] != last[i]), longest)


def _probe(question: str, descriptions: tuple[str, ...]) -> Decision:
    options = tuple(Option(str(i), text) for i, text in enumerate(descriptions))
    return Decision("probe", question, options)


def _probes() -> list[tuple[JsonState, Decision]]:
    """Return rows whose ends are known to merge with what follows under byte-level BPE."""
    plain = _probe("Did it succeed?", ("Yes", "No"))
    odd = _probe("\u00e9\u4e2d\U0001f642 …", (":)", "12.5", " ", "\u00e9", "(a) Sent\n"))
    return [
        ("The deployment completed at 14:02 UTC.", plain),
        ({"person_said": "ok :)"}, odd),
        (["a\n\n", {"b": "};"}, 12.5], plain),
        ("ends with lines\n\n", odd),
        ("ends with a brace }", odd),
    ]
