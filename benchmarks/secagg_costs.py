"""What a round of secure aggregation costs as the clients grow in number, beside the papers' asymptotics.

    python -m benchmarks.secagg_costs [--out results/benchmarks] [--quick]

Real rounds of the three protocols, all cryptography included, without radio or clock. Messages are counted to the bit
and are the same on every machine; processor time is what the clients and the server need together, and is this
machine's. The d ring elements that every client has to send whatever the protocol are left out of the bits, so that
what remains is the price of the masks. Two clients in a hundred vanish after sharing keys, at least one (in
`pairwise_prf` nobody, for it needs everybody). The degree of `secagg_plus` is the least for 40 bits of security and 30
of correctness with a tenth of the clients colluding and a tenth lost.

Bonawitz et al. 2017: O(n²) bits at the server beside the vectors, O(n² d) work there. Bell et al. 2020: O(n log n) and
O(n d log n). `pairwise_prf` (Hu et al.) agrees on its n² seeds once, apart from the rounds.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.report import BLUE, GREEN, GREY, ORANGE
from wirelessfl.secagg import (
    MaskedInput,
    Message,
    Neighbourhood,
    PrfClient,
    PrfEnrolment,
    PrfParameters,
    PrfRound,
    Ring,
    RingVector,
    RoundAborted,
    RoundParameters,
    RoundResult,
    SecAggClient,
    SecAggServer,
    SeededBytes,
    Stage,
    choose_neighbourhood,
    complete_neighbourhood,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEED, DIMENSION, RING = 20, 1_000, Ring(32)
LOST_SHARE, TOLERATED_SHARE = 0.02, 0.1
SIZES: dict[str, tuple[int, ...]] = {
    "pairwise_prf": (10, 20, 50, 100, 200),
    "secagg": (10, 20, 50, 100, 200),
    "secagg_plus": (10, 20, 50, 100, 200, 500, 1000, 2000),
}
QUICK: dict[str, tuple[int, ...]] = dict.fromkeys(SIZES, (4, 8))
COLOURS = {"pairwise_prf": GREEN, "secagg": ORANGE, "secagg_plus": BLUE}
LAWS = {"secagg": ("n²", "--"), "secagg_plus": ("n log n", "-.")}
MARKERS = {"pairwise_prf": "s", "secagg": "o", "secagg_plus": "^"}


@dataclass
class Cost:
    """What one round cost, clients and server together.

    Attributes:
        protocol: one of three.
        n: clients that begin the round.
        neighbours: clients that each exchanges masks with.
        messages: sent in either direction.
        bits: of those messages, without the d ring elements of each masked input.
        cpu_s: processor time.
        set_up_bits: once in a run, of `pairwise_prf`.
        set_up_cpu_s: its processor time.
    """

    protocol: str
    n: int
    neighbours: int
    messages: int = 0
    bits: int = 0
    cpu_s: float = 0.0
    set_up_bits: int = 0
    set_up_cpu_s: float = 0.0

    def count(self, message: Message) -> Message:
        """Take a message into account, and pass it on."""
        self.messages += 1
        self.bits += message.bits - (DIMENSION * RING.bits if isinstance(message, MaskedInput) else 0)
        return message


def inputs_of(n: int) -> dict[int, RingVector]:
    generator = np.random.default_rng(SEED)
    return {client: generator.integers(0, 2**32, DIMENSION, dtype=np.uint32) for client in range(n)}


def links_of(n: int) -> dict[int, bytes]:
    return {client: SeededBytes(SEED, "link", client)(32) for client in range(n)}


def shared_round(protocol: str, n: int, lost: int) -> Cost:
    """One round of `secagg` or `secagg_plus`; the last ``lost`` clients vanish after sharing keys."""
    neighbourhood: Neighbourhood
    if protocol == "secagg":
        neighbourhood = complete_neighbourhood(n)
    else:
        neighbourhood = choose_neighbourhood(n, int(TOLERATED_SHARE * n), int(TOLERATED_SHARE * n))
    cost, inputs, links = Cost(protocol, n, neighbourhood.num_neighbours), inputs_of(n), links_of(n)
    parameters = RoundParameters(bytes(16), DIMENSION, RING, neighbourhood)
    begin = time.process_time()
    server = SecAggServer(parameters, links, SeededBytes(SEED, "server"))
    clients = [SecAggClient(parameters, i, links[i], SeededBytes(SEED, "client", i)) for i in range(n)]
    for client in clients:
        server.receive(cost.count(client.advertise_keys()))
    while not isinstance(outcome := server.close_stage(), RoundResult | RoundAborted):
        for message in outcome:
            name = message.receiver
            cost.count(message)
            if name < n - lost or server.stage < Stage.MASKED_INPUT:
                server.receive(cost.count(clients[name].answer(message, inputs[name])))
    cost.cpu_s = time.process_time() - begin
    check(outcome, inputs, n - lost)
    return cost


def seeded_round(n: int) -> Cost:
    """One round of `pairwise_prf`, after its enrolment."""
    cost, inputs, links = Cost("pairwise_prf", n, n - 1), inputs_of(n), links_of(n)
    parameters = PrfParameters(b"costs...", DIMENSION, RING)
    begin = time.process_time()
    clients = [PrfClient(parameters, i, links[i], SeededBytes(SEED, "client", i)) for i in range(n)]
    enrolment = PrfEnrolment(parameters, links)
    for client in clients:
        advertisement = client.advertise_keys()
        cost.set_up_bits += advertisement.bits
        enrolment.receive(advertisement)
    for answered in enrolment.close():
        cost.set_up_bits += answered.bits
        clients[answered.receiver].agree_seeds(answered)
    cost.set_up_cpu_s = time.process_time() - begin
    begin = time.process_time()
    server = PrfRound(parameters, 1, links)
    for start in server.start():
        cost.count(start)
        masked = clients[start.receiver].mask_input(start, inputs[start.receiver])
        cost.count(masked)
        server.receive(masked)
    outcome = server.close()
    cost.cpu_s = time.process_time() - begin
    check(outcome, inputs, n)
    return cost


def check(outcome: RoundResult | RoundAborted, inputs: dict[int, RingVector], survivors: int) -> None:
    """The sum is that of the survivors, bit for bit."""
    assert isinstance(outcome, RoundResult)
    expected = sum((inputs[client] for client in range(survivors)), RING.zeros(DIMENSION))
    assert np.array_equal(outcome.total, expected)


def measure(sizes: Mapping[str, Sequence[int]]) -> Iterator[Cost]:
    """All rounds, the cheap ones first."""
    for protocol, numbers in sizes.items():
        for n in numbers:
            lost = max(1, int(LOST_SHARE * n))
            yield seeded_round(n) if protocol == "pairwise_prf" else shared_round(protocol, n, lost)


def write_csv(costs: Iterable[Cost], path: Path) -> None:
    """One line a round."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Cost)])
        writer.writeheader()
        writer.writerows(asdict(cost) for cost in costs)


def draw(costs: Sequence[Cost], folder: Path) -> None:
    """Bits and processor time against n, as PNG and SVG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    units = {"bits": 8e6, "cpu_s": 1.0}
    for axes, name, label in zip(panels, units, ("MB a round beside the vectors", "CPU seconds a round"), strict=True):
        for protocol, colour in COLOURS.items():
            points = [cost for cost in costs if cost.protocol == protocol]
            values = [getattr(cost, name) / units[name] for cost in points]
            axes.plot([c.n for c in points], values, color=colour, marker=MARKERS[protocol], ms=4, label=protocol)
            if protocol == "pairwise_prf":
                values = [getattr(cost, f"set_up_{name}") / units[name] for cost in points]
                axes.plot(
                    [c.n for c in points], values, color=colour, marker=MARKERS[protocol], ms=4, ls=":", mfc="white",
                    label="pairwise_prf, once",
                )  # fmt: skip
        _draw_asymptotics(axes, costs, name, units[name])
        axes.set(xscale="log", yscale="log", xlabel="clients n", ylabel=label)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.grid(alpha=0.25, linewidth=0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    figure.savefig(folder / "secagg-costs.png", dpi=200)
    with matplotlib.rc_context({"svg.hashsalt": "secagg-costs", "svg.fonttype": "none"}):
        figure.savefig(folder / "secagg-costs.svg", metadata={"Date": None})


def _draw_asymptotics(axes: Axes, costs: Sequence[Cost], name: str, unit: float) -> None:
    """The papers' laws through the last point of each protocol."""
    for protocol, (text, style) in LAWS.items():
        points = [cost for cost in costs if cost.protocol == protocol]
        last, at = points[-1], np.geomspace(points[0].n, 1.3 * points[-1].n)
        law, end = (at**2, last.n**2) if protocol == "secagg" else (at * np.log(at), last.n * math.log(last.n))
        axes.plot(at, law / end * getattr(last, name) / unit, color=GREY, linewidth=1.0, ls=style, zorder=0, label=text)


def main() -> None:
    parser = argparse.ArgumentParser(description="costs of secure aggregation against the number of clients")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--quick", action="store_true", help="a few clients: shows that it works")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    costs = []
    print(f"{'protocol':14s} {'n':>6s} {'k':>4s} messages        bits    CPU/s   set-up bits set-up CPU/s")
    for cost in measure(QUICK if chosen.quick else SIZES):
        costs.append(cost)
        print(
            f"{cost.protocol:14s} {cost.n:6d} {cost.neighbours:4d} {cost.messages:8d} {cost.bits:11d} "
            f"{cost.cpu_s:8.2f} {cost.set_up_bits:13d} {cost.set_up_cpu_s:12.2f}",
            flush=True,
        )
    write_csv(costs, chosen.out / "secagg-costs.csv")
    draw(costs, chosen.out)


if __name__ == "__main__":
    main()
