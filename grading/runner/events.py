"""What the child tells the grader, an event a line: what an event may hold, and what is none."""

import json
from dataclasses import dataclass
from typing import Any

from grading.course.place import Place

FIELDS: dict[str, type] = {  # of any event; one that is missing is empty
    "test": str,
    "outcome": str,
    "status": int,
    "message": str,
    "kind": str,
    "check": bool,
    "diagnosis": str,
    "general": bool,
    "output": str,
    "duration": float,
}
FORGED = b'{"event": "tampered", "message": "The tested code wrote where only checks write."}'
NAMES = {"ready", "imported", "import failed", "start", "end", "exit", "tampered", "finished"}


@dataclass(frozen=True)
class Event:
    """Something that has happened in the child."""

    name: str  # one of NAMES
    test: str = ""  # of "start" and "end"
    outcome: str = ""  # of "end": passed, failed or skipped
    status: int = 0  # of "finished": pytest's
    message: str = ""  # the text of an exception, its type, and whether a check of the course has written it
    kind: str = ""
    check: bool = False
    diagnosis: str = ""
    general: bool = False  # the diagnosis only says how the numbers differ
    frames: tuple[Place, ...] = ()  # the lines of the package that an exception passed through, the innermost last
    output: str = ""  # what the test has printed
    duration: float = 0.0  # seconds


def read(lines: list[bytes]) -> list[Event]:
    """The events in what a child has told, in order."""
    return [event for event in map(parsed, lines) if event is not None]


def parsed(line: bytes) -> Event | None:
    """An event of the child's, or None for anything else: whatever that was meant to be, it is not a pass."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("event") not in NAMES:
        return None
    fields: dict[str, Any] = {name: said.get(name, kind()) for name, kind in FIELDS.items()}
    frames = said.get("frames", [])
    if not isinstance(frames, list) or not all(isinstance(fields[name], kind) for name, kind in FIELDS.items()):
        return None
    places = tuple(place for frame in frames if (place := _place(frame)) is not None)
    return Event(said["event"], frames=places, **fields)


def _place(frame: object) -> Place | None:
    if not isinstance(frame, dict):
        return None
    file, line, source = frame.get("file"), frame.get("line"), frame.get("source") or ""
    if not isinstance(file, str) or not isinstance(line, int | None) or not isinstance(source, str):
        return None
    return Place(file, line, source=source)
