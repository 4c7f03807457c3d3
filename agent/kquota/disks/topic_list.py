"""The topics of a log dir, by the names of its directories: a part of the probe process, and as small.

Source of the names: Kafka's ``LocalLog``. It appends to ``topic-partition`` and, for a move between log dirs,
to ``topic-partition.id-future``. To ``topic-partition.id-delete`` and ``topic-partition.id-stray`` it appends
nothing.
"""

import _thread
import os
import time

FUTURE_SUFFIX = "-future"
METADATA_TOPIC = "__cluster_metadata"
MAX_TOPIC_CHARACTERS = 249
MAX_NAME_CHARACTERS = 255
DIGITS = "0123456789"
ID_CHARACTERS, ID_LENGTH = DIGITS + "abcdef", 32
TOPIC_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-" + DIGITS
# The line that wakes the owner; no other part of an answer has this sign.
ALARM = b"!\n"
# A listing that has taken this many ticks is not waited for: what was found before is out of date.
PATIENCE_TICKS = 4
# The coarsest step of a file system's times: ext4 with small inodes keeps whole seconds.
CLOCK_STEP_SECONDS = 1.0
# How often to list a directory that has changed, where no topics are asked for: links are made by hand.
LINKS_SECONDS = 30.0

Stamp = tuple[int, int, int]
"""A directory's device, inode and time of change in nanoseconds."""


def topic_of(directory: str) -> str:
    """Return the topic that Kafka appends to in a directory of this name, or an empty text for none.

    A future one whose name is as long as names may be gives none: the topic may be cut short in it.
    """
    name = directory
    if directory.endswith(FUTURE_SUFFIX):
        name, _, unique_id = directory[: -len(FUTURE_SUFFIX)].rpartition(".")
        is_whole = len(unique_id) == ID_LENGTH and len(directory) < MAX_NAME_CHARACTERS
        if unique_id.strip(ID_CHARACTERS) or not is_whole:
            return ""
    topic, _, partition = name.rpartition("-")
    is_partition = partition != "" and not partition.strip(DIGITS)
    # strip() leaves what stands between others: nothing is left only where each character is allowed.
    return topic if is_partition and not topic.strip(TOPIC_CHARACTERS) else ""


def topics_of(directories: list[str], most: int) -> tuple[str, ...] | None:
    """Return the topics that clients can write to in directories of these names, sorted, each once.

    None where not all of them can be known, or there are more than ``most``. A name that is no partition's
    (a checkpoint, lost+found) is ignored, and so is a directory that Kafka is about to delete.
    """
    topics = set()
    for directory in directories:
        topic = topic_of(directory)
        if topic and topic != METADATA_TOPIC and len(topic) <= MAX_TOPIC_CHARACTERS:
            topics.add(topic)
        elif not topic and directory.endswith(FUTURE_SUFFIX):
            return None
    return tuple(sorted(topics)) if len(topics) <= most else None


def linked_elsewhere(entry: os.DirEntry[str], device: int) -> bool:
    """Return whether a directory of a partition is a symbolic link to another file system than ``device``.

    So is one that may not be followed, or not to its end. A link that leads to nothing is none: Kafka ignores
    it.
    """
    if not topic_of(entry.name):
        return False
    try:
        return entry.is_symlink() and os.stat(entry.path).st_dev != device  # noqa: PTH116 - pathlib is large
    except PermissionError:
        return True
    except OSError:
        return False


class TopicList:
    """The topics of one log dir, listed again after the directory has changed.

    ``link`` is a partition in it whose directory is a symbolic link to another file system, None for none:
    Kafka follows it, and appends there.

    Each listing has a thread of its own: it may take longer than a look, which has to find a full disk
    meanwhile.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.most = 0
        self.topics: tuple[str, ...] | None = None
        self.told: tuple[str, ...] | None = None
        self.link: str | None = None
        self.busy_since_tick: int | None = None
        # Of the last listing: the directory's stamp, and how many topics to name.
        self.listed: tuple[Stamp | None, int] = None, 0
        self.listed_at = -LINKS_SECONDS
        # Whether the last listing began after the step of the clock that the stamp is from.
        self.is_settled = False

    def ask(self, most: int) -> None:
        """Name this many topics at most from now on; 0 for none."""
        if self.most and not most:
            self.topics, self.listed = None, (None, 0)
        self.most = most

    def follow(self, tick: int) -> None:
        """Have the directory listed where it has changed, or may have within a step of its clock."""
        most, waited = self.most, time.monotonic() - self.listed_at
        if self.busy_since_tick is not None or (not most and waited < LINKS_SECONDS):
            return
        stamp = stamp_of(self.path)
        is_due = not self.is_settled and waited >= CLOCK_STEP_SECONDS
        if is_due or (stamp, most) != self.listed:
            self.busy_since_tick = tick
            try:
                _thread.start_new_thread(self.list, (stamp, most))
            except RuntimeError:  # no memory, no slot for a thread: the next look tries again
                self.topics = self.busy_since_tick = None

    def list(self, stamp: Stamp | None, most: int) -> None:
        """List the directory, which had this stamp before; wake the owner where its topics are others now."""
        begun = time.monotonic()
        try:
            with os.scandir(os.fsdecode(self.path)) as listing:
                entries = list(listing)
            topics = topics_of([entry.name for entry in entries], most) if most else None
            device = 0 if stamp is None else stamp[0]
            self.link = next((one.name for one in entries if linked_elsewhere(one, device)), None)
            self.is_settled = stamp == self.listed[0]
        except OSError:
            topics, self.is_settled = None, False
        has_changed = topics != self.topics
        self.listed, self.listed_at, self.topics = (stamp, most), begun, topics
        self.busy_since_tick = None
        if has_changed and most:
            os.write(1, ALARM)

    def news(self, tick: int) -> str:
        """Return the field of an answer: the topics, ``-`` for not known, or ``=`` for those of before."""
        topics, since = self.topics, self.busy_since_tick
        if not self.most or (since is not None and tick - since >= PATIENCE_TICKS):
            topics = None
        if topics == self.told:
            return "="
        self.told = topics
        return "-" if topics is None else ":" + ",".join(topics)


def stamp_of(path: bytes) -> Stamp | None:
    """Return the directory's stamp, or None where it can't be had."""
    try:
        status = os.stat(path)  # noqa: PTH116 - pathlib would make the process larger
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns
