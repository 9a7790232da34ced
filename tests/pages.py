"""Pages of documentation: their blocks, and whether what they show is what is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """Return the arguments of every `caltest` that begins a line, or follows `&&`."""
    lines = re.findall(r"^(?:.*&& )?(?:\S*/)?caltest (.*)$", text, flags=re.MULTILINE)
    return [shlex.split(line) for line in lines]


def shown_in(shown: str, printed: str) -> bool:
    """Whether every part of what is shown, between lines of dots, is printed, in this order."""
    start = 0
    for part in re.split(r"^ *…\n", shown, flags=re.MULTILINE):
        found = printed.find(part.strip("\n"), start)
        if found < 0:
            return False
        start = found + len(part.strip("\n"))
    return True
