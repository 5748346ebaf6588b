"""Writes the boards: `python dashboards/build.py`. With `--check` it writes nothing and fails if a file is not current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from boards.every import files

FOLDER = Path(__file__).parent / "json"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files. Returns 1 if a check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which files are not current")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the JSON files (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    stale = differences(chosen.out)
    if chosen.check:
        for path in stale:
            print(f"{path}: not current; run python dashboards/build.py")
        return int(bool(stale))
    chosen.out.mkdir(parents=True, exist_ok=True)
    for path, text in stale.items():
        if text:
            path.write_text(text, encoding="utf-8")
        else:
            path.unlink()
    return 0


def differences(folder: Path) -> dict[Path, str]:
    """Return what has to be written into `folder`, by path; an empty text stands for a file that has to go."""
    wanted = {folder / name: text for name, text in files().items()}
    there = {path: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return {path: text for path, text in wanted.items() if there.get(path) != text} | dict.fromkeys(there.keys() - wanted.keys(), "")


if __name__ == "__main__":
    sys.exit(main())
