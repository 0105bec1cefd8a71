"""A body full of faults costs no more than its first: only that one is told."""

import pytest
from pydantic import ValidationError

from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.schema import SharedRequest


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (ClassifyRequest, {"pairs": [1] * 1000}),
        (ClassifyRequest, {"input_ids": [[[]] * 1000]}),
        (ClassifyRequest, {"input_ids": [1] * 1000}),
        (SharedRequest, {"state": "s", "decisions": [0] * 1000}),
    ],
)
def test_no_fault_is_looked_for_after_the_first_of_a_list(model, body):
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    assert caught.value.error_count() == 1
