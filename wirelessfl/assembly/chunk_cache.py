"""Results of calibrations in the user's cache directory, one small JSON file each."""

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "WIRELESSFL_CACHE"


@dataclass(frozen=True)
class ChunkCache:
    """Chunks by key; whatever is damaged or cannot be reached counts as not there, and nothing here raises.

    Attributes:
        folder: where the files lie; it need not exist.
    """

    folder: Path

    def load(self, key: str, chunks: Sequence[int]) -> int | None:
        """Which of ``chunks`` is kept under ``key``, or None."""
        try:
            chunk = json.loads(self._file(key).read_text(encoding="utf-8"))["chunk"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return chunk if type(chunk) is int and chunk in chunks else None

    def is_writable(self) -> bool:
        """Whether something could be kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                return True
        except OSError:
            return False

    def keep(self, key: str, chunk: int, chunks: Sequence[int]) -> int | None:
        """Storage of the chunk of ``chunks`` that was chosen.

        Returns:
            The chunk that is kept from now on: another where another process was first; None where it cannot be.
        """
        try:
            return self._keep(key, chunk, chunks)
        except OSError:
            return None

    def _keep(self, key: str, chunk: int, chunks: Sequence[int]) -> int:
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".new")
        new = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"chunk": chunk}, file)
            first = self._publish(new, key, chunks)
            return chunk if first is None else first
        finally:
            new.unlink(missing_ok=True)

    def _publish(self, new: Path, key: str, chunks: Sequence[int]) -> int | None:
        # Renaming of `new`; where a sound file has the name already, that stays and its chunk is returned.
        try:
            os.link(new, self._file(key))  # unlike a replacement it fails where there is a file: the first one wins
        except OSError:  # there is one, or the file system has no links
            first = self.load(key, chunks)
            if first is not None:
                return first
            new.replace(self._file(key))
        return None

    def _file(self, key: str) -> Path:
        return self.folder / f"chunk-{key}.json"


def user_cache() -> ChunkCache | None:
    """The cache of this user: ``WIRELESSFL_CACHE``, else ``wirelessfl`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    given = os.environ.get(VARIABLE)
    if given:
        return ChunkCache(Path(given))
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # as its specification says of anything else
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            return None
    return ChunkCache(caches / "wirelessfl")
