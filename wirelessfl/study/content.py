"""Identity of a run: a stable hash of its resolved scenario."""

import hashlib
import json

from wirelessfl.scenario import Scenario

_DIGITS = 16


def content_id(scenario: Scenario) -> str:
    """Sixteen hexadecimal digits that are the same for equal scenarios, in every process and on every machine.

    They cover every key with the value that counts, defaults included, and nothing else: not the order of the keys in
    the file, not its comments, not how a value was written. Among n runs two different ones share an id with
    probability below n²/2⁶⁵, about 3e-12 for 10,000 runs.
    """
    content = json.dumps(scenario.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]
