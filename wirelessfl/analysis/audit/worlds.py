"""What must be alike in the worlds of a game: the noise, how far the canary reaches, how often it is sampled.

A mechanism may treat some inputs, clients or steps otherwise than its record says, while a matched filter, which takes
the mean over all trials, sees little of it: noise that is smaller where there is a gradient, a clip that some clients
escape, batches that are not drawn independently. The rates of false alarms are exact or smaller:

- the noise of n outputs with at least the variance on record lies below a χ²(n) quantile no more often than that law
  says, with or without the canary;
- of n normal outputs that one canary moves equally far, none is further from their median than twice the normal
  quantile of α/8n (once for it, once for the median), in units of an upper confidence limit for the deviation;
- the number of events that hold the canary, and of trials in which an event does, are binomial (Massart 1990).
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from wirelessfl.analysis.audit.games import Observations, Values

# Size and reach in two worlds each, the former with the canary and in all events, and two of the sampling.
_TESTS = 8
# Of a canary that is larger beside the noise, the rounding of numbers of 32 bits hides the noise.
_CLEAREST = 1e4
# Outputs of one event that hold the canary, below which those of all events are taken together.
_FEWEST = 10


def world_faults(observations: Observations, false_alarm: float) -> list[str]:
    """What differs between worlds, trials or events though the record says that it does not, in plain sentences.

    Args:
        observations: of a game.
        false_alarm: the probability that a sound mechanism is said to do so.
    """
    alpha = false_alarm / _TESTS
    found: list[str] = []
    if observations.recorded_std is not None and np.all(observations.recorded_std > 0):
        found += [*_noise_of_worlds(observations, observations.recorded_std, alpha)]
        found += [*_unequal_reach(observations, observations.recorded_std, alpha)]
    if observations.independent:
        found += [*_dependent_sampling(observations, alpha)]
    return found


def _measurable(observations: Observations, recorded_std: Values) -> NDArray[np.bool_]:
    # (n, E) events that are released in both worlds, and whose noise is not rounded away beside the canary.
    here = np.ones_like(observations.included) & (observations.shift <= _CLEAREST * recorded_std)
    return here if observations.silent is None else here & np.logical_not(observations.silent.any(axis=0))


def _noise_of_worlds(observations: Observations, recorded_std: Values, alpha: float) -> Iterator[str]:
    released = _measurable(observations, recorded_std)
    worlds = ("with the canary", observations.plus), ("in the other world", observations.minus)
    for place, (words, world) in enumerate(worlds):
        moved = np.where(observations.included, observations.shift, 0.0) / recorded_std
        moved = moved * (place == 0 or observations.exchange)
        for part in (released, released & observations.included):
            outputs, amplitude = (world / recorded_std)[part], moved[part]
            power = float(amplitude @ amplitude)
            if power > 0:  # what a regression on the canary leaves is noise
                outputs = outputs - amplitude * (amplitude @ outputs) / power
            degrees = len(outputs) - (power > 0)
            size = float(outputs @ outputs)
            if degrees > 0 and stats.chi2.logcdf(size, degrees) < math.log(alpha):
                yield (
                    f"The noise {words} is smaller than recorded: {size / degrees:.3g} of its variance is there, in "
                    f"{len(outputs)} outputs."
                )
                break


def _unequal_reach(observations: Observations, recorded_std: Values, alpha: float) -> Iterator[str]:
    released = _measurable(observations, recorded_std)
    included = observations.included & released
    middle = 0.5 * (observations.plus + observations.minus) * math.sqrt(2) if observations.exchange else None
    noise = observations.minus if middle is None else middle
    together = bool(np.any(included.sum(axis=0) < _FEWEST))
    events = [slice(None)] if together else [slice(event, event + 1) for event in range(included.shape[1])]
    for words, world in (("", observations.plus), (" of opposite sign", observations.minus)):
        if words and not observations.exchange:
            return
        far, most = 0, 0.0
        for event in events:
            part, scale = included[:, event], np.broadcast_to(recorded_std[event], included[:, event].shape)
            if np.count_nonzero(part) < 2:
                continue
            amplitude = np.broadcast_to(observations.shift[event], part.shape)[part] / scale[part]
            outputs = world[:, event][part] / scale[part]
            known = (noise[:, event] / recorded_std[event])[released[:, event]]
            limit = _deviation_limit(known, alpha / (4 * len(events)))
            quantile = float(stats.norm.isf(alpha / (8 * len(events) * len(outputs))))
            # Of equal amplitudes the median is no further off than any output; of others, by their ratio.
            centre = np.median(outputs / amplitude) * amplitude if amplitude.min() > 0 else np.median(outputs)
            ratio = float(amplitude.max() / amplitude.min()) if amplitude.min() > 0 else 1.0
            beyond = np.abs(outputs - centre) - (1 + ratio) * quantile * limit
            far += int(np.count_nonzero(beyond > 0))
            most = max(most, float(np.abs(outputs - centre).max()))
        if far:
            yield (
                f"The canary{words} does not move all outputs equally far: {far} of {np.count_nonzero(included)} are "
                f"up to {most:.3g} standard deviations of the recorded noise away from the others. Some are not "
                "clipped, or under other noise."
            )


def _deviation_limit(noise: Values, alpha: float) -> float:
    # What the standard deviation of normal outputs does not exceed, but with probability alpha.
    degrees = len(noise) - 1
    return float(np.std(noise, ddof=1)) * math.sqrt(degrees / float(stats.chi2.ppf(alpha, degrees)))


def _dependent_sampling(observations: Observations, alpha: float) -> Iterator[str]:
    included, rate = observations.included, observations.sample_rate
    trials, events = included.shape
    hits = included.sum(axis=0)
    unlikely = stats.binom.sf(hits - 1, trials, rate)
    worst = int(np.argmin(unlikely))
    if unlikely[worst] * events < alpha:
        yield (
            f"The canary is sampled more often than recorded, at the rate {rate:.3g}: in {hits[worst]} of {trials} "
            f"trials in event {worst + 1}."
        )
    law = stats.binom.cdf(np.arange(events + 1), events, rate)
    found = np.cumsum(np.bincount(included.sum(axis=1), minlength=events + 1)) / trials
    distance = float(np.abs(found - law).max())
    if distance > math.sqrt(math.log(2 / alpha) / (2 * trials)):
        yield (
            "The canary is not sampled independently in every event: the number of events that hold it has a "
            f"distribution {distance:.3g} away from the binomial one."
        )
