"""The trace schema as data: writer, reader, reference page and the labels of axes come from these tables.

Adding a quantity to the trace is adding one row here. Every number is SI; "1" marks a dimensionless quantity and
"normalised" one in the units of RADIO's normalised link, where the receiver noise is σ_c² = 1 per real symbol.
"""

from functools import partial

from wirelessfl.trace.attributes import ATTRIBUTES
from wirelessfl.trace.layout import Group, Role, Status, Variable
from wirelessfl.trace.side_groups import EVENTS, MODEL, PRIVACY, SECAGG

__all__ = ["EVENTS", "GROUPS", "MODEL", "PRIVACY", "ROOT", "SECAGG", "axis_label", "axis_scale"]

_PAPER = "ota-cross-layer-dp"
_per_round = partial(Variable, dims=("round",))
_per_slot = partial(Variable, dims=("round", "slot"))
_per_client = partial(Variable, dims=("client",))

ROOT = Group(
    "/",
    "one row per round; round, slot: the clients selected in a round; client: every client selected at least once",
    coordinates=(
        _per_round(
            "round", "1", "communication round m; its length counts the rounds on disk", dtype="i8", label="round"
        ),
        Variable(
            "slot", "1", "position among the clients selected in a round", dims=("slot",), dtype="i8", label="slot"
        ),
        _per_client("client", "1", "client id i", dtype="i8", label="client"),
    ),
    variables=(
        _per_round("sim_time", "s", "simulated time at the round's end", label="simulated time"),
        _per_round("wall_time", "s", "wall-clock time at the round's end", label="computing time"),
        _per_round(
            "test_accuracy", "1", "accuracy of the global model on the test set", label="test accuracy", percent=True
        ),
        _per_round("test_loss", "nat", "mean loss of the global model on the test set", label="test loss"),
        _per_round(
            "validation_accuracy",
            "1",
            "accuracy of the global model on samples held out of the clients' shares (data.validation)",
            label="validation accuracy",
            percent=True,
        ),
        _per_round(
            "validation_loss",
            "nat",
            "mean loss of the global model on samples held out of the clients' shares (data.validation)",
            label="validation loss",
        ),
        _per_round("train_loss", "nat", "weighted mean local training loss of the participants", label="training loss"),
        _per_round(
            "updates_not_finite",
            "1",
            "clients received whose update was not finite before clipping; clipping makes such an update zero",
            label="updates not finite",
        ),
        _per_round(
            "participants", "1", "clients whose update was received", dtype="i8", required=True, label="clients heard"
        ),
        _per_round(
            "model_version",
            "1",
            "steps that the global model has made at the round's end",
            dtype="i8",
            label="version of the model",
        ),
        _per_round(
            "server_gain",
            "normalised",
            "power-control factor of the server α_u",
            f"{_PAPER}, section III",
            label="server gain α_u",
        ),
        _per_round(
            "channel_noise_std",
            "normalised",
            "receiver noise σ_c per real symbol",
            f"{_PAPER}, section II",
            label="receiver noise σ_c",
        ),
        _per_round(
            "effective_noise_std",
            "1",
            "noise per coordinate after division by α_u, before rescaling: σ_m",
            f"{_PAPER}: σ_m² = (α_CJ |h_CJ| / α_u)² + σ_c² / α_u²",
            label="effective noise σ_m",
        ),
        _per_round(
            "aggregate_noise_std",
            "1",
            "noise per coordinate of a step of the weights: σ_m rescaled (times τ), over Σ p_i of the clients received",
            label="noise on the weights",
        ),
        _per_round(
            "jammer_gain",
            "normalised",
            "power-control factor of the jammer α_CJ",
            f"{_PAPER}, Theorems 2 and 4",
            label="jammer gain α_CJ",
        ),
        _per_round(
            "jammer_channel_re", "1", "channel of the jammer h_CJ with path gain, real part", gain=True, label="Re h_CJ"
        ),
        _per_round(
            "jammer_channel_im",
            "1",
            "channel of the jammer h_CJ with path gain, imaginary part",
            gain=True,
            label="Im h_CJ",
        ),
        _per_round(
            "jammer_csi_re", "1", "estimate of the jammer's channel ĥ_CJ, real part", gain=True, label="Re ĥ_CJ"
        ),
        _per_round(
            "jammer_csi_im", "1", "estimate of the jammer's channel ĥ_CJ, imaginary part", gain=True, label="Im ĥ_CJ"
        ),
        _per_round(
            "jammer_path_gain",
            "1",
            "path gain of the jammer β_CJ = E|h_CJ|²; relative as path_gain is",
            label="path gain of the jammer β_CJ",
        ),
        _per_round(
            "jammer_energy",
            "normalised",
            "energy sent by the jammer: 2 d α_CJ² (circular) or d α_CJ² (real)",
            label="energy of the jammer",
        ),
        _per_round(
            "interference_std",
            "1",
            "interference of other cells on a coordinate, in units of y/α_u: rms of the round",
            label="interference",
        ),
        _per_round("airtime", "s", "time the radio channel was occupied in the round", label="airtime"),
        _per_round(
            "energy",
            "J",
            "energy spent in the round by clients and jammer; NaN without a transmit power in watts",
            label="energy",
        ),
        _per_round(
            "epsilon_published",
            "1",
            "cumulative ε by the paper's theorem, worst client",
            f"{_PAPER}, Theorems 1 and 3: ε = ρ + 2 √(ρ ln(1/δ))",
            label="ε published",
        ),
        _per_round(
            "epsilon_accounted",
            "1",
            "cumulative ε of the mechanism that actually ran, worst client",
            label="ε accounted",
        ),
        _per_round(
            "event_count", "1", "cumulative number of rows in /events at the round's end", dtype="i8", label="events"
        ),
        _per_slot("client_id", "1", "client in this slot, −1 if empty", dtype="i8", required=True, label="client"),
        _per_slot("channel_re", "1", "channel h_i with path gain, real part", gain=True, label="Re h"),
        _per_slot("channel_im", "1", "channel h_i with path gain, imaginary part", gain=True, label="Im h"),
        _per_slot("csi_re", "1", "channel estimate ĥ_i, real part", gain=True, label="Re ĥ"),
        _per_slot("csi_im", "1", "channel estimate ĥ_i, imaginary part", gain=True, label="Im ĥ"),
        _per_slot(
            "backoff", "1", "back-off s_i ≥ 1", f"{_PAPER}: s_i = max(1, α_u p_i / (|ĥ_i| √P_i))", label="back-off"
        ),
        _per_slot(
            "tx_gain_abs",
            "normalised",
            "transmit scaling |α_i|",
            f"{_PAPER}: α_i = α_u p_i / (ĥ_i τ s_i)",
            label="transmit gain |α|",
        ),
        _per_slot(
            "truncated_share",
            "1",
            "share of the slot's pieces in which the client was silent in a deep fade",
            label="silent in deep fades",
            percent=True,
        ),
        _per_slot("tx_energy", "normalised", "transmit energy ‖x_i‖²", label="energy sent"),
        _per_slot("tx_time", "s", "time on the air of a digital uplink", label="time on the air"),
        _per_slot(
            "tx_energy_j", "J", "transmit energy in joules; NaN without a transmit power in watts", label="energy sent"
        ),
        _per_slot("cell", "1", "base station that serves the client", label="cell"),
        _per_slot(
            "path_gain",
            "1",
            "path gain β_i = E|h_i|²; with snr_db relative to that at reference_distance_m",
            label="path gain β",
        ),
        _per_slot("update_norm", "1", "‖Δ_i‖ after clipping", label="norm of the update, clipped"),
        _per_slot("update_norm_raw", "1", "‖Δ_i‖ before clipping", label="norm of the update"),
        _per_slot(
            "clip_norm",
            "1",
            "norm that per-sample gradients were clipped to, mean over the local steps",
            label="clipping norm",
        ),
        _per_slot(
            "clipped_share",
            "1",
            "share of per-sample gradients that were clipped, mean over the local steps",
            label="gradients clipped",
            percent=True,
        ),
        _per_slot(
            "noise_multiplier", "1", "noise std over clip_norm, mean over the local steps", label="noise multiplier"
        ),
        _per_slot(
            "staleness",
            "1",
            "steps of the global model since the client received its own, of updates heard",
            label="staleness (steps)",
        ),
        _per_slot("compute_time", "s", "simulated time of local training", label="compute time"),
        _per_slot(
            "compute_energy_j",
            "J",
            "energy of local training, also where it was not finished; NaN where not counted",
            label="energy of training",
        ),
        _per_slot(
            "status",
            "1",
            "outcome of the round for the client",
            dtype="u1",
            flags=Status,
            required=True,
            label="outcome",
        ),
        _per_slot(
            "role",
            "1",
            "whether the client follows the protocol (honest, as empty slots are), or how it does not",
            dtype="u1",
            flags=Role,
            label="role",
        ),
        _per_client("samples", "1", "training samples n_i", dtype="i8", required=True, label="training samples"),
        _per_client("weight", "1", "aggregation weight p_i = n_i / |D|", label="weight p"),
        _per_client(
            "power_budget",
            "normalised",
            "transmit energy budget per round P_i (on average where the power control limits that)",
            label="energy budget",
        ),
        _per_client("distance", "m", "distance to the server", label="distance"),
        _per_client(
            "client_epsilon_published",
            "1",
            "ε of this client by the paper's theorem",
            f"{_PAPER}, Theorems 1 and 3",
            label="ε published",
        ),
        _per_client(
            "client_epsilon_accounted", "1", "ε of this client for the mechanism that actually ran", label="ε accounted"
        ),
    ),
    attributes=ATTRIBUTES,
)

GROUPS = (ROOT, EVENTS, PRIVACY, MODEL, SECAGG)
"""Every group of the trace."""


_LABELLED = {variable.name: variable for variable in (*ROOT.coordinates, *ROOT.variables)}


def axis_label(name: str) -> str:
    """Label of an axis for a variable of the root group: its words for people, and its unit."""
    variable = _LABELLED[name]
    unit = "%" if variable.percent else {"1": "", "normalised": "noise = 1"}.get(variable.units, variable.units)
    return f"{variable.label} ({unit})" if unit else variable.label


def axis_scale(name: str) -> float:
    """Factor from the numbers of the trace to those on its axis: 100 for shares in percent, else 1."""
    return 100.0 if _LABELLED[name].percent else 1.0
