"""Matrix products for CPUs without bfloat16 units; knows nothing of models or prompts.

Without AVX512-BF16 or AMX, torch multiplies bfloat16 matrices several times slower than float32
ones. Here the operands are widened, multiplied in float32 and rounded once to the model's dtype:
the same products and the same single rounding that a bfloat16 kernel with float32 accumulation
gives, in another order of summation.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  the name every torch reader expects

# Below this many rows, widening the weight costs more than the product saves (measured: 2 to 4).
WIDEN_FROM_ROWS = 4


class WideningLinear(nn.Linear):
    """A linear layer that multiplies in float32 whatever its weight's dtype; shares the weight."""

    @classmethod
    def around(cls, linear: nn.Linear) -> "WideningLinear":
        """Return a layer with the very parameters of `linear`, nothing copied."""
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer.in_features, layer.out_features = linear.in_features, linear.out_features
        layer.weight, layer.bias = linear.weight, linear.bias
        layer.eval()
        return layer

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features) in the dtype of `input`."""
        if input.numel() // self.in_features < WIDEN_FROM_ROWS:
            return super().forward(input)
        bias = None if self.bias is None else self.bias.float()
        return F.linear(input.float(), self.weight.float(), bias).to(input.dtype)


def has_native_products(device: torch.device, dtype: torch.dtype) -> bool:
    """Tell whether `device` multiplies matrices of `dtype` in hardware."""
    if device.type != "cpu" or dtype == torch.float32:
        return True
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())


def widen_linears(module: nn.Module) -> None:
    """Replace every plain linear layer below `module` by one that multiplies in float32."""
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, WideningLinear.around(child))
        else:
            widen_linears(child)
