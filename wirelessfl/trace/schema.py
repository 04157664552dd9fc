"""The trace schema as data, and its reference page: writer and reader come from these tables as well.

Adding a quantity to the trace is adding one row here. Every number is SI; "1" marks a dimensionless quantity and
"normalised" one in the units of RADIO's normalised link, where the receiver noise is σ_c² = 1 per real symbol.
"""

from functools import partial

import numpy as np

from wirelessfl.trace.layout import (
    FORMAT,
    REASON_LENGTH,
    STATUSES,
    VERSION,
    Attribute,
    EventKind,
    Group,
    SecAggOutcome,
    SecAggStage,
    Status,
    Variable,
)

_PAPER = "ota-cross-layer-dp"
_per_round = partial(Variable, dims=("round",))
_per_slot = partial(Variable, dims=("round", "slot"))
_per_client = partial(Variable, dims=("client",))
_per_event = partial(Variable, dims=("event",))
_per_snapshot = partial(Variable, dims=("snapshot",))
_per_stage = partial(Variable, dims=("round", "stage"))

ROOT = Group(
    "/",
    "one row per round; round, slot for the clients selected in it; client for whom the run touched",
    coordinates=(
        _per_round("round", "1", "communication round m; its length is the commit mark", dtype="i8"),
        Variable("slot", "1", "position among the clients selected in a round", dims=("slot",), dtype="i8"),
        _per_client("client", "1", "client id i", dtype="i8"),
    ),
    variables=(
        _per_round("sim_time", "s", "simulated time at the round's end"),
        _per_round("wall_time", "s", "wall-clock time at the round's end"),
        _per_round("test_accuracy", "1", "accuracy of the global model on the test set"),
        _per_round("test_loss", "nat", "mean loss of the global model on the test set"),
        _per_round("train_loss", "nat", "weighted mean local training loss of the participants"),
        _per_round(
            "updates_not_finite",
            "1",
            "clients heard whose update was not finite before clipping; a clip makes it zeros",
        ),
        _per_round("participants", "1", "clients whose update was received", dtype="i8", required=True),
        _per_round("model_version", "1", "steps that the global model has made at the round's end", dtype="i8"),
        _per_round("server_gain", "normalised", "power-control factor of the server α_u", f"{_PAPER}, section III"),
        _per_round("channel_noise_std", "normalised", "receiver noise σ_c per real symbol", f"{_PAPER}, section II"),
        _per_round(
            "effective_noise_std",
            "1",
            "noise per coordinate after division by α_u, before rescaling: σ_m",
            f"{_PAPER}: σ_m² = (α_CJ |h_CJ| / α_u)² + σ_c² / α_u²",
        ),
        _per_round(
            "aggregate_noise_std",
            "1",
            "noise per coordinate of a step of the weights: σ_m rescaled (times τ) and over Σ p_i of those heard",
        ),
        _per_round(
            "jammer_gain", "normalised", "power-control factor of the jammer α_CJ", f"{_PAPER}, Theorems 2 and 4"
        ),
        _per_round("jammer_channel_re", "1", "channel of the jammer h_CJ, real part", gain=True),
        _per_round("jammer_channel_im", "1", "channel of the jammer h_CJ, imaginary part", gain=True),
        _per_round("jammer_csi_re", "1", "estimate of the jammer's channel ĥ_CJ, real part", gain=True),
        _per_round("jammer_csi_im", "1", "estimate of the jammer's channel ĥ_CJ, imaginary part", gain=True),
        _per_round("jammer_path_gain", "1", "mean channel power of the jammer β_CJ"),
        _per_round("jammer_energy", "normalised", "energy sent by the jammer: 2 d α_CJ² (circular) or d α_CJ² (real)"),
        _per_round(
            "interference_std", "1", "what other cells add to a coordinate, in units of y/α_u: rms of the round"
        ),
        _per_round("airtime", "s", "time the radio channel was occupied in the round"),
        _per_round("energy", "J", "energy spent in the round by clients and jammer; NaN where watts are unknown"),
        _per_round(
            "epsilon_published",
            "1",
            "cumulative ε by the paper's theorem, worst client",
            f"{_PAPER}, Theorems 1 and 3: ε = ρ + 2 √(ρ ln(1/δ))",
        ),
        _per_round("epsilon_accounted", "1", "cumulative ε of the mechanism that really ran, worst client"),
        _per_round("event_count", "1", "cumulative number of rows in /events at the round's end", dtype="i8"),
        _per_slot("client_id", "1", "client in this slot, −1 if empty", dtype="i8", required=True),
        _per_slot("channel_re", "1", "channel h_i, real part", gain=True),
        _per_slot("channel_im", "1", "channel h_i, imaginary part", gain=True),
        _per_slot("csi_re", "1", "channel estimate ĥ_i, real part", gain=True),
        _per_slot("csi_im", "1", "channel estimate ĥ_i, imaginary part", gain=True),
        _per_slot("backoff", "1", "back-off s_i ≥ 1", f"{_PAPER}: s_i = max(1, α_u p_i / (|ĥ_i| √P_i))"),
        _per_slot("tx_gain_abs", "normalised", "transmit scaling |α_i|", f"{_PAPER}: α_i = α_u p_i / (ĥ_i τ s_i)"),
        _per_slot("truncated_share", "1", "share of the slot's pieces in which the client was silent in a deep fade"),
        _per_slot("tx_energy", "normalised", "transmit energy ‖x_i‖²"),
        _per_slot("tx_time", "s", "time on the air of a digital uplink"),
        _per_slot("tx_energy_j", "J", "transmit energy in joules; NaN where watts are unknown"),
        _per_slot("cell", "1", "base station that serves the client"),
        _per_slot("path_gain", "1", "mean channel power β_i"),
        _per_slot("update_norm", "1", "‖Δ_i‖ after clipping"),
        _per_slot("update_norm_raw", "1", "‖Δ_i‖ before clipping"),
        _per_slot("clip_norm", "1", "norm that per-sample gradients were clipped to, mean over the local steps"),
        _per_slot("clipped_share", "1", "share of per-sample gradients that were clipped, mean over the local steps"),
        _per_slot("noise_multiplier", "1", "noise std over clip_norm, mean over the local steps"),
        _per_slot("staleness", "1", "steps of the global model since the client received its own, of updates heard"),
        _per_slot("compute_time", "s", "simulated time of local training"),
        _per_slot("compute_energy_j", "J", "energy of local training, as far as it came; NaN where not counted"),
        _per_slot("status", "1", "outcome of the round for the client", dtype="u1", flags=Status, required=True),
        _per_client("samples", "1", "training samples n_i", dtype="i8", required=True),
        _per_client("weight", "1", "aggregation weight p_i = n_i / |D|"),
        _per_client(
            "power_budget",
            "normalised",
            "transmit energy budget per round P_i (on average where the power control limits that)",
        ),
        _per_client("distance", "m", "distance to the server"),
        _per_client(
            "client_epsilon_published", "1", "ε of this client by the paper's theorem", f"{_PAPER}, Theorems 1 and 3"
        ),
        _per_client("client_epsilon_accounted", "1", "ε of this client for the mechanism that really ran"),
    ),
    attributes=(
        Attribute("status", "how the run stands", among=STATUSES),
        Attribute("name", "name of the scenario", required=False),
        Attribute("scenario", "the resolved scenario, as YAML"),
        Attribute("scenario_digest", "SHA-256 of that text, in hexadecimal", later=True),
        Attribute("seed", "seed of all random streams", kind="whole number"),
        Attribute(
            "stream_version",
            "rises whenever the same scenario and seed give other numbers",
            kind="whole number",
            later=True,
        ),
        Attribute("run_id", "drawn at random when the run began; its checkpoint has the same", later=True),
        Attribute("created", "when the run began, ISO 8601"),
        Attribute("package_version", "version of wirelessfl"),
        Attribute("torch_version", "version of PyTorch"),
        Attribute("device", "where training ran"),
        Attribute(
            "why_different",
            "why published and accounted ε differ, as JSON; written at the end",
            required=False,
            kind="JSON list of texts",
        ),
        Attribute(
            "release_settings",
            "kinds of releases in /privacy, as a JSON list; known at the end",
            required=False,
            kind="JSON list of texts",
        ),
        Attribute(
            "plan",
            "chunks, threads, device and precision, as JSON; reused to repeat the run",
            required=False,
            kind="JSON mapping",
        ),
        Attribute("delta", "δ of both ε", required=False, kind="positive number"),
        Attribute("dimension", "number of trainable parameters d", required=False, kind="whole number"),
        Attribute("total_samples", "samples of all clients |D|", required=False, kind="whole number"),
    ),
)

EVENTS = Group(
    "/events",
    "what happened, in order of simulated time",
    dimensions=("event",),
    variables=(
        _per_event("time", "s", "simulated time", required=True),
        _per_event("node", "1", "client id; −1 the server, −2 the jammer", dtype="i8", required=True),
        _per_event("kind", "1", "what happened", dtype="u1", flags=EventKind, required=True),
        _per_event("round", "1", "communication round", dtype="i8", required=True),
        _per_event("bits", "bit", "size of the message; NaN where there is none"),
    ),
)

PRIVACY = Group(
    "/privacy",
    "all that recomputes the ledger without the data; with samples, weight, backoff and status of the root group",
    variables=(
        *(
            _per_round(f"{route}_settings", "1", f"kind of the {words} release: place in release_settings", dtype="i8")
            for route, words in (("air", "uplink's"), ("local", "clients'"), ("server", "server's"))
        ),
        _per_round("air_effective_noise_std", "1", "σ_m in units of y/α_u, as the published theorem has it"),
        _per_round("air_unjammed_noise_std", "1", "the receiver's own noise in units of y/α_u, σ_c/α_u"),
        _per_round("local_noise_multiplier", "1", "noise std on a sum of clipped gradients over the clipping norm"),
        _per_round("local_noise_std", "1", "noise std on a mini-batch mean (zCDP)"),
        _per_round("local_clip", "1", "norm that a sample's gradient is clipped to (zCDP)"),
        _per_round("server_published_multiplier", "1", "multiplier that the paper's accountant is fed"),
        _per_round("server_noise_std", "1", "noise std on the aggregate"),
        _per_round("server_clip", "1", "norm that an update is clipped to; NaN where it is not clipped"),
        _per_round("server_sample_rate", "1", "public probability of a client to be selected"),
        _per_slot("released", "1", "1 where the client's data entered what was released"),
        _per_slot("air_weight", "1", "p_i as sent"),
        _per_slot("air_backoff", "1", "s_i as recorded"),
        _per_slot(
            "air_received_bound",
            "1",
            "bound R_i on the received update, times |h_i/ĥ_i|, in units of y/α_u",
            "PRIVACY: R_i = min(p_i, |ĥ_i| √P_i / α_u)",
        ),
        _per_slot("air_accounted_noise_std", "1", "noise that the adversary cannot remove, in units of y/α_u"),
        _per_slot("air_csi_ratio", "1", "|h_i/ĥ_i|"),
        _per_slot("air_batch_size", "1", "samples in the batch of a single gradient step; NaN for all"),
        _per_slot("local_batch_size", "1", "samples in a mini-batch"),
        _per_slot("local_steps", "1", "local steps"),
    ),
    attributes=(
        Attribute("delta", "δ of the statement", kind="positive number"),
        Attribute("unit", "for whom ε is stated: sample or client", among=("sample", "client")),
        Attribute("adjacency", "add_remove (zero-out) or replace", among=("add_remove", "replace")),
        Attribute("adversary", "observer, server or individual", among=("observer", "server", "individual")),
        Attribute("colluding", "clients whose noise the adversary knows", kind="whole number"),
        Attribute("total_samples", "samples of all clients |D|", kind="whole number"),
        Attribute("largest_weight", "largest p_i of all registered clients", kind="positive number"),
    ),
)

MODEL = Group(
    "/model",
    "flat global models",
    dimensions=("snapshot", "parameter"),
    variables=(
        _per_snapshot("round", "1", "round after which the model was stored", dtype="i8", required=True),
        Variable("weights", "1", "flat global model w̄", dims=("snapshot", "parameter"), dtype="f4", required=True),
    ),
    attributes=(
        Attribute("dimension", "number of trainable parameters d", kind="whole number"),
        Attribute("parameters", "names and shapes in flat order, as JSON", required=False, kind="JSON mapping"),
    ),
)

SECAGG = Group(
    "/secagg",
    "what secure aggregation cost, stage by stage; there with that kind of uplink alone",
    optional=True,
    coordinates=(Variable("stage", "1", "stage of the protocol", dims=("stage",), dtype="u1", flags=SecAggStage),),
    variables=(
        _per_round("outcome", "1", "how the round ended", dtype="u1", flags=SecAggOutcome, required=True),
        _per_round("reason", "1", "why the round was given up; empty where it was not", dtype=f"S{REASON_LENGTH}"),
        _per_round("attempts", "1", "attempts at the sum, each under a nonce of its own"),
        _per_round("threshold", "1", "share holders that recover a secret; NaN where there are no shares"),
        _per_round("neighbours", "1", "clients that each client shares masks with, as planned"),
        _per_stage("messages_up", "1", "messages that clients began to send"),
        _per_stage("bits_up", "bit", "size of those messages"),
        _per_stage("messages_down", "1", "messages that the server sent, one to each client"),
        _per_stage("bits_down", "bit", "size of those messages"),
        _per_stage("seconds", "s", "from the first message of the stage until it was closed"),
        _per_stage("energy", "J", "what the clients' transmissions cost; NaN where watts are unknown"),
        _per_stage("dropouts", "1", "clients that were asked and not heard in time"),
        _per_stage("refused", "1", "messages that came too late and were refused"),
    ),
    attributes=(
        Attribute("protocol", "pairwise_prf, secagg or secagg_plus"),
        Attribute("ring_bits", "sums are taken modulo 2 to this power", kind="whole number"),
        Attribute(
            "weights_hidden", "1 where the numbers of samples are summed under the masks as well", kind="whole number"
        ),
    ),
)

GROUPS = (ROOT, EVENTS, PRIVACY, MODEL, SECAGG)
"""Every group of the trace."""


def reference_markdown() -> str:
    """The reference page of the trace format, one table per group."""
    lines = [f"# Trace format (`{FORMAT}`, version {VERSION})", ""]
    for group in GROUPS:
        lines += [f"## `{group.path}`", "", f"{group.long_name[0].upper()}{group.long_name[1:]}.", ""]
        lines += ["| variable | dimensions | type | unit | meaning | source |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [
            _row(f"`{v.name}`", ", ".join(v.dims), str(np.dtype(v.dtype)), v.units, _meaning(v), v.source)
            for v in (*group.coordinates, *group.variables)
        ]
        if group.attributes:
            lines += ["", "| attribute | meaning |", "| --- | --- |"]
            lines += [_row(f"`{a.name}`", a.long_name + " (optional)" * (not a.required)) for a in group.attributes]
        lines.append("")
    return "\n".join(lines)


def _meaning(variable: Variable) -> str:
    codes = [f"{int(code)} {code.name.lower().replace('_', ' ')}" for code in variable.flags or ()]
    return ": ".join(filter(None, (variable.long_name, ", ".join(codes))))


def _row(*cells: str) -> str:
    # Escapes the bar, which Markdown tables read as a column border (|h| is full of them).
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
