"""All that is to be measured where a GPU is at hand, in one command: ``make gpu``."""
