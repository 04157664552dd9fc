"""Sentences of a run on the meaning of its two ε, beside those that follow from its releases."""

SCOPE = (
    "ε covers what the named adversary sees of one run; it does not cover the choice of the best of several runs, and "
    "not the trace: the seed, update norms, actual back-off, transmit energies, training losses and counts of updates "
    "that are not finite are private data of the simulated clients."
)
ENDED_BY_ITS_OUTPUTS = (
    "The run ended early because of what it had released. That rule uses no private data. The accounted figure is that "
    "of the rounds that were run: for a run that may end in this way, the ε of all rounds (which `validate` prints) "
    "holds at the stated δ, and the figure given here at δ times the number of rounds."
)
"""Why the ε of a run whose end depends on its outputs is not known before the run (docs, privacy)."""
ENDED_AT_A_LIMIT = (
    "The run ended early at a limit on ε, time or energy, which follow the losses that clients have reported. The "
    "accounted figure is that of the rounds that were run, and holds at δ times the number of rounds."
)
"""The same where reported losses select the clients."""
ENDS_BY_CLIENTS_DATA = (
    "No guarantee holds: the run ends at an accuracy on test samples that belong to clients, and the number of rounds "
    "depends on these. With test data that belong to no client, or with stop.accuracy: null, the ε of the rounds holds."
)
"""Why nothing is proven of a run whose end follows the clients' own data (docs, privacy)."""
OUTSIDE_THE_LEDGER = (
    "Clients that send more than the clip or their power budget allows (clients.roles with a factor above 1, over the "
    "air) have no guarantee and are not in either ε; the guarantees of the others do not depend on them."
)
SCALED_BY_ALL_DATA = (
    "Columns of the table are scaled by the mean and the deviation of the samples of all clients "
    "(data.dataset.scaling: standard); neither ε covers these numbers."
)
OBSERVED_FROM = "The adversary is an observer at"
"""Beginning of the sentence on an observer, whose place follows."""
_OF_THE_RUN = (ENDED_BY_ITS_OUTPUTS, ENDED_AT_A_LIMIT, ENDS_BY_CLIENTS_DATA, OUTSIDE_THE_LEDGER, SCALED_BY_ALL_DATA)


def is_of_the_run(sentence: str, adversary: str) -> bool:
    """Whether a sentence does not follow from releases, so that a trace keeps it for the ledger computed from it.

    Args:
        sentence: Of the recorded ledger.
        adversary: Of the new one; a sentence on an observer is for this adversary alone.
    """
    return sentence in _OF_THE_RUN or (adversary == "observer" and sentence.startswith(OBSERVED_FROM))
