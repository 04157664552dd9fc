"""The record of several over-the-air slots of one round, each with clients of its own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.releases.air import AirRelease


def of_slots(releases: Sequence[AirRelease], clients: NDArray[np.int64], samples: NDArray[np.int64]) -> AirRelease:
    """The record of slots in which different clients sent, each under the noise of its own slot.

    A client is in one slot, of which alone an adversary learns about it: what holds for it is the ratio of what it can
    contribute and the noise there. The scales of the slots differ, so that all are put in units in which the receiver's
    own noise is that of the slot with the least. What a server makes of the readings costs nothing more.

    Args:
        releases: of the slots, with one receiver's noise in common up to their scales.
        clients: (n,) all senders, in the order of the record.
        samples: (n,) their n_i.
    """
    members = np.concatenate([each.clients for each in releases])
    place = {client: at for at, client in enumerate(members.tolist())}
    order = np.array([place[client] for client in clients.tolist()], dtype=np.int64)
    least = min(each.unjammed_noise_std for each in releases)
    scales = [1.0 if least == 0 else least / each.unjammed_noise_std for each in releases]

    def column(name: str, power: int = 0) -> NDArray[np.float64]:
        parts = [
            np.broadcast_to(getattr(each, name), each.clients.shape) * scale**power
            for each, scale in zip(releases, scales, strict=True)
        ]
        return np.asarray(np.concatenate(parts)[order])

    batches = [each.batch_size for each in releases]
    whole = dict(zip(clients.tolist(), samples.tolist(), strict=True))
    batch_size = None
    if any(batch is not None for batch in batches):
        parts = [
            np.array([whole[client] for client in each.clients.tolist()]) if batch is None else batch
            for each, batch in zip(releases, batches, strict=True)
        ]
        batch_size = np.concatenate(parts)[order]
    return replace(
        releases[0],
        clients=clients,
        weight=column("weight"),
        backoff=column("backoff", -1),
        received_bound=column("received_bound", 1),
        effective_noise_std=min(each.effective_noise_std * scale for each, scale in zip(releases, scales, strict=True)),
        accounted_noise_std=column("accounted_noise_std", 1),
        unjammed_noise_std=least,
        csi_ratio=column("csi_ratio"),
        batch_size=batch_size,
        caveat=next((each.caveat for each in releases if each.caveat is not None), None),
        theorem="none" if releases[0].theorem == "none" else "slot_groups",
        same_for_others=False,
    )
