"""Words for the keys of a scenario on axes, in titles and in legends: ``SNR (dB)`` for ``uplink.snr_db``."""

import re

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
_OWN = {
    "epsilon",
    "p",
    "lr",
    "mu",
    "alpha",
    "lambda",
    "clip",
    "steps",
    "limit",
    "share",
    "antennas",
    "bits",
    "rate",
    "root",
    "fraction",
}


def key_words(path: str) -> str:
    """Words for a key path, with its unit.

    The end of the path says what it is; a kind is named by what it is a kind of, a count by what is counted, and an end
    that many sections have, such as ε, together with its section. Of an item of a list the list is named.
    """
    path = ".".join(part for part in path.split(".") if not part.isdecimal())
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
    """Words for the keys of a factor that its labels are of."""
    return " + ".join(map(key_words, factor.told_keys))


def level_words(factor: Factor) -> tuple[str, ...]:
    """Words for all levels of a factor: ``over the air`` for ``over_the_air``, a class without its module.

    Where two levels would have the same words, all have their labels.
    """
    labels = tuple(factor.label(level) for level in range(len(factor.levels)))
    words = tuple(", ".join(map(_name_words, label.split(", "))) for label in labels)
    return words if len(set(words)) == len(set(labels)) else labels


def setting_words(factor: Factor, level: int) -> str:
    """Words for a factor at one of its levels."""
    return f"{factor_words(factor)} = {level_words(factor)[level]}"


def _name_words(text: str) -> str:
    # Names as a scenario has them; anything else, such as a path or a mapping, as it is
    if text == "null":
        return "none"
    if re.fullmatch(r"[A-Za-z]\w*", text):
        return text.replace("_", " ")
    return text.rpartition(":")[2] if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text) else text


def _words(name: str) -> str:
    return " ".join(_WORDS.get(part, part) for part in name.split("_"))
