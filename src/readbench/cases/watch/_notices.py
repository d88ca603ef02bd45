"""Notices: what a watch says when it is sure enough, and where it says it.

A notice goes to a log, a line of JSON each, and to webhooks: generic JSON, Slack, or PagerDuty's Events API v2. It has
a key that is the same whenever the same event is told again, so that nobody is told twice: the log leaves known keys
out, JSON has it in the header `Idempotency-Key`, PagerDuty as `dedup_key`. Addresses of webhooks may be secrets: they
are named as `env:NAME` or `file:PATH`, and errors do not repeat them.
"""

from __future__ import annotations

import json
import os
import time as clock
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from readbench.cases._models import Record
from readbench.cases.connect import BoundedSession, read_secret
from readbench.common.files import digest
from readbench.errors import DataError, UnreachableError, UsageError

Kind = Literal["fault", "unlike", "unclear", "trouble", "recovered"]
Shape = Literal["json", "slack", "pagerduty"]
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
TIMEOUT_S = 10.0
MOST_SLACK = 3000
"""Characters of a section of Slack's."""
MOST_READ = 16 * 2**20
"""Bytes of the end of a log that are read."""


class NoticeFault(Record):
    """What an event may be, and how likely."""

    label: str
    probability: float


class NoticeCase(Record):
    """A case that resembles an event."""

    id: str
    label: str | None
    asset: str
    notes: str
    link: str = ""


class NoticeEvidence(Record):
    """A channel that departs in the event, how far in standard deviations, and whether the best case does the same."""

    channel: str
    window: float
    case: float
    same_way: bool


class Notice(Record):
    """What is told of an event.

    Args:
        key: the same whenever this event is told.
        kind: `fault`: it is this, firmly; `unlike`: nothing here is like it; `unclear`: it departs, and nobody knows;
            `trouble`: the watch is blind, or a background loop fails; `recovered`: no longer.
        asset: that departs.
        source: where its signals come from, as it may be shown.
        onset: when it began, in seconds since 1970.
        seen: when its departure was seen.
        told: when this was said.
        trigger: `departure`, or the name of the alert that asked.
        faults: what it may be, most likely first.
        cases: most like it, best first.
        evidence: channels of the best case.
        remarks: what the reader must know.
        link: to the range on the page; "" where no service was named.
        text: all of it in a sentence or two.
        follows: key of an earlier notice of the same event, which did not know the fault, or of the trouble that is
            over; "" of the first.
    """

    key: str
    kind: Kind
    asset: str
    source: str
    onset: float
    seen: float
    told: float
    trigger: str = "departure"
    faults: tuple[NoticeFault, ...] = ()
    cases: tuple[NoticeCase, ...] = ()
    evidence: tuple[NoticeEvidence, ...] = ()
    remarks: tuple[str, ...] = ()
    link: str = ""
    text: str = ""
    follows: str = ""


def note_trouble(source: str, what: str, error: str, since: float, now: float | None = None) -> Notice:
    """A notice that something does not work, or, without an error, that it works again.

    Args:
        source: whose trouble it is.
        what: does not work.
        error: why not; "" where it works again.
        since: when it began, in seconds since 1970; the notice that it is over says the same.
        now: seconds since 1970.

    >>> note_trouble("the service", "lends what is learned", "MemoryError", 0.0).text
    'the service: lends what is learned fails: MemoryError'
    """
    now = clock.time() if now is None else now
    begun = digest("trouble", source, what, since)
    return Notice(
        key=begun if error else digest(begun, "recovered"),
        kind="trouble" if error else "recovered",
        asset="",
        source=source,
        onset=since,
        seen=since,
        told=now,
        trigger=what,
        text=f"{source}: {what} fails: {error}" if error else f"{source}: {what} works again",
        follows="" if error else begun,
    )


class NoticeLog:
    """A file of notices, a line each; one that is there already is not written again.

    Args:
        path: of the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, notice: Notice) -> bool:
        """Append a notice and have it on the disk; False where it was there."""
        if any(own.key == notice.key for own in self.latest(1000)):
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            # A line that a killed writer left without an end is ended here, and left out by readers.
            torn = file.tell() > 0 and not _ends_line(self.path)
            file.write((b"\n" if torn else b"") + notice.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return True

    def latest(self, count: int) -> list[Notice]:
        """The last notices, the newest first."""
        try:
            with self.path.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - MOST_READ))
                lines = deque(file, maxlen=count + 1)
        except FileNotFoundError:
            return []
        found = [own for line in reversed(lines) if (own := _read_line(line)) is not None]
        return found[:count]


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _read_line(line: bytes) -> Notice | None:
    try:
        return Notice.model_validate_json(line)
    except ValueError:
        return None


@dataclass(frozen=True)
class Webhook:
    """Where notices are sent.

    Args:
        shape: of the body.
        where: an address, or where one is kept: `env:NAME` or `file:PATH`; of PagerDuty, where the routing key is kept.
        address: of PagerDuty's API.
    """

    shape: Shape
    where: str
    address: str = PAGERDUTY

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `json=https://desk/notices`, `slack=env:SLACK_URL` or `pagerduty=env:PAGERDUTY_KEY`.

        Slack's address is a secret, as PagerDuty's key is, and so is one that holds a password.

        >>> Webhook.parse("slack=env:SLACK_URL")
        Webhook(shape='slack', where='env:SLACK_URL', address='https://events.pagerduty.com/v2/enqueue')
        """
        shape, _, where = text.partition("=")
        where, _, address = where.partition("@") if shape == "pagerduty" else (where, "", "")
        if shape not in {"json", "slack", "pagerduty"} or not where:
            raise UsageError("Say whom to notify: --notify json=URL, slack=env:NAME or pagerduty=env:NAME.")
        own = cls(shape, where, address or PAGERDUTY)  # type: ignore[arg-type]
        open_to_all = where.startswith(("http://", "https://")) and "@" not in urlsplit(where).netloc
        if not own._kept and (shape != "json" or not open_to_all):
            raise UsageError(f"Name where the {shape} key or address is kept: --notify {shape}=env:NAME or file:PATH.")
        return own

    @property
    def _kept(self) -> bool:
        """Whether `where` names the place of a secret."""
        return self.where.startswith(("env:", "file:"))

    @property
    def shown(self) -> str:
        """Where it goes, as it may be shown."""
        return f"{self.shape}={self.where if self._kept else urlsplit(self.where).netloc}"

    @property
    def key(self) -> str:
        """Tells it from other webhooks, at the same host too."""
        return digest(self.shape, self.where, self.address)

    def check(self) -> None:
        """Refuse a secret that cannot be read, before there is a notice."""
        self._secret()

    def _secret(self) -> str:
        return read_secret(self.where, self.shown) if self._kept else self.where

    def send(self, notice: Notice) -> None:
        """Send a notice; `UnreachableError` where nobody answers, `DataError` where it was not taken."""
        secret = self._secret()
        address = self.address if self.shape == "pagerduty" else secret
        session = BoundedSession(self.shown, TIMEOUT_S, self._lost)
        try:
            headers = {"Idempotency-Key": notice.key}
            answer = session.ask("POST", address, json=self.body(notice, secret), headers=headers)
        finally:
            session.close()
        if answer.status >= 400:
            raise DataError(f"{self.shown} does not take the notice: status {answer.status}.")

    def _lost(self, error: Exception | str) -> UnreachableError:
        """The error of a receiver that does not answer: its address may be a secret."""
        words = error if isinstance(error, str) else type(error).__name__
        return UnreachableError(f"{self.shown} does not answer: {words}.")

    def body(self, notice: Notice, key: str = "") -> dict[str, Any]:
        """What is sent, in the shape of the receiver; `key` is PagerDuty's."""
        if self.shape == "slack":
            return _slack(notice)
        return _pagerduty(notice, key) if self.shape == "pagerduty" else notice.model_dump(mode="json")


def _slack(notice: Notice) -> dict[str, Any]:
    """Slack's incoming webhook: a text for the notification, and blocks."""
    lines = [f"*{_escape(notice.text)}*"]
    for own in notice.cases[:3]:
        name = f"<{_escape(own.link)}|{_escape(own.id)}>" if own.link else _escape(own.id)
        lines.append(f"• {name}: {_escape(own.label or 'not resolved')}. {_escape(own.notes)}".strip())
    alike = [f"{own.channel} ({own.window:.1f} sd)" for own in notice.evidence if own.same_way]
    lines += [f"Alike: {_escape(', '.join(alike))}"] if alike else []
    lines += [_escape(words) for words in notice.remarks]
    if notice.link:
        lines.insert(1, f"<{_escape(notice.link)}|Open the range>")
    kept = [lines[0][:MOST_SLACK], *lines[1:]]
    while len("\n".join(kept)) > MOST_SLACK and len(kept) > 1:  # whole lines: half a link is none
        kept.pop()
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(kept)}}
    return {"text": _escape(notice.text), "blocks": [section]}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _pagerduty(notice: Notice, key: str) -> dict[str, Any]:
    """PagerDuty's Events API v2."""
    links = [{"href": notice.link, "text": "Open the range"}] if notice.link else []
    details: Mapping[str, Any] = notice.model_dump(mode="json", include={"faults", "cases", "evidence", "remarks"})
    return {
        "routing_key": key,
        "event_action": "resolve" if notice.kind == "recovered" else "trigger",
        "dedup_key": notice.follows or notice.key,
        "payload": {
            "summary": notice.text[:1024],
            "source": notice.asset or notice.source,
            "severity": "error" if notice.kind in {"fault", "trouble"} else "warning",
            "timestamp": datetime.fromtimestamp(notice.onset, UTC).isoformat(),
            "custom_details": json.loads(json.dumps(details)),
        },
        "links": links,
    }
