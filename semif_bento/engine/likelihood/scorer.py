"""The straight line of a call: encode → priors → prefill or prefix cache → groups → scores.

Knows nothing of HTTP, calibration or how the model was loaded. Not thread-safe.
"""

import time

import torch

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
from semif_bento.engine.likelihood.encoded import EncodedRequest, Ids
from semif_bento.engine.likelihood.encoding import LikelihoodEncoder
from semif_bento.engine.likelihood.priors import LogProbs, PriorCache, prior_key
from semif_bento.engine.likelihood.reading import Reader
from semif_bento.engine.likelihood.wording import (
    LIKELIHOOD_PROBABILITY_STATUS,
    LIKELIHOOD_READOUT,
    LIKELIHOOD_VERSION,
    MOST_OPTIONS,
    option_logit,
)
from semif_bento.engine.prefix import PrefixState
from semif_bento.engine.workspace import Workspace
from semif_bento.protocol import softmax


class TorchLikelihood:
    """Scores decisions by the likelihood of their options; built and proven by `opening`."""

    name = "likelihood"
    most_options = MOST_OPTIONS
    direct_readout = shared_readout = LIKELIHOOD_READOUT
    probability_status = LIKELIHOOD_PROBABILITY_STATUS

    def __init__(
        self,
        *,
        identity: ModelIdentity,
        encoder: LikelihoodEncoder,
        reader: Reader,
        workspace: Workspace,
        device_name: str,
        linear_attention_kernels: str,
    ) -> None:
        self.identity = identity
        self.guard = workspace.guard
        self.serving_config = f"likelihood-shared-prefix-{reader.backbone.branch_attention}-v1"
        self._encoder, self._reader, self._priors = encoder, reader, PriorCache()
        self._workspace, self._prefix_cache = workspace, workspace.prefix_cache
        self._device_name, self._kernels = device_name, linear_attention_kernels

    def prompt_version(self, options: int) -> str:
        """Return the version of the wording; it is the same for any options."""
        return LIKELIHOOD_VERSION

    def check(self, request: ScoreRequest) -> None:
        """Refuse nothing: what can be refused takes the tokenizer."""

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Score the only decision of `request`; its state is read anew and not kept.

        Its prior may be known, which changes no bit.

        Raises:
            PromptTooLong: a prompt is over its token limit.
            InvalidRequest: a text cannot be encoded, or an option has no tokens.
            ClientClosed: the caller left; the call ended before its next forward.
            OutOfMemory: the device ran out of memory; nothing of the call is kept.
            ScoringFailed: a log-probability is not finite, or anything else failed.
        """
        return self.guard.run(lambda: self._direct(request, caller or Caller()))

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Score every decision of `request` against one prefill of its state.

        Raises:
            The same as `direct`.
        """
        return self.guard.run(lambda: self._shared(request, caller or Caller()))

    def forget_prefixes(self) -> None:
        """Drop every cached prefix and prior, so that the next call computes all it needs."""
        self._prefix_cache.clear()
        self._priors.clear()

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures; safe from any thread at any time."""
        reader = self._reader
        return self._workspace.status(
            reader.backbone, reader.budget, self._device_name, self._kernels
        )

    @torch.inference_mode()
    def _direct(self, request: ScoreRequest, caller: Caller) -> DirectOutcome:
        started = time.perf_counter()
        encoded = self._encoder.encode(request)
        forward_started = time.perf_counter()
        priors = self._read_priors(encoded, caller)
        caller.require_presence()
        prefix = self._prefill(encoded.state.prefix_ids)
        reading = self._reader.read(prefix, encoded.state.questions, encoded.options, caller)
        ended = time.perf_counter()  # what was read is on the host, so the device has finished
        return DirectOutcome(
            scores=_scores(request.decisions[0], encoded, 0, reading.log_probs, priors),
            forward_seconds=ended - forward_started,
            total_seconds=time.perf_counter() - started,
        )

    @torch.inference_mode()
    def _shared(self, request: ScoreRequest, caller: Caller) -> SharedOutcome:
        started = time.perf_counter()
        encoded = self._encoder.encode(request)
        encoded_at = time.perf_counter()
        priors = self._read_priors(encoded, caller)
        priors_at = time.perf_counter()
        key = encoded.state.cache_key()
        caller.require_presence()
        known = self._prefix_cache.get(key)
        prefix = known or self._prefill(encoded.state.prefix_ids)
        prefilled_at = time.perf_counter()
        reading = self._reader.read(prefix, encoded.state.questions, encoded.options, caller)
        ended = time.perf_counter()
        # Only a state whose branches all came out finite is worth keeping.
        self._prefix_cache.put(key, prefix)
        return SharedOutcome(
            scores=tuple(
                _scores(decision, encoded, index, reading.log_probs, priors)
                for index, decision in enumerate(request.decisions)
            ),
            timing=SharedTiming(
                total_seconds=time.perf_counter() - started,
                encode_seconds=encoded_at - started,
                prefix_tokens=prefix.length,
                prefill_seconds=prefilled_at - priors_at,
                replicate_seconds=0.0,  # branches read the prefix where it lies
                suffix_forward_seconds=ended - prefilled_at + priors_at - encoded_at,
                batch_size=len(request.decisions),
                true_suffix_tokens=reading.tokens,
                padded_suffix_tokens=reading.padded_tokens,
                branch_groups=reading.groups,
                cache_hit=known is not None,
            ),
            serving_config=self.serving_config,
        )

    def _read_priors(self, encoded: EncodedRequest, caller: Caller) -> LogProbs:
        """Return log P(option | question), computed together where it is not known.

        Before the state is read: nothing else of the call lies on the device then.
        """
        key = prior_key(encoded)
        known = self._priors.get(key)
        if known is not None:
            return known
        caller.require_presence()
        prefix = self._prefill(encoded.prior.prefix_ids)
        reading = self._reader.read(prefix, encoded.prior.questions, encoded.options, caller)
        self._priors.put(key, reading.log_probs)
        return reading.log_probs

    def _prefill(self, prefix_ids: Ids) -> PrefixState:
        prefix = self._reader.backbone.prefill(prefix_ids)
        if self._reader.backbone.device.type == "cuda":
            torch.cuda.synchronize()  # or the prefill's time would be booked to the branches
        return prefix


def _scores(
    decision: Decision, encoded: EncodedRequest, index: int, likely: LogProbs, priors: LogProbs
) -> Scores:
    """Return a decision's answer; its logits are scores over the temperature."""
    options = encoded.options[index]
    distinct = [
        option_logit(log_prob, prior, len(ids))
        for log_prob, prior, ids in zip(likely[index], priors[index], options.distinct, strict=True)
    ]
    logits = tuple(distinct[place] for place in options.place)
    return Scores(
        decision_id=decision.id,
        option_ids=tuple(option.id for option in decision.options),
        option_logits=logits,
        probabilities=softmax(logits),
        input_tokens=encoded.input_tokens(index),
        prompt_sha256=encoded.hashes[index],
    )
