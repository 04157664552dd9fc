"""An external observer of the radio."""

from typing import Annotated

from pydantic import Field

from wirelessfl.scenario.base import Decibel, Section, key
from wirelessfl.scenario.geography import Point


class Observer(Section):
    """An external observer: a receiver at a place of its own."""

    position_m: Point = key((0.0, 0.0), "Where it stands, [x, y] from the (middle) base station [m].")
    antennas: Annotated[int, Field(ge=1, le=1024)] = key(1, "Its antennas, which fade independently.")
    noise_figure_db: Decibel = key(5.0, "Noise figure of its receiver [dB], beside channel.noise_figure_db.")
