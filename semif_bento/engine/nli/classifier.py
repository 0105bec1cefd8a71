"""The straight line of a classification: encode → shared beginnings → groups → three logits each.

Knows nothing of HTTP, options or decisions. Not thread-safe.
"""

import time
from collections.abc import Sequence

import torch
from torch import nn

from semif_bento.caller import Caller
from semif_bento.decisions import EngineStatus, ModelIdentity
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.nli.encoding import Input, PairEncoder
from semif_bento.engine.nli.run import Run
from semif_bento.engine.nli.sharing import find_beginnings
from semif_bento.engine.workspace import Workspace
from semif_bento.entailment import ClassifyOutcome, ClassifyTiming, PairLogits


class TorchClassifier:
    """Classifies inputs with one model on one device; built and proven by `startup`.

    `shares` is whether beginnings are shared at all; without, every input runs whole, which is
    what sharing is measured against.
    """

    def __init__(
        self,
        *,
        identity: ModelIdentity,
        encoder: PairEncoder,
        backbone: Backbone,
        head: nn.Linear,
        budget: BranchBudget,
        workspace: Workspace,
        device_name: str,
        linear_attention_kernels: str,
    ) -> None:
        self.identity = identity
        self.template = encoder.template
        self.serving_config = f"nli-shared-beginnings-{backbone.branch_attention}-v1"
        self.shares = True
        self.guard = workspace.guard
        self._encoder, self._backbone, self._head = encoder, backbone, head
        self._budget, self._workspace = budget, workspace
        self._device_name, self._kernels = device_name, linear_attention_kernels

    def classify(self, inputs: Sequence[Input], caller: Caller | None = None) -> ClassifyOutcome:
        """Return the logits of every input; beginnings that inputs share are read once.

        Inputs that are equal are run once. The answer to an input does not depend on the order.

        Raises:
            PromptTooLong: an input is over the token limit.
            InvalidRequest: a text cannot be encoded, or an id is not one of the model's.
            ClientClosed: the caller left; the call ended before its next forward.
            OutOfMemory: the device ran out of memory; nothing of the call is kept.
            ScoringFailed: a logit is not finite, or anything else failed.
        """
        return self.guard.run(lambda: self._classify(inputs, caller or Caller()))

    def forget_prefixes(self) -> None:
        """Drop every cached prefix, so that the next call prefills."""
        self._workspace.prefix_cache.clear()

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures; safe from any thread at any time."""
        return self._workspace.status(
            self._backbone, self._budget, self._device_name, self._kernels
        )

    @torch.inference_mode()
    def _classify(self, inputs: Sequence[Input], caller: Caller) -> ClassifyOutcome:
        started = time.perf_counter()
        encoded = self._encoder.encode(inputs)
        distinct = list({given.tokens_sha256: given for given in encoded}.values())
        encoded_at = time.perf_counter()
        cache = self._workspace.prefix_cache
        run = Run(self._backbone, self._head, self._budget, cache, distinct, caller)
        if self.shares:
            kept_tokens = self._budget.cost.longest_state(cache.status().capacity_bytes)
            run.beginnings(find_beginnings(distinct, kept_tokens=kept_tokens))
        else:
            run.whole(range(len(distinct)))
        logits = {
            given.tokens_sha256: row for given, row in zip(distinct, run.answers(), strict=True)
        }
        rows = tuple(
            PairLogits(logits[given.tokens_sha256], given.length, given.tokens_sha256)
            for given in encoded
        )
        ended = time.perf_counter()
        return ClassifyOutcome(
            rows,
            ClassifyTiming(
                total_seconds=ended - started,
                encode_seconds=encoded_at - started,
                prefill_seconds=run.prefill_seconds,
                forward_seconds=ended - encoded_at - run.prefill_seconds,
                input_tokens=sum(given.length for given in encoded),
                prefix_tokens=run.prefix_tokens,
                cached_tokens=run.cached_tokens,
                suffix_tokens=run.suffix_tokens,
                padded_tokens=run.padded_tokens,
                groups=run.groups,
            ),
        )
