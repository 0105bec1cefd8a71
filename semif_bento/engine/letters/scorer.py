"""The straight line of a scoring call: encode → prefill or prefix cache → groups → slot logits.

Knows nothing of HTTP, calibration or how the model was loaded. Not thread-safe.
"""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from semif_bento.caller import Caller
from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    EngineStatus,
    ModelIdentity,
    ScoreRequest,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.letters.encoding import EncodedDecision, EncodedRequest, Encoder
from semif_bento.engine.letters.head import SlotHead
from semif_bento.engine.prefix import PrefixState
from semif_bento.engine.workspace import Workspace
from semif_bento.protocol import (
    DIRECT_READOUT,
    PROBABILITY_STATUS,
    SHARED_READOUT,
    prompt_version,
    softmax,
)

BranchScores = tuple[tuple[float, ...], float | None]
"""One branch's answer: its option logits, and its letter mass when diagnostics were asked for."""


class TorchScorer:
    """Scores decisions with one model on one device; built and proven by `opening`."""

    name = "letters"
    direct_readout, shared_readout = DIRECT_READOUT, SHARED_READOUT
    probability_status = PROBABILITY_STATUS

    def __init__(
        self,
        *,
        identity: ModelIdentity,
        encoder: Encoder,
        backbone: Backbone,
        head: SlotHead,
        budget: BranchBudget,
        workspace: Workspace,
        device_name: str,
        linear_attention_kernels: str,
    ) -> None:
        self.identity = identity
        self.slot_count = len(encoder.slot_ids)
        self.most_options = len(encoder.wide_slots.ids)
        self.guard = workspace.guard
        self._encoder, self._backbone, self._head = encoder, backbone, head
        self._budget = budget
        self._workspace, self._prefix_cache = workspace, workspace.prefix_cache
        self._device_name, self._kernels = device_name, linear_attention_kernels
        self.serving_config = f"shared-prefix-{backbone.branch_attention}-v1"

    def prompt_version(self, options: int) -> str:
        """Return the version of the prompt that so many options make."""
        return prompt_version(options)

    def check(self, request: ScoreRequest) -> None:
        """Refuse nothing: what can be refused takes the tokenizer."""

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Score the only decision of `request` by one whole forward, no cache involved.

        The caller is not asked once the forward has begun.

        Raises:
            InvalidRequest: the prompt is over the token limit, or its text cannot be encoded.
            OutOfMemory: the device ran out of memory; nothing of the call is kept.
            ScoringFailed: a logit is not finite, or anything else failed.
        """
        return self.guard.run(lambda: self._direct(request))

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Score every decision of `request` against one prefill of its state.

        A caller who has left ends the call before its next group of branches.

        Raises:
            The same as `direct`, and ClientClosed: the caller left.
        """
        return self.guard.run(lambda: self._shared(request, caller or Caller()))

    def forget_prefixes(self) -> None:
        """Drop every cached prefix, so that the next shared call prefills."""
        self._prefix_cache.clear()

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures; safe from any thread at any time."""
        return self._workspace.status(
            self._backbone, self._budget, self._device_name, self._kernels
        )

    @torch.inference_mode()
    def _direct(self, request: ScoreRequest) -> DirectOutcome:
        started = time.perf_counter()
        encoded = self._encoder.encode(request)
        forward_started = time.perf_counter()
        hidden = self._backbone.whole(encoded.whole(0))
        (branch,) = self._read(hidden, encoded.decisions, request.diagnostics)
        ended = time.perf_counter()  # the logits are on the host, so the device has finished
        return DirectOutcome(
            scores=_scores(request.decisions[0], encoded, 0, branch),
            forward_seconds=ended - forward_started,
            total_seconds=time.perf_counter() - started,
        )

    @torch.inference_mode()
    def _shared(self, request: ScoreRequest, caller: Caller) -> SharedOutcome:
        started = time.perf_counter()
        encoded = self._encoder.encode(request)
        encoded_at = time.perf_counter()
        key = encoded.cache_key()
        known = self._prefix_cache.get(key)
        prefix = known or self._prefill(encoded.prefix_ids)
        prefilled_at = time.perf_counter()
        lengths = [len(decision.suffix_ids) for decision in encoded.decisions]
        groups = self._budget.groups(lengths, prefix.length)
        branches, padded = self._run_groups(prefix, encoded, groups, request.diagnostics, caller)
        ended = time.perf_counter()
        # Only a state whose branches all came out finite is worth keeping.
        self._prefix_cache.put(key, prefix)
        return SharedOutcome(
            scores=tuple(
                _scores(decision, encoded, index, branches[index])
                for index, decision in enumerate(request.decisions)
            ),
            timing=SharedTiming(
                total_seconds=time.perf_counter() - started,
                encode_seconds=encoded_at - started,
                prefix_tokens=prefix.length,
                prefill_seconds=prefilled_at - encoded_at,
                replicate_seconds=0.0,  # branches read the prefix where it lies
                suffix_forward_seconds=ended - prefilled_at,
                batch_size=len(request.decisions),
                true_suffix_tokens=sum(lengths),
                padded_suffix_tokens=padded,
                branch_groups=len(groups),
                cache_hit=known is not None,
            ),
            serving_config=self.serving_config,
        )

    def _prefill(self, prefix_ids: Sequence[int]) -> PrefixState:
        prefix = self._backbone.prefill(prefix_ids)
        if self._backbone.device.type == "cuda":
            torch.cuda.synchronize()  # or the prefill's time would be booked to the branches
        return prefix

    def _run_groups(
        self,
        prefix: PrefixState,
        encoded: EncodedRequest,
        groups: Sequence[Sequence[int]],
        diagnostics: bool,
        caller: Caller,
    ) -> tuple[dict[int, BranchScores], int]:
        """Run group after group; return every branch's answer by index, and tokens computed."""
        found: dict[int, BranchScores] = {}
        padded = 0
        for group in groups:
            caller.require_presence()
            decisions = [encoded.decisions[index] for index in group]
            suffixes = [decision.suffix_ids for decision in decisions]
            hidden = self._backbone.branches(prefix, suffixes)
            padded += self._backbone.padded_tokens([len(s) for s in suffixes])
            answers = self._read(hidden, decisions, diagnostics)
            found.update(zip(group, answers, strict=True))
        return found, padded

    def _read(
        self, hidden: Tensor, decisions: Sequence[EncodedDecision], diagnostics: bool
    ) -> list[BranchScores]:
        counts = [len(decision.slot_ids) for decision in decisions]
        rows = self._head.declared(hidden, counts)
        masses: Sequence[float | None] = (
            self._head.letter_mass(hidden, rows, counts) if diagnostics else [None] * len(counts)
        )
        return [(tuple(row.tolist()), mass) for row, mass in zip(rows, masses, strict=True)]


def _scores(
    decision: Decision, encoded: EncodedRequest, index: int, branch: BranchScores
) -> Scores:
    logits, letter_mass = branch
    row = encoded.decisions[index]
    return Scores(
        decision_id=decision.id,
        option_ids=tuple(option.id for option in decision.options),
        option_logits=logits,
        probabilities=softmax(logits),
        input_tokens=len(encoded.prefix_ids) + len(row.suffix_ids),
        prompt_sha256=row.prompt_sha256,
        letter_mass=letter_mass,
    )
