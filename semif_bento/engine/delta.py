"""Qwen3.5's gated delta rule for many branches of one prefix; knows nothing of requests or memory.

Projections, norm and output work on the flat tokens; only the convolution and the recurrence work
on padded runs, each starting from the prefix's one state. The branch's own states are dropped,
unless a single branch is run to make a longer prefix of it.
"""

import inspect
from collections.abc import Callable

from torch import Tensor, cat, nn
from torch.nn import functional as F  # noqa: N812  the name every torch reader expects
from transformers.cache_utils import Cache
from transformers.models.qwen3_5 import modeling_qwen3_5 as upstream

from semif_bento.engine.attention import BranchContext
from semif_bento.engine.layout import Run


class BranchedDeltaNet(upstream.Qwen3_5GatedDeltaNet):
    """transformers' layer, which also runs many branches at once when `branches` is given."""

    @classmethod
    def around(cls, layer: upstream.Qwen3_5GatedDeltaNet) -> "BranchedDeltaNet":
        """Return a layer with the very sub-modules and parameters of `layer`, nothing copied."""
        branched = cls.__new__(cls)
        nn.Module.__init__(branched)
        branched.__dict__.update(layer.__dict__)
        return branched

    def forward(
        self,
        hidden_states: Tensor,
        cache: Cache | None = None,
        attention_mask: Tensor | None = None,
        branches: BranchContext | None = None,
        **kwargs: object,
    ) -> Tensor:
        """Map (1, T, hidden) to (1, T, hidden); without `branches`, exactly the parent's forward.

        Raises:
            ValueError: branches without the prefix's states.
        """
        if branches is None:
            return super().forward(hidden_states, cache=cache, attention_mask=attention_mask)
        conv_state = cache.get_conv_state(self.layer_idx, state_idx=0) if cache else None
        state = cache.get_recurrent_state(self.layer_idx, state_idx=0) if cache else None
        if conv_state is None or state is None:
            raise ValueError("branches need the prefix's convolution and recurrent state")
        tokens = hidden_states[0]  # (T, hidden)
        mixed = self.in_proj_qkv(tokens)
        beta = self.in_proj_b(tokens).sigmoid()
        # float(): in float16 the product below could reach -inf (as in the parent)
        decay = -self.A_log.float().exp() * F.softplus(
            self.in_proj_a(tokens).float() + self.dt_bias
        )
        runs = [
            self._mix(run, mixed, beta, decay, conv_state, state, branches.keeps_states)
            for run in branches.layout.runs
        ]
        cores = [core for core, _ in runs]
        if cache is not None and branches.keeps_states:
            ((_, last),) = runs
            cache.update_conv_state(mixed.t()[None], self.layer_idx)
            cache.update_recurrent_state(last, self.layer_idx)
        core = cores[0] if len(cores) == 1 else cat(cores)  # (T, H_v, D_v)
        gate = self.in_proj_z(tokens).reshape(-1, self.head_v_dim)
        normed = self.norm(core.reshape(-1, self.head_v_dim), gate)
        return self.out_proj(normed.reshape(1, tokens.shape[0], -1))

    def _mix(
        self,
        run: Run,
        mixed: Tensor,
        beta: Tensor,
        decay: Tensor,
        conv: Tensor,
        state: Tensor,
        keeps_states: bool,
    ) -> tuple[Tensor, Tensor]:
        """Convolve and recur one run from the prefix's states.

        Returns:
            (T_run, H_v, D_v), and the states after the run (B, H_v, D_k, D_v) where they are kept.
        """
        rows = run.pad(mixed).transpose(1, 2)  # (B, C, W)
        rows = cat([conv.expand(run.branches, -1, -1), rows], dim=-1)
        rows = upstream.causal_conv1d_fn(
            rows, self.conv1d.weight.squeeze(1), self.conv1d.bias, activation=self.activation
        )[:, :, -run.width :].transpose(1, 2)
        query, key, value = rows.split([self.key_dim, self.key_dim, self.value_dim], dim=-1)
        shape = (run.branches, run.width, -1)
        core, last = upstream.torch_chunk_gated_delta_rule(
            query.reshape(*shape, self.head_k_dim),
            key.reshape(*shape, self.head_k_dim),
            value.reshape(*shape, self.head_v_dim),
            g=run.pad(decay),
            beta=run.pad(beta),
            initial_state=state.expand(run.branches, -1, -1, -1),
            output_final_state=keeps_states,
            use_qk_l2norm_in_kernel=True,
        )
        return run.unpad(core), last


def branch_delta_layers(module: nn.Module) -> None:
    """Replace every gated delta layer below `module` by one that can run branches."""
    for name, child in module.named_children():
        if type(child) is upstream.Qwen3_5GatedDeltaNet:
            setattr(module, name, BranchedDeltaNet.around(child))
        else:
            branch_delta_layers(child)


def kernels_in_use(module: nn.Module) -> str:
    """Name what computes linear attention below `module`: "none", "torch" or a package's name.

    transformers resolves the kernels once at import; the answer is read from what it resolved.
    """
    if not any(isinstance(m, upstream.Qwen3_5GatedDeltaNet) for m in module.modules()):
        return "none"
    wrapper = inspect.unwrap(upstream.torch_chunk_gated_delta_rule, stop=_holds_implementation)
    implementation = inspect.getclosurevars(wrapper).nonlocals["implementation"]
    package = implementation.__module__.partition(".")[0]
    return "torch" if package == "transformers" else package


def _holds_implementation(function: Callable[..., object]) -> bool:
    return "implementation" in function.__code__.co_freevars
