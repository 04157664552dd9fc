"""Words for the keys of a scenario on axes, in titles and in legends: ``SNR (dB)`` for ``uplink.snr_db``."""

from wirelessfl.study.factors import Factor

# Keys that say which of several kinds something is: the thing itself is named.
_KINDS = {"kind", "name", "model", "scheme", "mechanism", "policy", "protocol", "rule"}
_UNITS = {
    "db": "dB",
    "dbm": "dBm",
    "hz": "Hz",
    "s": "s",
    "j": "J",
    "m": "m",
    "bps": "bit/s",
    "m_s": "m/s",
    "per_s": "1/s",
}
_WORDS = {
    "snr": "SNR",
    "csi": "CSI",
    "cpu": "CPU",
    "lr": "learning rate",
    "epsilon": "ε",
    "delta": "δ",
    "alpha": "α",
    "mu": "μ",
    "lambda": "λ",
    "tx": "transmit",
    "pathloss": "path loss",
    "p": "probability",
}
_OWN = {"epsilon", "p", "lr", "mu", "alpha", "lambda", "clip", "steps", "limit", "share", "bits", "rate", "root"}


def key_words(path: str) -> str:
    """Words for a key path, with its unit.

    The end of the path says what it is; a kind is named by what it is a kind of, a count by what is counted, and an end
    that many sections have, such as ε, together with its section.
    """
    above, end = [*path.split("."), ""][-3:-1] if "." in path else ["", path]
    if end in _KINDS and above:
        return _words(above)
    if end == "count" and above:
        return f"number of {_words(above)}"
    if end in _OWN and above and above not in ("training", "data"):
        return f"{_words(end)} ({_words(above)})"
    for suffix in sorted(_UNITS, key=len, reverse=True):
        if end.endswith(f"_{suffix}"):
            return f"{_words(end.removesuffix(f'_{suffix}'))} ({_UNITS[suffix]})"
    return _words(end)


def factor_words(factor: Factor) -> str:
    """Words for the keys of a factor."""
    return " + ".join(map(key_words, factor.keys))


def setting_words(factor: Factor, level: int) -> str:
    """Words for a factor at one of its levels."""
    return f"{factor_words(factor)} = {factor.label(level)}"


def _words(name: str) -> str:
    return " ".join(_WORDS.get(part, part) for part in name.split("_"))
