"""Products that are widened to float32 are as good as native ones, with the same parameters."""

import pytest
import torch
from torch import nn

from semif_bento.engine.linear import (
    WIDEN_FROM_ROWS,
    WideningLinear,
    has_native_products,
    widen_linears,
)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(64,), (2, 64), (5, 64), (2, 3, 64)])
def test_in_float32_it_is_the_linear_layer(bias, shape):
    linear = nn.Linear(64, 32, bias=bias)
    given = torch.randn(*shape)
    assert torch.equal(WideningLinear.around(linear)(given), linear(given))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_at_least_as_close_to_the_exact_product_as_the_native_one(dtype, bias):
    torch.manual_seed(0)
    linear = nn.Linear(512, 256, bias=bias).to(dtype)
    given = torch.randn(200, 512).to(dtype)
    exact = nn.functional.linear(
        given.double(), linear.weight.double(), linear.bias.double() if bias else None
    )
    found = WideningLinear.around(linear)(given)
    assert found.dtype == dtype
    ours, native = ((out.double() - exact).norm() for out in (found, linear(given)))
    assert ours <= native * 1.001
    # One rounding, and what a float32 sum of 512 products loses.
    one_rounding = exact.abs() * torch.finfo(dtype).eps / 2
    assert ((found.double() - exact).abs() <= one_rounding + 1e-5).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_it_is_the_float32_product_rounded_once(dtype):
    linear = nn.Linear(512, 256).to(dtype)
    given = torch.randn(200, 512).to(dtype)
    exact = nn.functional.linear(given.float(), linear.weight.float(), linear.bias.float())
    assert torch.equal(WideningLinear.around(linear)(given), exact.to(dtype))


def test_parameters_are_shared_not_copied():
    linear = nn.Linear(8, 8)
    widened = WideningLinear.around(linear)
    assert widened.weight is linear.weight
    assert widened.bias is linear.bias


def test_few_rows_take_the_native_product():
    linear = nn.Linear(64, 32).to(torch.bfloat16)
    given = torch.randn(WIDEN_FROM_ROWS - 1, 64).to(torch.bfloat16)
    assert torch.equal(WideningLinear.around(linear)(given), linear(given))


def test_only_plain_linear_layers_are_replaced_at_any_depth():
    class Special(nn.Linear):
        pass

    tree = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Sequential(Special(4, 4), nn.Linear(4, 4))})
    widen_linears(tree)
    kinds = [type(m) for m in tree.modules() if isinstance(m, nn.Linear)]
    assert kinds == [WideningLinear, Special, WideningLinear]


def test_float32_needs_no_widening_anywhere():
    assert has_native_products(torch.device("cpu"), torch.float32)
    assert has_native_products(torch.device("cuda"), torch.bfloat16)
