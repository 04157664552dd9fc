"""What a refused scenario says: file, line, key path, value found, what is allowed, and a guess what was meant."""
# ruff: noqa: E501 - messages are compared word for word

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from wirelessfl.errors import InputError, ScenarioError
from wirelessfl.scenario import load_scenario, parse_scenario
from wirelessfl.scenario.channel import Fading
from wirelessfl.scenario.family import Family


def refuse(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "f.yaml")
    return str(caught.value).splitlines()


FADINGS = " | ".join(tag or "package.module:Name" for tag in Family("model", "rayleigh").variants(get_args(Fading)[0]))

BAD = {
    # unknown keys
    "rouds: 3": "f.yaml:2: rouds: found an unknown key (with the value 3); allowed: name, seed, rounds, data, model, "
    "clients, training, aggregation, topology, channel, uplink, downlink, timing, faults, privacy, evaluate, trace, stop, compute; did you mean rounds?",
    "snr_db: 3": "did you mean uplink.snr_db or downlink.snr_db?",
    "uplink: {jamer: null}": "f.yaml:2: uplink.jamer: found an unknown key (with the value null); allowed: kind, snr_db,"
    " tx_power_dbm, iq_packing, peak_power_db, clip, power_control, receiver, modulation, jammer, slot_groups; did you"
    " mean jammer?",
    "uplink:\n  jammer:\n    epsilon: 1\n    Margin: 3": "f.yaml:5: uplink.jammer.Margin: found an unknown key (with the"
    " value 3); allowed: epsilon, margin, calibration, role, noise, power_db, max_shortfall, on_shortfall, antennas, position_m; did you mean"
    " margin?",
    "uplink: {kind: ideal, snr_db: 3}": "uplink.snr_db: found an unknown key (with the value 3); allowed: kind, clip; "
    "snr_db goes with uplink.kind: over_the_air",
    "data: {partition: {alpha: 1}}": "allowed: scheme, classes_per_client; alpha goes with data.partition.scheme: "
    "dirichlet",
    "training: {algorithm: {lam: 1}}": "training.algorithm.lam: found an unknown key (with the value 1); allowed: name, "
    "mu, lambda; did you mean lambda?",
    "zzz: {a: [1, 2]}": "f.yaml:2: zzz: found an unknown key (with the value {a: [1, 2]}); allowed: name, seed,",
    "3: x": "f.yaml:2: 3: found an unknown key (with the value x); allowed: name,",
    "'@x': 1": "f.yaml:2: @x: found an unknown key (with the value 1); allowed: name,",
    "'': 1": "f.yaml:2: : found an unknown key (with the value 1); allowed: name,",
    "'[key]': 1": "f.yaml:2: [key]: found an unknown key (with the value 1); allowed: name,",
    "channel: {'': 1}": "f.yaml:2: channel.: found an unknown key (with the value 1); allowed: fading,",
    "<<: {seed: 3}": "f.yaml:2: <<: found an unknown key",
    # tags of variants
    "channel: {fading: {model: rayliegh}}": "f.yaml:2: channel.fading.model: found rayliegh; allowed: "
    f"{FADINGS}; did you mean rayleigh?",
    "data: {dataset: {name: fashion-mnist}}": "did you mean fashion_mnist?",
    "data: {dataset: {name: MNIST}}": "did you mean mnist?",
    "uplink:\n  kind: [ideal]": "f.yaml:3: uplink.kind: found [ideal]; allowed: ideal | over_the_air",
    "uplink: {kind: null}": "uplink.kind: found null; allowed: ideal | over_the_air",
    "training: {privacy: {mechanism: gausian}}": "training.privacy.mechanism: found gausian; allowed: none | gaussian | "
    "wavelet | zcdp | package.module:Name; did you mean gaussian?",
    "training: {privacy: {mechanism: gaussian, gradient_clip: 1}}": "training.privacy.gradient_clip: found 1.0 with unit: "
    "sample; allowed: null: clip is the norm of a gradient",
    "uplink: {kind: ideal}\ntraining:\n  privacy: {mechanism: wavelet, unit: client, clip: null, gradient_clip: 2, "
    "clip_domain: weighted}": "f.yaml:4: training.privacy.clip_domain: found weighted with clip: null and a gradient_clip; "
    "allowed: gradient, its norm",
    "training: {privacy: {mechanism: gaussian, clip: 0}}": "training.privacy.clip: found 0; allowed: a number above 0",
    "training: {privacy: {mechanism: gaussian, epsilon: 0}}": "training.privacy.epsilon: found 0; allowed: a number from 1e-09 to 1e+100 or null",
    "channel: {fading: rayleigh}": "channel.fading: found rayleigh; allowed: a mapping such as {model: rayleigh}; model:"
    f" {FADINGS}; did you mean {{model: rayleigh}}?",
    "model: null": "model: found null; allowed: a mapping such as {name: mlp}; name: mlp |",
    "model: {name: 'a b:c'}": "model.name: found a b:c; allowed: package.module:Name",
    "model: {name: 'a:b', options: 3}": "model.options: found 3; allowed: a mapping of plain values",
    # types
    "rounds: true": "f.yaml:2: rounds: found true; allowed: a whole number from 1 to 1000000",
    "training: {algorithm: {name: scaffold, option: true}}": "training.algorithm.option: found true; allowed: 1 | 2",
    "training: {algorithm: {name: scaffold, payload: true}}": "training.algorithm.payload: found true; allowed: 1 | 2",
    "model: {name: resnet_gn, depth: 20.0}": "model.depth: found 20.0; allowed: 8 | 14 | 20 | 32 | 44 | 56",
    "rounds: 2.5": "rounds: found 2.5; allowed: a whole number from 1 to 1000000",
    "rounds: 1e3": "rounds: found 1000.0; allowed: a whole number from 1 to 1000000; did you mean 1000?",
    "rounds: '5'": "rounds: found '5'; allowed: a whole number from 1 to 1000000; write it without quotes",
    "rounds: null": "rounds: found null; allowed: a whole number",
    "rounds: [1]": "rounds: found [1]; allowed: a whole number",
    "uplink: {clip: true}": "uplink.clip: found true; allowed: a number from 1e-30 to 3.4e+38",
    "uplink: {clip: null}": "uplink.clip: found null; allowed: a number from 1e-30 to 3.4e+38",
    "uplink: {iq_packing: 1}": "uplink.iq_packing: found 1; allowed: true or false",
    "uplink: {iq_packing: yes}": "uplink.iq_packing: found 'yes'; allowed: true or false; did you mean true?",
    "trace: {events: off}": "trace.events: found 'off'; allowed: true or false; did you mean false?",
    "clients: 50": "clients: found 50; allowed: a mapping with keys of count, selection",
    "seed: 9223372036854775808": "seed: found 9223372036854775808; allowed: a whole number of at least 0 and below",
    "data: {dataset: {classes: 3}}": "data.dataset.classes: found 3; allowed: a list, each item a whole number of at "
    "least 0 or text or null",
    "data: {dataset: {classes: [1, true]}}": "data.dataset.classes.1: found true; allowed: a whole number of at least 0",
    "data: {dataset: {name: mnist, root: 3}}": "data.dataset.root: found 3; allowed: text or null",
    "model: {hidden: []}": "model.hidden: found []; allowed: a list of at least 1, each item a whole number",
    "model: {hidden: [32, 0]}": "model.hidden.1: found 0; allowed: a whole number from 1",
    "model: {activation: tanh}": "did you mean {name: tanh}?",
    "timing: {cpu_hz: 1e9}": "timing.cpu_hz: found 1000000000.0; allowed: a list of 2, each a number from 0.001 to 1e+18",
    "timing: {cpu_hz: [1, 2, 3]}": "timing.cpu_hz: found [1, 2, 3]; allowed: a list of 2",
    "timing:\n  cpu_hz:\n    - 1\n    - -2": "f.yaml:5: timing.cpu_hz.1: found -2; allowed: a number from 0.001 to 1e+18",
    "timing: {wait_for: most}": "timing.wait_for: found most; allowed: all or a mapping with keys of fraction, count",
    "timing: {wait_for: 3}": "timing.wait_for: found 3; allowed: all or a mapping with keys of fraction, count",
    "timing: {wait_for: {fraction: 2}}": "timing.wait_for.fraction: found 2; allowed: a number above 0 and of at most 1",
    "uplink: {power_control: {server_gain: autom}}": "uplink.power_control.server_gain: found autom; allowed: auto or a "
    "number from 1e-100 to 1e+100; did you mean auto?",
    "uplink: {power_control: {server_gain: -1}}": "found -1; allowed: auto or a number from 1e-100 to 1e+100",
    "training: {algorithm: {lambda: x}}": "training.algorithm.lambda: found x; allowed: a number of at least 0 or a "
    "mapping {first round: value, ...} from 1",
    "training: {algorithm: {lambda: {1: -1}}}": "training.algorithm.lambda.1: found -1; allowed: a number of at least 0",
    "training: {algorithm: {lambda: {one: 1}}}": "training.algorithm.lambda: found the key one; allowed: a number of "
    "at least 0 or a mapping {first round: value, ...} from 1",
    "training: {algorithm: {lambda: {0: 1}}}": "f.yaml:2: training.algorithm.lambda: found the key 0; allowed: a "
    "number of at least 0 or a mapping {first round: value, ...} from 1",
    "training: {lr_schedule: {0: 0.5}}": "training.lr_schedule: found the key 0; allowed: a mapping {first round: value",
    "training: {algorithm: {lambda: {}}}": "training.algorithm.lambda: found {}; allowed: a number of at least 0 or a",
    "training: {algorithm: {lambda: {2: 1}}}": "training.algorithm.lambda: found a first step at round 2; allowed: steps"
    " that begin with round 1",
    # ranges
    "rounds: 0": "rounds: found 0; allowed: a whole number from 1 to 1000000",
    "seed: -1": "seed: found -1; allowed: a whole number of at least 0",
    "privacy: {delta: 0}": "privacy.delta: found 0; allowed: a number above 0 and below 1",
    "privacy: {delta: 1}": "privacy.delta: found 1; allowed: a number above 0 and below 1",
    "privacy: {unit: samples}": "privacy.unit: found samples; allowed: sample | client; did you mean sample?",
    "privacy: {adversary: null}": "privacy.adversary: found null; allowed: observer | server | individual",
    "uplink: {jammer: {epsilon: 0}}": "uplink.jammer.epsilon: found 0; allowed: a number from 1e-09 to 1e+100",
    "uplink: {snr_db: 500}": "uplink.snr_db: found 500; allowed: a number from -300 to 300 or null",
    "training: {optimizer: {momentum: 1}}": "found 1; allowed: a number of at least 0 and below 1",
    "faults: {availability: {p: 1.5}}": "faults.availability.p: found 1.5; allowed: a number from 0 to 1",
    "clients: {selection: {scheme: poisson, rate: 0}}": "clients.selection.rate: found 0; allowed: a number above 0 and",
    "trace: {models: every 0}": 'trace.models: found every 0; allowed: none | final | every N, as in "every 10"',
    "trace: {models: null}": "trace.models: found null; allowed: none | final | every N",
    "compute: {threads: 0}": "compute.threads: found 0; allowed: a whole number from 1 to 1024 or null",
    # contradictions inside one section
    "uplink: {snr_db: 1, tx_power_dbm: 23}": "f.yaml:2: uplink.snr_db: found both snr_db and tx_power_dbm; allowed: "
    "exactly one of snr_db and tx_power_dbm",
    "uplink: {snr_db: null}": "uplink.snr_db: found neither snr_db nor tx_power_dbm",
    "training: {epochs: 1, steps: 1}": "training.epochs: found both epochs and steps",
    "timing: {wait_for: {}}": "timing.wait_for.fraction: found neither fraction nor count",
    "timing: {wait_for: {fraction: 0.5, count: 3}}": "timing.wait_for.fraction: found both fraction and count",
    "timing: {cpu_hz: [2, 1]}": "timing.cpu_hz: found [2.0, 1.0]; allowed: the slower speed first",
    "data: {dataset: {classes: [1, 1]}}": "data.dataset.classes: found [1, 1]; allowed: at least two different classes",
    "data: {dataset: {classes: [1, 10]}}": "allowed: at least two different classes, numbered from 0 to 9",
    "data: {dataset: {classes: []}}": "data.dataset.classes: found []; allowed: at least two different classes",
    "data: {dataset: {name: synthetic, min_samples: 9, max_samples: 3}}": "data.dataset.min_samples: found 9; allowed: "
    "at most max_samples, 3",
    "uplink: {iq_packing: true, jammer: {noise: real}}": "uplink.jammer.noise: found real with iq_packing: true; "
    "allowed: complex",
    # numbers
    "training: {optimizer: {lr: 1.0e+39}}": "allowed: a number above 0 and of at most 3.4e+38",
    "training: {privacy: {mechanism: zcdp, noise_std: 1.0e+39}}": "allowed: a number from 0 to 3.4e+38 or null",
    "uplink: {clip: 1.0e+39}": "f.yaml:2: uplink.clip: found 1.0e+39; allowed: a number from 1e-30 to 3.4e+38",
    "uplink: {clip: 1.0e-320}": "f.yaml:2: uplink.clip: found 1.0e-320; allowed: a number from 1e-30 to 3.4e+38",
    "uplink: {power_control: {policy: cross_layer, server_gain: 1.0e-320}}": "server_gain: found 1.0e-320; allowed: "
    "auto or a number from 1e-100 to 1e+100",
    "uplink: {jammer: {}, power_control: {policy: cross_layer, server_gain: 1.0e+308}}": "server_gain: found 1.0e+308; ",
    "uplink: {power_control: {policy: lower_gain, epsilon: 1.0e+308}}": "a number from 1e-09 to 1e+100",
    "uplink: {power_control: {policy: ris_fl, variance_floor: 1.0e+308}}": "a number above 0 and of at most 3.4e+38",
    "uplink: {power_control: {policy: cotaf, expected_norms: [1], h_min: 1.0e-320}}": "h_min: found 1.0e-320; allowed: "
    "a number from 1e-100 to 1e+100 or null",
    # items of lists that may also be words
    "uplink: {power_control: {policy: gbma, expected_norms: [1, -0.4]}}": "uplink.power_control.expected_norms.1: found "
    "-0.4; allowed: a number from 1e-30 to 3.4e+38",
    "uplink: {power_control: {policy: gbma, expected_norms: [1, 1.0e-320]}}": "expected_norms.1: found 1.0e-320; allowed: "
    "a number from 1e-30 to 3.4e+38",
    "uplink: {snr_db: .inf}": "f.yaml:2: uplink.snr_db: found .inf; allowed: a finite number",
    "model: {name: 'a:b', options: {x: .nan}}": "f.yaml:2: model.options.x: found .nan; allowed: a finite number",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_bad_input(text: str, message: str) -> None:
    lines = refuse(f"name: x\n{text}")
    assert len(lines) == 1, lines
    assert message in lines[0]
    assert lines[0].startswith("f.yaml:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml:1: found an empty file; allowed: a mapping with at least a name"),
        ("# nothing", "f.yaml:1: found an empty file"),
        ("- a", "f.yaml:1: found [a]; allowed: a mapping with at least a name"),
        ("just text", "f.yaml:1: found just text; allowed: a mapping"),
        ("seed: 3", "f.yaml:1: name: found nothing; allowed: up to 100 letters, digits and . _ -"),
        ("name: ../x", "name: found ../x; allowed: up to 100 letters"),
        ("name: 5", "name: found 5; allowed: up to 100 letters"),
        ("name: " + "x" * 101, "name: found xxxxx"),
        ('name: "x\\n"', "name: found"),
    ],
)
def test_bad_root(text: str, message: str) -> None:
    lines = refuse(text)
    assert len(lines) == 1
    assert message in lines[0]


def test_all_that_is_wrong_is_said_at_once_with_its_line() -> None:
    lines = refuse("name: x\nrouds: 3\nclients:\n  count: -5\nuplink:\n  jammer:\n    epsilon: 0\n    margn: 2\n")
    assert [line.split(": found")[0] for line in sorted(lines)] == [
        "f.yaml:2: rouds",
        "f.yaml:4: clients.count",
        "f.yaml:7: uplink.jammer.epsilon",
        "f.yaml:8: uplink.jammer.margn",
    ]


def test_very_many_errors_are_cut() -> None:
    lines = refuse("name: x\n" + "\n".join(f"key{i}: 1" for i in range(100)))
    assert len(lines) == 31
    assert lines[-1] == "and 70 more"


def test_a_long_value_is_cut() -> None:
    (line,) = refuse(f"name: x\nrounds: {'x' * 500}")
    assert len(line) < 200


def test_messages_name_the_file_and_are_input_errors(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: x\n\nrounds: no\n")
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    assert str(caught.value) == f"{file}:3: rounds: found 'no'; allowed: a whole number from 1 to 1000000"
    assert caught.value.exit_code == 2
