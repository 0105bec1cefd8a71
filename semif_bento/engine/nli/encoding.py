"""Turn pairs, rendered texts and ids into token ids, and tell where inputs may part.

Knows nothing of models or devices. A pair is cut behind the template's last mark before the
hypothesis (`Hypothesis:`), a token border that is proven on probes at start and on every pair; both
sides are encoded apart, a premise once however many hypotheses it has.
"""

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from semif_bento.engine.plain_text import PlainText
from semif_bento.entailment import Pair, Rendered, Tokens, render_pair
from semif_bento.errors import InvalidRequest, PromptTooLong, StartupError

Input = Pair | Rendered | Tokens


@dataclass(frozen=True, slots=True)
class EncodedInput:
    """The ids of one input, cut where others may share its beginning; the suffix is never empty.

    `tokens_sha256` is the hash of all ids, each as four bytes, lowest first.
    """

    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]
    tokens_sha256: str

    @property
    def length(self) -> int:
        """Return the number of ids."""
        return len(self.prefix_ids) + len(self.suffix_ids)


class PairEncoder:
    """Encodes inputs with one tokenizer and one template, both proven at once.

    Args:
        tokenizer: the checkpoint's.
        template: with `{premise}` and then `{hypothesis}`, each once.
        max_tokens: longest input; nothing is ever cut off.
        vocabulary: ids that the model knows are 0 to this less 1.

    Raises:
        StartupError: this tokenizer cannot carry the template in two parts.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, template: str, max_tokens: int, vocabulary: int
    ) -> None:
        self.template = template
        self._plain = PlainText(tokenizer)
        self._max_tokens, self._vocabulary = max_tokens, vocabulary
        self._before, rest = template.split("{premise}")
        between, self._after = rest.split("{hypothesis}")
        self._mark = between.rstrip()
        self._gap = between[len(self._mark) :]
        # The mark without its white space, which merges with the premise's last character.
        self._edge = self._mark.lstrip()
        self._edge_ids = self._plain.encode(self._edge)
        self._prove(tokenizer)

    def encode(self, inputs: Sequence[Input]) -> list[EncodedInput]:
        """Return the ids of every input, equal to those of its whole text.

        Raises:
            PromptTooLong: an input is over the token limit; the message gives both counts.
            InvalidRequest: a text holds a lone surrogate, an input is empty, or an id is unknown.
        """
        premises = _Premises(lambda premise: self._plain.encode(self._opening(premise)))
        encoded = []
        for index, given in enumerate(inputs):
            try:
                prefix_ids, suffix_ids = self._encode(index, given, premises)
            except UnicodeEncodeError:
                raise InvalidRequest(
                    f"Input {index} holds a lone surrogate and cannot be encoded."
                ) from None
            self._refuse_long(index, prefix_ids, suffix_ids)
            digest = premises.digest(prefix_ids)
            digest.update(_bytes(suffix_ids))
            encoded.append(EncodedInput(prefix_ids, suffix_ids, digest.hexdigest()))
        return encoded

    def _encode(
        self, index: int, given: Input, premises: "_Premises"
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        match given:
            case Pair():
                return self._encode_pair(given, premises)
            case Rendered(text):
                ids = self._plain.encode(text)
            case Tokens(ids):
                if any(not 0 <= token < self._vocabulary for token in ids):
                    raise InvalidRequest(
                        f"Input {index} holds an id outside 0 to {self._vocabulary - 1}."
                    )
        if not ids:
            raise InvalidRequest(f"Input {index} is empty.")
        cut = self._find_cut(ids)
        return premises.intern(ids[:cut]), ids[cut:]

    def _encode_pair(
        self, pair: Pair, premises: "_Premises"
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        ending = f"{self._gap}{pair.hypothesis.strip()}{self._after}"
        prefix_ids = premises.encode(pair.premise.strip())
        joined = self._plain.encode(self._edge + ending)
        edge = len(self._edge_ids)
        if prefix_ids[-edge:] == self._edge_ids == joined[:edge] and len(joined) > edge:
            return prefix_ids, joined[edge:]
        # The edge is no token border in this pair: whole, it is still exact, and shares nothing.
        return (), self._plain.encode(render_pair(self.template, pair))

    def _opening(self, premise: str) -> str:
        return f"{self._before}{premise}{self._mark}"

    def _find_cut(self, ids: tuple[int, ...]) -> int:
        """Return the index behind the last mark that something follows; 0 where there is none."""
        edge = len(self._edge_ids)
        for start in range(len(ids) - edge - 1, 0, -1):
            if ids[start : start + edge] == self._edge_ids:
                return start + edge
        return 0

    def _refuse_long(self, index: int, prefix: tuple[int, ...], suffix: tuple[int, ...]) -> None:
        if len(prefix) + len(suffix) <= self._max_tokens:
            return
        parts = f" ({len(prefix)} up to the hypothesis)" if prefix else ""
        raise PromptTooLong(
            f"Input {index} makes {len(prefix) + len(suffix)} tokens{parts}; the limit is "
            f"{self._max_tokens} and nothing is truncated."
        )

    def _prove(self, tokenizer: PreTrainedTokenizerFast) -> None:
        if not self._edge_ids:
            raise StartupError("nli_template has no mark between premise and hypothesis.")
        premises = _Premises(lambda premise: self._plain.encode(self._opening(premise)))
        for pair in PROBES:
            prefix_ids, suffix_ids = self._encode_pair(pair, premises)
            whole = tuple(tokenizer(render_pair(self.template, pair)).input_ids)
            if not prefix_ids or prefix_ids + suffix_ids != whole:
                raise StartupError("A pair encoded in two parts differs from the pair as a whole.")


class _Premises:
    """The premises of one call, each encoded and hashed once."""

    def __init__(self, encode: Callable[[str], tuple[int, ...]]) -> None:
        self._encode = encode
        self._by_text: dict[str, tuple[int, ...]] = {}
        self._by_ids: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._digests: dict[int, hashlib._Hash] = {}  # by identity of what is held above

    def encode(self, premise: str) -> tuple[int, ...]:
        if premise not in self._by_text:
            self._by_text[premise] = self.intern(self._encode(premise))
        return self._by_text[premise]

    def intern(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        return self._by_ids.setdefault(ids, ids)

    def digest(self, prefix_ids: tuple[int, ...]) -> "hashlib._Hash":
        ids = self.intern(prefix_ids)
        if id(ids) not in self._digests:
            self._digests[id(ids)] = hashlib.sha256(_bytes(ids))
        return self._digests[id(ids)].copy()


def _bytes(ids: Sequence[int]) -> bytes:
    return array("I", ids).tobytes()


# Ends and starts that merge with their neighbours under byte-level BPE.
PROBES = (
    Pair("The shop opens at nine.", 'The answer to "Is it open?" is yes: It is open.'),
    Pair('{"said": "ok :)"}', "(1) nothing was said"),
    Pair("a\n\n", '"quoted" and {braces}'),
    Pair("caf\u00e9 \u4e2d\u6587", "\u4e2d\u6587 \U0001f642"),
    Pair("Hypothesis: Premise:", "Hypothesis: 12.5"),
)
