"""A small token limit is the operator's choice; the start-up probes do not count against it."""

from models.byte_qwen import byte_tokenizer

from semif_bento.engine.letters.encoding import Encoder

SMALLEST = 64


def test_smallest_token_limit_does_not_stop_the_start() -> None:
    encoder = Encoder(byte_tokenizer(), SMALLEST, SMALLEST)

    assert len(encoder.slot_ids) == 16
