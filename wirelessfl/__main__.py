"""``python -m wirelessfl``."""

import sys


def _drop_current_folder() -> None:
    """Removal of the current folder, which ``python -m`` puts first, from the beginning of the module search path.

    It stays, at the end, where the package itself lies in it: then worker processes find it there too.
    """
    if sys.flags.safe_path or not sys.path:
        return
    current = sys.path.pop(0)
    from pathlib import Path  # not before: the current folder may hold a module of that name

    if Path(__file__).resolve().parents[1] == Path(current).resolve():
        sys.path.append(current)


if __name__ == "__main__":
    _drop_current_folder()
    from wirelessfl.cli import main

    main()
