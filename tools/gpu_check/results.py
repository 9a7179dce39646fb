"""The results of checks: results.json in a folder with their logs, and an archive of that folder to be copied.

results.json: {"programs_sha256": ..., "checks": {name: {"status", "seconds", "reason", "log_end", "facts"}}}. A status
is running, passed, failed, skipped or not run.
"""

import json
import os
import tarfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, Optional

Facts = Dict[str, Any]

FILE = "results.json"
PACK_EVERY_S = 15  # the machine may be lost at any time


class Unusable(Exception):
    """The text names the file and the reason."""


class Results:
    def __init__(self, folder: Path, programs_sha256: str, archive: Path) -> None:
        self.folder = folder
        self._archive = archive
        self._lock = threading.Lock()
        self._packed = time.monotonic()
        self._content: Facts = {"programs_sha256": programs_sha256, "checks": {}}

    @property
    def checks(self) -> Dict[str, Facts]:
        return self._content["checks"]

    def take_over(self, earlier: Facts) -> None:
        """Takes over the results of an earlier run."""
        self._content["checks"] = dict(earlier["checks"])

    def record(self, name: str, entry: Facts) -> None:
        """Records the result so that a kill does not lose it."""
        with self._lock:
            self.checks[name] = entry
            replace(self.folder / FILE, json.dumps(self._content, indent=1) + "\n")
            if time.monotonic() > self._packed + PACK_EVERY_S:
                self._pack()

    def finish(self, summary: str) -> None:
        with self._lock:
            replace(self.folder / "summary.md", summary)
            self._pack()

    def status(self, name: str) -> Optional[str]:
        return self.checks.get(name, {}).get("status")

    def facts(self, name: str) -> Facts:
        """The facts of a check; empty if it did not pass."""
        return self.checks.get(name, {}).get("facts") or {}

    def _pack(self) -> None:
        partial = self._archive.with_name(self._archive.name + ".partial")
        with tarfile.open(partial, "w:gz") as packed:
            for path in sorted(self.folder.iterdir()):
                if path.is_file() and path not in (partial, self._archive) and path.suffix != ".partial":
                    packed.add(path, f"gpu_check/{path.name}")
        os.replace(partial, self._archive)
        self._packed = time.monotonic()


def replace(path: Path, text: str) -> None:
    """Replaces the file atomically: a reader sees the old text or the new."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)


def read_earlier(source: Path, folder: Path) -> Facts:
    """Reads results.json, or unpacks an archive, whose other files then lie in the folder too."""
    try:
        if tarfile.is_tarfile(source):
            with tarfile.open(source) as packed:
                for member in packed:
                    content = packed.extractfile(member) if member.isfile() else None
                    if content is not None:
                        (folder / Path(member.name).name).write_bytes(content.read())
            source = folder / FILE
        earlier = json.loads(source.read_text())
        if not isinstance(earlier["checks"], dict) or not isinstance(earlier["programs_sha256"], str):
            raise ValueError("expected programs and checks")
        return dict(earlier)
    except KeyError as error:
        raise Unusable(f"{source}: lacks {error}") from error
    except (OSError, ValueError, TypeError, tarfile.TarError) as error:
        raise Unusable(f"{source}: {error}") from error
