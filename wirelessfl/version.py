"""The version of the package: the one place where it is written."""

VERSION = "0.2.0.dev4"


def package_version() -> str:
    """The version of wirelessfl that runs here."""
    return VERSION
