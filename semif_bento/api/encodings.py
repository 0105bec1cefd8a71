"""Decodes compressed bodies, never past a limit; knows nothing of what is in them."""

import zlib

from backports import zstd

from semif_bento.errors import RequestTooLarge, UsageError

GZIP, ZSTD, IDENTITY = "gzip", "zstd", "identity"
_GZIP_WINDOW_BITS = 31  # zlib's way to ask for gzip's own header
_MAX_ZSTD_WINDOW_LOG = 23  # 8 MiB, the most that RFC 9659 lets a sender ask of a receiver's memory


def decode(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return a body without its content encoding; never more than `max_bytes` + 1 come to exist.

    Args:
        body: one gzip member, one zstd frame, or plain bytes.
        encoding: `GZIP`, `ZSTD` or `IDENTITY`.
        max_bytes: most that may come out.

    Raises:
        RequestTooLarge: more would come out.
        UsageError: the body is not one whole stream of this encoding.
    """
    if encoding == IDENTITY:
        return body
    if encoding == GZIP:
        stream = zlib.decompressobj(_GZIP_WINDOW_BITS)
    else:
        options = {int(zstd.DecompressionParameter.window_log_max): _MAX_ZSTD_WINDOW_LOG}
        stream = zstd.ZstdDecompressor(options=options)
    broken = UsageError(f"The body is not one whole {encoding} stream.")
    try:
        decoded = stream.decompress(body, max_bytes + 1)
    except (zlib.error, zstd.ZstdError):
        raise broken from None
    if len(decoded) > max_bytes:
        raise RequestTooLarge(f"The body is over {max_bytes} bytes when it is decoded.")
    if not stream.eof or stream.unused_data:
        raise broken
    return decoded
