"""``python -m publications``: the same as ``wirelessfl papers``."""

import sys

from wirelessfl.cli import main

if __name__ == "__main__":
    main.main(["papers", *sys.argv[1:]], prog_name="wirelessfl")
