"""Fuzzing: damaged files and signals against the command line, seeded, each in a process of its own.

Run it with ``python -m tests.fuzz``. A case follows from (kind, seed, index) alone: a subject (a healthy file), a few
steps that damage it, and a command. What no case may do is in `verdict`.
"""
