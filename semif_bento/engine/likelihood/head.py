"""Log-probabilities of tokens within the whole vocabulary; knows nothing of prompts or options."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from semif_bento.engine.finite import finite
from semif_bento.errors import StartupError

HIDDEN_ROWS, VOCABULARY_ROWS = 128, 16384
"""Hidden states and rows of the head multiplied at once; they bound the memory it takes."""
FLOAT32_BYTES = 4


class TokenHead:
    """A language-model head, read a part at a time.

    The product runs in the model's dtype and is widened to float32 afterwards, as the whole head's
    would be.

    Raises:
        StartupError: the head is not one plain linear layer.
    """

    def __init__(self, head: nn.Module | None) -> None:
        if not isinstance(head, nn.Linear):
            raise StartupError("The model has no plain linear head to read tokens from.")
        self._head = head

    @property
    def bytes(self) -> int:
        """Return the most bytes that reading takes at once: a part's logits, widened, summed."""
        columns = min(VOCABULARY_ROWS, self._head.out_features)
        return HIDDEN_ROWS * columns * (self._head.weight.element_size() + 2 * FLOAT32_BYTES)

    def log_probs(self, hidden: Tensor, rows: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """Return log P(token | hidden state), in nats.

        Args:
            hidden: (N, hidden) in the model's dtype.
            rows: R indices of hidden states, ascending.
            tokens: the token that is asked about at each of them, (R,).

        Raises:
            ScoringFailed: one is NaN or infinite.
        """
        wanted = torch.tensor([list(rows), list(tokens)])  # (2, R), on the host
        found = [
            self._read(part, wanted[1, inside], wanted[0, inside] - index * HIDDEN_ROWS)
            for index, part in enumerate(hidden.split(HIDDEN_ROWS))
            if (inside := wanted[0] // HIDDEN_ROWS == index).any()
        ]
        return finite(torch.cat(found)).tolist()

    def _read(self, hidden: Tensor, tokens: Tensor, rows: Tensor) -> Tensor:
        """Return the log-probabilities (R,) of tokens at some of a few hidden states."""
        picked = hidden.new_empty(len(tokens), dtype=torch.float32)
        sums = []
        for start in range(0, self._head.out_features, VOCABULARY_ROWS):
            chunk = slice(start, start + VOCABULARY_ROWS)
            bias = None if self._head.bias is None else self._head.bias[chunk]
            logits = nn.functional.linear(hidden, self._head.weight[chunk], bias).float()
            sums.append(logits.logsumexp(-1))
            here = ((tokens >= start) & (tokens < start + VOCABULARY_ROWS)).nonzero()[:, 0]
            places = torch.stack([here, rows[here], tokens[here] - start]).to(hidden.device)
            picked[places[0]] = logits[places[1], places[2]]
        total = torch.stack(sums, dim=-1).logsumexp(-1)  # (N,)
        return picked - total[rows.to(hidden.device)]
