"""One new member of each family: an existing class that also notes that it was used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NOISY = {"training.privacy": {"mechanism": "gaussian"}}
LOCATED = {"channel.pathloss": {"model": "log_distance"}}


@dataclass(frozen=True)
class Toy:
    """A member that does what another one does.

    Attributes:
        base: the class or function that it goes back to, as ``package.module:Name``.
        method: the method that notes the use; "" for a function, which notes its call.
        options: what it is made with, as keys of its variant or options from outside.
        needs: overrides of the scenario without which the family plays no part.
        variant: base class of the variant within the package.
        keys: the keys of its variant, where they are not its options.
        outside: its source outside of the package, where it is another one.
        beside: further keys of the section.
    """

    base: str
    method: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, Any] = field(default_factory=dict)
    variant: str = "CoreVariant"
    keys: str = ""
    outside: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """The module of the base."""
        return self.base.partition(":")[0]

    def variant_text(self, name: str, tag: str) -> str:
        """The source of the variant of `text`, with ``tag: toy``."""
        own = "".join(f'    {k}: {type(v).__name__} = key({v!r}, "A key.")\n' for k, v in self.options.items())
        return (
            "from typing import ClassVar, Literal\n\nfrom wirelessfl.scenario.base import CoreVariant, key\n\n\n"
            f'class Toy{name}({self.variant}):\n    """A member of the test."""\n\n'
            f'    core: ClassVar[str] = "{self.module}:{name}"\n\n'
            f'    {tag}: Literal["toy"] = key("toy", "A toy.")\n{self.keys or own}\n\n'
        )

    def text(self, name: str, inside: bool) -> str:
        """The source of the member, which appends to ``used_NAME``."""
        base = self.base.partition(":")[2]
        head = f'\n\nused_{name} = []\n"""Uses of the toy."""\n\n\n'
        if self.outside and not inside:
            return f"{head}{self.outside}"
        if not self.method:
            body = f"    used_{name}.append(1)\n    return {base}(*args, **options)\n"
            same = f"import functools\n\n\n@functools.wraps({base})\n" if inside else ""
            return f"{head}{same}def {name}(*args, **options):\n{body}"
        return (
            f'{head}class {name}({base}):\n    """A member of the test."""\n\n'
            f"    def {self.method}(self, *args, **kwargs):\n"
            f"        used_{name}.append(1)\n        return super().{self.method}(*args, **kwargs)\n"
        )


_LAW = {"carrier_hz": 3.5e9, "exponent": 3.0, "reference_distance": 100.0}
_REFERENCE = """    reference_distance_m: float = key(100.0, "Metres.")

    def arguments(self):
        return {"carrier_hz": 3.5e9, "exponent": 3.0, "reference_distance": 100.0}
"""
_RULE = """
class partition:
    def divide(self, dataset, num_clients, generator):
        used_partition.append(1)
        return iid_partition(len(dataset.train), num_clients, generator)
"""
_COUNT = """    count: int = key(4, "Clients.")

    def arguments(self):
        return {}
"""
_RATE = """    lr: float = key(0.05, "Learning rate.")
    momentum: float = key(0.5, "Momentum.")
"""
_DOPPLER = """    doppler_hz: float | None = key(2.0, "Hertz.")

    def arguments(self):
        return {}
"""

TOYS = {
    "model": Toy("wirelessfl.learning.models.dense:logistic", variant="TrainedModel"),
    "dataset": Toy("wirelessfl.learning.data.catalogue:load_digits"),
    "selection": Toy("wirelessfl.learning.selection.rules:SelectUniform", "select", beside={"count": 4}, keys=_COUNT),
    "partition": Toy("wirelessfl.learning.partition:iid_partition", outside=_RULE),
    "optimizer": Toy(
        "wirelessfl.learning.optimizers:SGD", "step", {"momentum": 0.5}, variant="LocalOptimizer", keys=_RATE
    ),
    "clipping": Toy("wirelessfl.privacy.clipping.flat:FlatClipping", "clip", needs=NOISY),
    "mechanism": Toy(
        "wirelessfl.privacy.mechanisms.gaussian:MeanGaussianMechanism",
        "add",
        {"noise_std": 0.1},
        beside={"sampling": "shuffle"},
        variant="GradientNoise",
        keys="    pass\n",
    ),
    "algorithm": Toy("wirelessfl.learning.algorithms.fedavg:FedAvg", "step"),
    "server_optimizer": Toy("wirelessfl.learning.server_optimizers.sgd:ServerSgd", "step"),
    "robust": Toy("wirelessfl.learning.robust.median:Median", "combine", needs={"uplink": {"kind": "digital"}}),
    "fading": Toy("wirelessfl.radio.fading:Rayleigh", "draw"),
    "correlation": Toy("wirelessfl.radio.propagation.fading:BlockFading", "gains", keys=_DOPPLER),
    "path_loss": Toy("wirelessfl.radio.propagation.path_loss:LogDistance", "loss_db", _LAW, keys=_REFERENCE),
    "placement": Toy("wirelessfl.radio.placement:UniformDisc", "place", {"radius": 300.0}, LOCATED),
    "power_control": Toy("wirelessfl.radio.inversion:FullPower", "plan", variant="Policy"),
    "receiver": Toy("wirelessfl.radio.reception.sum:SumReceiver", "combine"),
    "modulation": Toy("wirelessfl.radio.modulation.analog:Analog", "decode"),
    "codec": Toy("wirelessfl.learning.compression.codecs:NoCodec", "encode", needs={"uplink": {"kind": "digital"}}),
    "availability": Toy("wirelessfl.learning.faults:BernoulliAvailability", "available", {"p": 0.9}),
}
