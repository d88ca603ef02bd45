"""What `pip-audit --format json` found, told honestly: `... | python -m tools.audit`.

The program calls it a success when it could look up nothing. Here packages that were not looked up are counted; this
package, which no index has yet, is left out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

OWN = "readbench"


def judge(dependencies: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Lines to print, and whether all is well.

    Args:
        dependencies: the list that the program gives under this name.
    """
    others = [own for own in dependencies if own["name"] != OWN]
    found = [
        f"{own['name']} {own['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version'}"
        for own in others
        for flaw in own.get("vulns", ())
    ]
    unknown = [own["name"] for own in others if "skip_reason" in own]
    lines = [*found, f"{len(others) - len(unknown)} of {len(others)} packages were looked up."]
    if unknown:
        lines.append(f"Nothing is known of {', '.join(unknown[:5])}{' and others' if len(unknown) > 5 else ''}.")
    return lines, not found and not unknown


def main() -> None:
    """Print what was found; fail where a package is vulnerable or was not looked up."""
    lines, well = judge(json.load(sys.stdin)["dependencies"])
    print("\n".join(lines))  # noqa: T201 - this is the output
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
