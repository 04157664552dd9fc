"""Colours of the page as variables of its style: the palette of all pictures on light and on dark pages."""

from wirelessfl.summary.style import CYCLE, ROLES

_NIGHT = "#1d2127"
"""Background of panels on a dark page, as in style.css."""
_RAMP = ("#00204c", "#31446b", "#666970", "#958f78", "#cab969", "#ffea46")
"""From low to high by lightness alone: cividis, the same to colour-blind readers (Nuñez, Anderton, Renslow 2018)."""
_READABLE, _FAINT, _COLOURLESS = 4.5, 1.6, 0.2
_STEPS = 50
_RAMP_BY_NIGHT = 0.35
"""Part of the ramp, from its dark end, that is too dark for a dark page and left out by night."""

_Rgb = tuple[float, float, float]


def _rgb(colour: str) -> _Rgb:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: _Rgb) -> float:
    # Relative luminance of WCAG 2.2
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((_luminance(_rgb(one)), _luminance(_rgb(other))))
    return (light + 0.05) / (dark + 0.05)


def _mixed(one: str, other: str, share: float) -> str:
    parts = ((1 - share) * a + share * b for a, b in zip(_rgb(one), _rgb(other), strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def is_faint(colour: str) -> bool:
    """Whether a colour is hardly more than white; a bright yellow is not."""
    return contrast(colour, "#ffffff") < _FAINT and max(_rgb(colour)) - min(_rgb(colour)) < _COLOURLESS


def by_night(colour: str) -> str:
    """A colour on a dark page, with the contrast that it has on a white page.

    Faint colours stay faint, strong ones become lighter until they can be read.
    """
    wanted = min(contrast(colour, "#ffffff"), _READABLE)
    faint = is_faint(colour)
    found = [_mixed(colour, _NIGHT if faint else "#ffffff", step / _STEPS) for step in range(_STEPS + 1)]
    if faint:
        return next(mixed for mixed in found if contrast(mixed, _NIGHT) <= wanted + 0.05)
    return next(mixed for mixed in found if contrast(mixed, _NIGHT) >= wanted)


def ramp(begin: float = 0.0) -> dict[str, str]:
    """Colours of numbers from low to high, by the names of their variables, from so far along the ramp on."""
    last = len(_RAMP) - 1
    places = [last * (begin + (1 - begin) * step / last) for step in range(len(_RAMP))]
    below = [min(int(place), last - 1) for place in places]
    return {
        f"ramp-{step}": _mixed(_RAMP[at], _RAMP[at + 1], place - at)
        for step, (place, at) in enumerate(zip(places, below, strict=True))
    }


def ramp_by_night() -> dict[str, str]:
    """The colours of numbers on a dark page: the low ones stand out from it too."""
    return ramp(_RAMP_BY_NIGHT)


def palette() -> dict[str, str]:
    """Colours on a light page, by the names of their variables: every role, and the series without one."""
    numbered = {f"cycle-{number}": colour for number, colour in enumerate(CYCLE)}
    return {**{role.replace("_", "-"): colour for role, colour in ROLES.items()}, **numbered}


def colour_variables() -> str:
    """Style sheet with the colours for light pages, dark pages and print."""
    day = palette() | ramp()
    night = {name: by_night(colour) for name, colour in palette().items()} | ramp_by_night()

    def rule(colours: dict[str, str]) -> str:
        return ":root { " + " ".join(f"--{name}: {colour};" for name, colour in colours.items()) + " }"

    return (
        f"{rule(day)}\n"
        f"@media (prefers-color-scheme: dark) {{ {rule(night)} }}\n@media print {{ {rule(day)} }}\n"
        # The figures of a study are drawn with the names of their colours in the page.
        ":root { --blue: var(--cycle-0); --vermilion: var(--cycle-1); --green: var(--cycle-2); "
        "--orange: var(--cycle-3); --sky: var(--cycle-4); --pink: var(--cycle-5); --grey: var(--cycle-6); }\n"
    )
