"""Variables of the trace's root group with one value a round."""

from functools import partial

from wirelessfl.trace.layout import Variable

_PAPER = "ota-cross-layer-dp"
_per_round = partial(Variable, dims=("round",))

ROUND_VARIABLES = (
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
    _per_round(
        "accuracy_client_mean",
        "1",
        "accuracy of the global model on the test samples of single clients (data.test), mean over clients",
        label="accuracy of clients, mean",
        percent=True,
    ),
    _per_round(
        "accuracy_worst10",
        "1",
        "mean of the accuracies of the tenth of the clients with the lowest, on their own test samples (data.test)",
        "Li et al. 2020, Fair resource allocation in federated learning, Table 1",
        label="accuracy of clients, worst 10 %",
        percent=True,
    ),
    _per_round(
        "fairness_index",
        "1",
        "Jain's index of the clients' accuracies a on their own test samples (data.test)",
        "Jain, Chiu and Hawe 1984: (Σ a)² / (m Σ a²)",
        label="Jain index of accuracies",
    ),
    _per_round(
        "personal_accuracy_mean",
        "1",
        "accuracy of personal models on their clients' own test samples (ditto, fine_tune), mean over clients",
        label="personal accuracy, mean",
        percent=True,
    ),
    _per_round(
        "personal_accuracy_worst10",
        "1",
        "mean of the personal accuracies of the tenth of the clients with the lowest",
        "Li et al. 2020, Fair resource allocation in federated learning, Table 1",
        label="personal accuracy, worst 10 %",
        percent=True,
    ),
    _per_round(
        "personal_fairness_index",
        "1",
        "Jain's index of the personal accuracies",
        "Jain, Chiu and Hawe 1984: (Σ a)² / (m Σ a²)",
        label="Jain index of personal accuracies",
    ),
    _per_round(
        "client_drift",
        "1",
        "root mean square distance of the updates trained from their mean, before any clip (evaluate.client_drift)",
        label="client drift",
    ),
    _per_round("server_step_norm", "1", "norm of the step of the global model", label="norm of the server's step"),
    _per_round("train_loss", "nat", "weighted mean local training loss of the participants", label="training loss"),
    _per_round(
        "updates_not_finite",
        "1",
        "clients received whose update or its float32 norm was not finite: a clip makes it zero, robust rules omit it",
        label="updates not finite",
    ),
    _per_round(
        "participants",
        "1",
        "clients whose update was received and is not left out as not finite",
        dtype="i8",
        required=True,
        label="clients heard",
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
        "noise per coordinate of the mean update: σ_m rescaled (times τ), over Σ p_i of the clients received",
        label="noise on the mean update",
    ),
    _per_round(
        "jammer_gain",
        "normalised",
        "power-control factor of the jammer α_CJ",
        f"{_PAPER}, Theorems 2 and 4",
        label="jammer gain α_CJ",
    ),
    _per_round(
        "jammer_channel_re",
        "1",
        "channel of the jammer h_CJ with path gain, real part",
        gain=True,
        jammer_gain=True,
        label="Re h_CJ",
    ),
    _per_round(
        "jammer_channel_im",
        "1",
        "channel of the jammer h_CJ with path gain, imaginary part",
        gain=True,
        jammer_gain=True,
        label="Im h_CJ",
    ),
    _per_round(
        "jammer_csi_re",
        "1",
        "estimate of the jammer's channel ĥ_CJ, real part",
        gain=True,
        jammer_gain=True,
        label="Re ĥ_CJ",
    ),
    _per_round(
        "jammer_csi_im",
        "1",
        "estimate of the jammer's channel ĥ_CJ, imaginary part",
        gain=True,
        jammer_gain=True,
        label="Im ĥ_CJ",
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
        "energy sent by all antennas of the jammer: 2 d α_CJ² (circular) or d α_CJ² (real)",
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
        "selection_epsilon",
        "1",
        "cumulative ε of the losses reported for the selection alone, worst client; part of epsilon_accounted",
        label="ε of the selection",
    ),
    _per_round(
        "event_count", "1", "cumulative number of rows in /events at the round's end", dtype="i8", label="events"
    ),
)
