"""A child process that answers with what it is asked."""

from __future__ import annotations

from contextlib import suppress

from wirelessfl.child_process import read_message, taken_streams, write_message


def main() -> None:
    requests, replies = taken_streams()
    with suppress(EOFError):
        while True:
            write_message(replies, read_message(requests))
