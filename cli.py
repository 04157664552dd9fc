"""Runs the command line from a checkout: ``python cli.py simulate quickstart``."""

from wirelessfl.cli import main

if __name__ == "__main__":
    main()
