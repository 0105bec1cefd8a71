"""Compressed bodies: whole ones come out, and nothing ever grows past the limit."""

import gzip
import tracemalloc

import pytest
from backports import zstd

from semif_bento.api.encodings import decode
from semif_bento.errors import RequestTooLarge, UsageError

COMPRESS = {"gzip": gzip.compress, "zstd": zstd.compress, "identity": bytes}


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("body", [b"", b"x", b'{"a": 1}' * 1000])
def test_what_was_compressed_comes_out(encoding, body):
    assert decode(COMPRESS[encoding](body), encoding, 8000) == body


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_the_limit_is_exact(encoding):
    body = COMPRESS[encoding](b"x" * 100)
    assert len(decode(body, encoding, 100)) == 100
    with pytest.raises(RequestTooLarge, match="over 99 bytes when it is decoded"):
        decode(body, encoding, 99)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_takes_little_more_memory_than_the_limit(encoding):
    bomb = COMPRESS[encoding](bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(RequestTooLarge):
            decode(bomb, encoding, 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_cut_streams_and_streams_with_more_behind_are_refused(encoding):
    whole = COMPRESS[encoding](b"x" * 1000)
    for body in (whole[:-1], whole[:5], whole + b"x", whole + whole, b"", b"plain"):
        with pytest.raises(UsageError):
            decode(body, encoding, 1 << 20)


def test_a_window_larger_than_http_allows_is_refused():
    wide = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    compressor = zstd.ZstdCompressor(options=wide)
    body = compressor.compress(b"x" * 1000) + compressor.flush()
    with pytest.raises(UsageError):
        decode(body, "zstd", 1 << 20)
