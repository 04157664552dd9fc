"""Variables of the trace's root group with one value for each client selected in a round."""

from functools import partial

from wirelessfl.trace.layout import Role, Status, Variable

_PAPER = "ota-cross-layer-dp"
_per_slot = partial(Variable, dims=("round", "slot"))

SLOT_VARIABLES = (
    _per_slot("client_id", "1", "client in this slot, −1 if empty", dtype="i8", required=True, label="client"),
    _per_slot(
        "selection_score",
        "1",
        "number by which the selection preferred the client; NaN where it was not preferred by one",
        label="score of the selection",
    ),
    _per_slot("channel_re", "1", "channel h_i with path gain, real part", gain=True, label="Re h"),
    _per_slot("channel_im", "1", "channel h_i with path gain, imaginary part", gain=True, label="Im h"),
    _per_slot("csi_re", "1", "channel estimate ĥ_i, real part", gain=True, label="Re ĥ"),
    _per_slot("csi_im", "1", "channel estimate ĥ_i, imaginary part", gain=True, label="Im ĥ"),
    _per_slot("backoff", "1", "back-off s_i ≥ 1", f"{_PAPER}: s_i = max(1, α_u p_i / (|ĥ_i| √P_i))", label="back-off"),
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
    _per_slot(
        "sinr",
        "1",
        "SINR behind the combiner, beside other uploads in the band; over groups of subcarriers that of a flat "
        "channel with the same rate",
        "Tse and Viswanath 2005, section 8.3",
        label="SINR",
    ),
    _per_slot("cell", "1", "base station that serves the client", label="cell"),
    _per_slot(
        "path_gain",
        "1",
        "path gain β_i = E|h_i|²; with snr_db relative to that at reference_distance_m",
        label="path gain β",
    ),
    _per_slot(
        "payload_bits", "bit", "size of an upload of a digital uplink, of those who sent", label="size of an upload"
    ),
    _per_slot("local_loss", "nat", "mean loss of the local steps", label="local training loss"),
    _per_slot(
        "local_accuracy",
        "1",
        "accuracy of the global model on the client's own test samples (data.test)",
        label="accuracy on own test samples",
        percent=True,
    ),
    _per_slot(
        "personal_accuracy",
        "1",
        "accuracy of the client's personal model on its own test samples (ditto, fine_tune)",
        label="personal accuracy",
        percent=True,
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
    _per_slot("noise_multiplier", "1", "noise std over clip_norm, mean over the local steps", label="noise multiplier"),
    _per_slot(
        "staleness",
        "1",
        "steps of the global model since the client received its own, of updates heard",
        label="staleness (steps)",
    ),
    _per_slot("compute_time", "s", "simulated time of local training", label="compute time"),
    _per_slot("local_steps", "1", "local steps by the deadline; only with training.partial_work", label="local steps"),
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
    _per_slot(
        "robust_kept",
        "1",
        "part of the update that the robust rule kept; NaN where it did not arrive, or with the mean",
        label="part kept by the rule",
        percent=True,
    ),
    _per_slot(
        "slot_group",
        "1",
        "group of clients in whose slot over the air the client sends, from 0; NaN where all send in one",
        label="group of the slot",
    ),
)
