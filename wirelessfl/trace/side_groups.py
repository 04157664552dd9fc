"""Groups of the trace beside the root: events, what the ledger needs, models, and secure aggregation."""

from functools import partial

from wirelessfl.trace.layout import (
    REASON_LENGTH,
    Attribute,
    EventKind,
    Group,
    SecAggOutcome,
    SecAggStage,
    Variable,
)

_per_round = partial(Variable, dims=("round",))
_per_slot = partial(Variable, dims=("round", "slot"))
_per_event = partial(Variable, dims=("event",))
_per_snapshot = partial(Variable, dims=("snapshot",))
_per_stage = partial(Variable, dims=("round", "stage"))

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
    "what recomputes the ledger without the data, together with samples, weight, backoff and status",
    variables=(
        *(
            _per_round(f"{route}_settings", "1", f"kind of the {words} release: place in release_settings", dtype="i8")
            for route, words in (("air", "uplink's"), ("local", "clients'"), ("server", "server's"))
        ),
        _per_round(
            "loss_settings",
            "1",
            "losses reported with noise for the selection, and by whom: place in release_settings",
            dtype="i8",
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
        _per_slot("air_csi_ratio", "1", "|h_i/ĥ_i|, at all antennas and receivers over what the server reads"),
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
        Variable("initial", "1", "flat global model before round 1", dims=("parameter",), dtype="f4"),
    ),
    attributes=(
        Attribute("dimension", "number of trainable parameters d", kind="whole number"),
        Attribute("parameters", "names and shapes in flat order, as JSON", required=False, kind="JSON mapping"),
        Attribute(
            "frozen", "names and shapes of frozen parameters, if any, as JSON", required=False, kind="JSON mapping"
        ),
    ),
)

SECAGG = Group(
    "/secagg",
    "cost of secure aggregation, stage by stage; only with that kind of uplink",
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
        _per_stage("energy", "J", "energy of the clients' transmissions; NaN without a transmit power in watts"),
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
