"""What may be logged of an exception: its type and the frames it passed, never its message.

A message can quote request text (`KeyError: 'a key of the state'`); a frame names only our source.
Knows nothing of HTTP or of what failed.
"""

import logging
import traceback


def describe(error: BaseException) -> str:
    """Return the exception's type and its stack, one frame a line, without any value."""
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{type(error).__qualname__}\n{frames}" if frames else type(error).__qualname__


class WithoutMessages(logging.Filter):
    """Rewrites every traceback that passes a handler to types and frames.

    It does not look into a record's own text: whoever logs answers for that.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, its traceback rewritten."""
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = describe(record.exc_info[1])
        return True
