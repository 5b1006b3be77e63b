"""Does an output say what the page promises? Words exactly, numbers to the digits shown."""

from __future__ import annotations

import re

_NUMBER = r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RELATIVE = 1e-6
_ROUNDING = 1e-9  # smaller numbers are residuals, whose digits depend on the processor


def agrees(promised: str, printed: str) -> bool:
    """Equal apart from spaces, rules and `...`, with numbers within one unit of the last digit."""
    pattern, numbers = _pattern(_plain(promised))
    found = re.fullmatch(pattern, _plain(printed), flags=re.DOTALL)
    return found is not None and all(map(_close, numbers, found.groups()))


def _plain(text: str) -> str:
    """Runs of spaces and of table rules shrink to one: columns may be wider elsewhere."""
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return "\n".join(re.sub(r"─+", "─", line) for line in lines if line)


def _pattern(text: str) -> tuple[str, list[str]]:
    numbers, pieces, end = [], [], 0
    for match in re.finditer(rf"\.\.\.|(?<![\w.]){_NUMBER}(?!\w)", text):
        pieces.append(re.escape(text[end : match.start()]))
        if match.group() == "...":
            pieces.append(".*?")
        else:
            pieces.append(f"({_NUMBER})")
            numbers.append(match.group())
        end = match.end()
    return "".join([*pieces, re.escape(text[end:])]), numbers


def _close(promised: str, printed: str) -> bool:
    first, second = (float(text.replace("−", "-")) for text in (promised, printed))
    if 0.0 < abs(first) < _ROUNDING:
        return abs(second) < _ROUNDING
    return abs(first - second) <= max(1.01 * _last_place(promised), _RELATIVE * abs(first))


def _last_place(text: str) -> float:
    """One unit of the last digit; nothing for a whole number, which is a count."""
    digits, _, power = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    if not decimals and not power:
        return 0.0
    return float(10.0 ** (int(power or 0) - decimals))
