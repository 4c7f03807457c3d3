"""The kinds of values in the applied-state file's JSON, whose fractions arrive as Decimal."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kquota.formats.strict_json import printable

Text = Annotated[str, Field(min_length=1)]
Shown = Annotated[str, AfterValidator(printable)]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Positive = Annotated[Count, Field(ge=1)]
Number = Annotated[
    float,
    BeforeValidator(lambda value: float(value) if isinstance(value, Decimal) else value),
    Field(strict=True, ge=0, lt=2.0**1000),
]
Ratio = Annotated[Number, Field(le=1)]
