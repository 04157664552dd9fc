"""The scenario format as CONTRACT.md fixes it: its example, word for word, without the two keys that are null."""

from __future__ import annotations

EXAMPLE = """
name: quickstart
seed: 7
rounds: 40
data:
  dataset: {name: digits}
  limit: null
  partition: {scheme: classes, classes_per_client: 5}
model: {name: mlp, hidden: [32]}
clients:
  count: 50
  selection: {scheme: all}
training:
  algorithm: {name: upcycled, mu: 0.1, lambda: {1: 0.15, 26: 0.4, 51: 0.9, 76: 1.9}}
  optimizer: {name: sgd, lr: 0.05, momentum: 0.5}
  epochs: 5
  batch_size: 20
  privacy: {mechanism: none}
channel:
  fading: {model: rayleigh}
  correlation: {model: independent}
  pathloss: {model: none}
  csi: {error_std: 0.0, estimator: ls}
  noise_figure_db: 5
  profile: null
uplink:
  kind: over_the_air
  snr_db: 1
  iq_packing: false
  clip: 1.0
  power_control: {policy: cross_layer, server_gain: auto, epsilon: 6.52, backoff: bound, rescale: clip_norm}
  jammer: null
timing: {bandwidth_hz: 1.0e6, downlink_bps: 1.0e7, cycles_per_sample: 1.0e6, cpu_hz: [1.0e9, 2.0e9], straggler_scale: 0.2, deadline_s: null, wait_for: all}
faults: {availability: {model: bernoulli, p: 1.0}, crash_rate_per_s: 0.0, fade_threshold: 0.0, battery_j: null}
privacy: {delta: 1.0e-5, unit: sample, adjacency: add_remove, adversary: server, colluding: 0}
evaluate: {every: 1}
trace: {events: true, models: final}
"""  # noqa: E501 - as in the contract

JAMMER = (
    "{epsilon: 2.0, margin: 1, calibration: theorem, role: external, noise: complex, power_db: null, "
    "max_shortfall: 0.05, on_shortfall: record}"
)
