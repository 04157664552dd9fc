"""The documentation is carried out: every command, every snippet, the notebook."""
