"""Of Spark's long messages, the line with the cause."""

from __future__ import annotations

import pytest

from kquota_pipeline.ingest.stream import _cause


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[STREAM_FAILED] Query: Traceback (most recent call):\n  File y\nRuntimeError: no power\n\tat z",
            "RuntimeError: no power",
        ),
        (
            "[STREAM_FAILED] Query x\nCaused by: a.b.UnknownTopicOrPartitionException: no such topic\n\tat z",
            "a.b.UnknownTopicOrPartitionException: no such topic",
        ),
        (
            "An error occurred while calling z:x.\n: a.b.ConfigException: no such\n\tat z",
            "a.b.ConfigException: no such",
        ),
        ("in plain words\nand more", "in plain words"),
        ("", "Exception"),
    ],
)
def test_the_last_exception_that_a_message_names_is_its_cause(text, said):
    assert _cause(Exception(text)) == said
