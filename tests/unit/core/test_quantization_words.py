"""Methods that describe their weights in a block of their own."""

import pytest

from builders_families import tiny_llama
from builders_models import facts_from


@pytest.mark.parametrize(
    ("declared", "want"),
    [
        pytest.param(
            {
                "quant_method": "torchao",
                "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}},
            },
            4,
            id="torchao, four bits",
        ),
        pytest.param(
            {"quant_method": "torchao", "quant_type": "int8_weight_only"}, 8, id="torchao, eight"
        ),
        pytest.param(
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}},
            4,
            id="HQQ",
        ),
        pytest.param(
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}},
            4,
            id="Quark, MXFP4",
        ),
        pytest.param(
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}},
            8,
            id="Quark, fp8",
        ),
    ],
)
def test_bits_are_read_from_the_methods_own_block(declared, want):
    facts = facts_from(tiny_llama(quantization_config=declared))
    assert facts.quantization.weight_bits == want
