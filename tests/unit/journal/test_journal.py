"""One sentence an entry, with stable ids and fields, and never a secret."""

import io
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kquota.journal.journal import Entry, Journal, MessageId

ROOT = Path(__file__).parents[3]
CATALOG = ROOT / "packaging" / "kquota.catalog"
SECRET = "hunter2-very-secret"


@pytest.fixture
def open_journal() -> Iterator[Callable[..., tuple[Journal, io.StringIO]]]:
    journals = []

    def open_one(level: str = "INFO") -> tuple[Journal, io.StringIO]:
        stream = io.StringIO()
        journals.append(Journal({}, level, stream))
        return journals[-1], stream

    yield open_one
    for journal in journals:
        journal.close()


def entry(level: int, sentence: str, **fields: str) -> Entry:
    return Entry(level, sentence, MessageId.CYCLE, fields)


def test_without_systemd_a_line_with_a_timestamp(
    open_journal: Callable[..., tuple[Journal, io.StringIO]],
) -> None:
    journal, stream = open_journal()
    assert not journal.to_journald
    journal.write(
        [entry(logging.WARNING, "PAUSE: /dev/sda1 of broker 3 is full"), entry(logging.INFO, "100 % fine")]
    )
    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING PAUSE: /dev/sda1 of broker 3 is full", first
    )
    assert second.endswith("INFO 100 % fine")


def test_the_level_can_be_changed(open_journal: Callable[..., tuple[Journal, io.StringIO]]) -> None:
    journal, stream = open_journal()
    journal.write([entry(logging.DEBUG, "hidden")])
    journal.configure("DEBUG")
    journal.write([entry(logging.DEBUG, "shown")])
    journal.configure("ERROR")
    journal.write([entry(logging.WARNING, "hidden again")])
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["shown"]


def test_one_entry_is_one_line(open_journal: Callable[..., tuple[Journal, io.StringIO]]) -> None:
    journal, stream = open_journal()
    journal.write([entry(logging.INFO, "a\nforged\r\nline")])
    assert stream.getvalue().count("\n") == 1


def test_secrets_of_any_library_are_taken_out(
    open_journal: Callable[..., tuple[Journal, io.StringIO]],
) -> None:
    journal, stream = open_journal()
    journal.configure("INFO", secrets=[SECRET, "a"])
    journal.write([entry(logging.INFO, f"the password {SECRET} is wrong", KQUOTA_REASON=SECRET)])
    try:
        raise RuntimeError(SECRET)
    except RuntimeError:
        logging.getLogger("some.library").warning("failed: %s", SECRET, exc_info=True)
    assert SECRET not in stream.getvalue()
    assert "the password [redacted] is wrong" in stream.getvalue()
    assert "RuntimeError: [redacted]" in stream.getvalue()
    # a secret of one letter is not replaced all over the place
    assert "password" in stream.getvalue()


def test_closing_gives_logging_back(open_journal: Callable[..., tuple[Journal, io.StringIO]]) -> None:
    before = list(logging.getLogger().handlers)
    journal, stream = open_journal()
    journal.close()
    assert logging.getLogger().handlers == before
    logging.getLogger("kquota").error("no one listens")
    assert stream.getvalue() == ""


def test_an_inherited_journal_stream_is_not_taken_for_ours() -> None:
    with Path("/dev/null").open("w") as stream:
        journal = Journal({"JOURNAL_STREAM": "8:4711"}, stream=stream)
        journal.close()
    assert not journal.to_journald


def catalog_entries() -> dict[str, str]:
    entries: dict[str, str] = {}
    for block in re.split(r"^-- ", CATALOG.read_text(), flags=re.MULTILINE)[1:]:
        message_id, text = block.split("\n", 1)
        assert message_id not in entries, f"{message_id} is there twice"
        entries[message_id] = text
    return entries


def test_every_kind_of_entry_is_in_the_catalog_and_no_other() -> None:
    assert set(catalog_entries()) == {str(message_id) for message_id in MessageId}


def test_the_catalog_names_only_fields_there_are() -> None:
    fields = set(re.findall(r"@(\w+)@", CATALOG.read_text()))
    assert fields <= {"KQUOTA_BROKER_ID", "KQUOTA_STATE", "KQUOTA_FACTOR", "KQUOTA_REASON"}
    for message_id, text in catalog_entries().items():
        assert re.match(r"Subject: \S.*\nDefined-By: kquota\n\n\S", text), message_id


def test_ids_are_random_uuids_used_once() -> None:
    assert len(set(MessageId)) == len(MessageId.__members__)
    for message_id in MessageId:
        assert re.fullmatch(r"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", message_id)
