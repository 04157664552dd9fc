"""``python -m wirelessfl``."""

from wirelessfl.cli import main

main()
