"""Points in time in the messages: ISO 8601, as `kquota.policy.timestamps` reads it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_FORM = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?"
    r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)$"
)
_WITH_SECONDS = len("2026-11-20T10:15:30Z")


def timestamp(text: Column) -> Column:
    """Return the point in time that a text names; null where it names none between the years 1 and 9999.

    Digits finer than a microsecond are cut off.
    """
    usual = text.endswith("Z") & (F.char_length(text) >= _WITH_SECONDS) & ~F.contains(text, F.lit(","))
    # Spark wants seconds and no decimal comma, and of offsets it knows only +hh:mm.
    unusual = F.regexp_replace(F.regexp_replace(text, ",", "."), r"(T\d{2}:\d{2})(Z|[+-].*)$", "$1:00$2")
    unusual = F.regexp_replace(unusual, r"(T.*[+-]\d{2})(\d{2})$", "$1:$2")
    unusual = F.regexp_replace(unusual, r"(T.*[+-]\d{2})$", "$1:00")
    moment = F.try_to_timestamp(F.when(usual, text).otherwise(unusual))
    return F.when(text.rlike(_FORM) & F.year(moment).between(1, 9999), moment)
