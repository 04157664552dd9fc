"""What does not go together under secure aggregation, and what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from wirelessfl.cli import main
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import parse_scenario
from wirelessfl.secagg import complete_neighbourhood
from wirelessfl.secagg.protocol import majority


def scenario_text(uplink: str, clients: str = "{count: 20}") -> str:
    return f"name: masked\nclients: {clients}\nuplink: {{kind: secure_aggregation, {uplink}}}\n"


@pytest.mark.parametrize(
    ("uplink", "clients", "message"),
    [
        (
            "bits: 5",
            "{count: 20}",
            "f:3: uplink.bits: found 5, in which a sum of 20 clients could overflow",
        ),
        ("bits: 4", "{count: 20, selection: {scheme: uniform, count: 10}}", "a sum of 10 clients could overflow"),
        ("bits: 5", "{count: 20, selection: {scheme: poisson, rate: 0.1}}", "a sum of 20 clients could overflow"),
        ("bits: 65", "{count: 20}", "f:3: uplink.bits: found 65"),
        ("bits: 32", "{count: 1}", "secure_aggregation with 1 client in a round"),
        (
            "protocol: secag",
            "{count: 20}",
            "protocol: found secag; allowed: pairwise_prf | secagg | secagg_plus",
        ),
        ("protocol: pairwise_prf, threshold: 14", "{count: 20}", "14 with pairwise_prf, which needs all clients"),
        ("protocol: pairwise_prf, neighbours: 8", "{count: 20}", "8 with pairwise_prf, which needs all clients"),
        ("protocol: pairwise_prf, dropout: {unmask: 0.1}", "{count: 20}", "stages that pairwise_prf does not have"),
        (
            "protocol: secagg, neighbours: 8",
            "{count: 20}",
            "8 with secagg, in which all clients are neighbours; allowed: null",
        ),
        ("protocol: secagg, threshold: 10", "{count: 20}", "10 of 20 share holders; allowed: 11 to 20: half of them"),
        ("protocol: secagg, threshold: 21", "{count: 20}", "21 of 20 share holders"),
        ("threshold: 11", "{count: 20}", "11 without neighbours; allowed: null, or uplink.neighbours set as well"),
        ("neighbours: 20", "{count: 20}", "uplink.neighbours: found 20; allowed: at most 19"),
        ("neighbours: 8, threshold: 4", "{count: 20}", "4 of 9 share holders; allowed: 5 to 9"),
        ("neighbours: 8, threshold: 10", "{count: 20}", "10 of 9 share holders"),
        ("max_samples: 100", "{count: 20}", "uplink.max_samples: found 100 with hide_weights: false"),
        ("max_colluding: 0.5", "{count: 20}", "uplink.max_colluding: found 0.5"),
        ("dropout: {mask_input: 0.1}", "{count: 20}", "did you mean masked_input"),
        ("snr_db: 1, tx_power_dbm: 3", "{count: 20}", "tx_power_dbm"),
    ],
)
def test_contradictions(uplink: str, clients: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(scenario_text(uplink, clients), "f")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("uplink", "wait_for", "least"),
    [
        ("protocol: secagg", "{count: 13}", complete_neighbourhood(20).threshold),
        ("protocol: secagg, threshold: 11", "{fraction: 0.5}", 11),
        ("neighbours: 8, threshold: 6", "{count: 5}", 6),
        ("neighbours: 8", "{count: 4}", majority(8)),
        ("protocol: secagg_plus", "{count: 1}", 2),
        ("protocol: pairwise_prf", "{count: 1}", 2),
    ],
)
def test_a_round_that_begins_with_fewer_clients_than_unmask_it(uplink: str, wait_for: str, least: int) -> None:
    """All its rounds were abandoned, without a word before them."""
    text = scenario_text(uplink) + "timing: {wait_for: %s}\n"
    with pytest.raises(ScenarioError, match=rf"f:4: timing.wait_for: found .* of 20 clients.* at least {least}"):
        parse_scenario(text % wait_for, "f")
    parse_scenario(text % f"{{count: {least}}}", "f")


@pytest.mark.parametrize(
    ("uplink", "clients"),
    [
        ("bits: 6", "{count: 20}"),  # 20 steps need 5 bits and a sign
        ("bits: 5", "{count: 20, selection: {scheme: uniform, count: 10}}"),
        ("protocol: pairwise_prf, dropout: {masked_input: 0.1}", "{count: 20}"),
        ("protocol: secagg, threshold: 11", "{count: 20}"),
        ("neighbours: 8, threshold: 5", "{count: 20}"),
        ("neighbours: 30", "{count: 20, selection: {scheme: poisson, rate: 0.5}}"),
        ("hide_weights: true, max_samples: 100", "{count: 20}"),
    ],
)
def test_what_goes_together(uplink: str, clients: str) -> None:
    parse_scenario(scenario_text(uplink, clients), "f")


@pytest.mark.parametrize(
    ("uplink", "message"),
    [
        ("bits: 5", "uplink.bits: found 5, in which a sum of 20 clients could overflow"),
        ("hide_weights: true, bits: 15", "uplink.bits: 15 bits overflow: the sum of the weights needs"),
        ("hide_weights: true, max_samples: 70", "uplink.max_samples: found 70, and a client with"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "validate"])
def test_a_sum_that_could_overflow_is_exit_2(command: str, uplink: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "masked.yaml"
    path.write_text(scenario_text(uplink))
    done = CliRunner().invoke(main, [command, str(path)])
    assert done.exit_code == 2
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
