"""The over-the-air paper's setting beside ours, and where its figures and theorems stand on the page."""

from __future__ import annotations

from publications.ota_points import ALONE, IID, JAMMED
from publications.paper import Coverage, Setting

SETTING = (
    Setting("users", "50", "clients.count"),
    Setting("data", "FEMNIST, lower-case a to j", ours=dict.fromkeys(("small", "full"), "EMNIST by class, a to j")),
    Setting("classes a user", "5 of 10", "data.partition.classes_per_client"),
    Setting(
        "training samples",
        "not stated",
        ours=dict.fromkeys(
            ("small", "full"), "9,533: lower-case a to j of the test part of EMNIST by class, divided 80 to 20"
        ),
    ),
    Setting("hidden layer", "14 × 14", "model.hidden"),
    Setting("rounds of the users", "80", "rounds"),
    Setting("local epochs", "20 for Upcycled-FL; others not stated", "training.epochs"),
    Setting("batch size", "not stated", ours={"small": "20; tuned beside it from 5 to 40", "full": "20"}),
    Setting(
        "learning rate",
        "0.05 for Upcycled-FL; adjusted for the others, not stated",
        ours={"small": "0.05; tuned beside it from 0.0125 to 0.2", "full": "0.05"},
    ),
    Setting("momentum", "0.5 for Upcycled-FL; others not stated", "training.optimizer.momentum"),
    Setting(
        "μ of FedProx and Upcycled-FL",
        "0.1",
        ours={"small": "0.1; tuned beside it from 0.01 to 1", "full": "0.1"},
    ),
    Setting(
        "λ_m of Upcycled-FL",
        "0.15, 0.4, 0.9, 1.9 from m = 1, 26, 51, 76",
        ours={
            "small": "the same from rounds 1, 6, 10 and 15",
            "full": "the same from rounds 1, 26, 51 and 76",
        },
    ),
    Setting(
        "clip norm τ",
        "not stated",
        ours={"small": "1; tuned beside it from 0.5 to 32", "full": "1; without a jammer 0.5, 2 and 4 too"},
    ),
    Setting(
        "clipped",
        "gradients are bounded, “achieved in practice by clipping the updates” (III-A)",
        ours=dict.fromkeys(("small", "full"), "updates; gradient-step: gradients, one step a round"),
    ),
    Setting("SNR [dB]", "1 at most, of each client", "uplink.snr_db"),
    Setting("fading", "Rayleigh, CN(0, 1), new in every round", "channel.fading.model"),
    Setting("channel known to clients", "perfectly", ours=dict.fromkeys(("small", "full"), "perfectly")),
    Setting("downlink", "free of errors", "downlink.model"),
    Setting(
        "server's gain α_u",
        "not stated",
        ours=dict.fromkeys(("small", "full"), "such that Theorems 1 and 3 give the ε; with the jammer that of 6.52"),
    ),
    Setting(
        "neighbouring data",
        "one sample altered (II-C), one added (proof, VI-A)",
        ours=dict.fromkeys(("small", "full"), "one added or removed"),
    ),
    Setting("ε, without a jammer; here a target", "6.52 and 4.4, as achieved", "uplink.power_control.epsilon", ALONE),
    Setting("δ, without a jammer", "1e-5 and 0.01", "privacy.delta", ALONE),
    Setting("ε of the jammer", "1, 0.5, 0.1", "uplink.jammer.epsilon", JAMMED),
    Setting("δ, with the jammer", "1e-5", "privacy.delta", JAMMED),
    Setting("factor on the jammer's gain", "7", "uplink.jammer.margin", JAMMED),
    Setting("training, iid data", "as in its reference [13]", ours=dict.fromkeys(("small", "full"), "as on FEMNIST")),
    Setting("model, iid data", "not stated", "model.name", IID),
    Setting("ε, iid data; here a target", "0.15, as achieved", "uplink.power_control.epsilon", IID),
    Setting("δ, iid data", "0.01", "privacy.delta", IID),
    Setting("repetitions", "10 independent trials", ours=dict.fromkeys(("small", "full"), "5 seeds")),
)

_NO_VERDICT = "no verdict: the paper does not say whether the loss is that of the clients' models or of the server's"

COVERAGE = (
    Coverage("Fig. 1", "the system", reason="a drawing; [over the air](../explanation/over-the-air.md) describes ours"),
    Coverage(
        "III-A, Algorithm 1",
        "power control, and Upcycled-FL with it",
        "#without-a-jammer",
        "what every run does; [over the air](../explanation/over-the-air.md) has the formulas (`policy: cross_layer`)",
    ),
    Coverage(
        "III-A",
        "the jammer's role rotates among the clients",
        reason="no run of the paper is named as doing so; the library can do it (`uplink.jammer.role: rotating`)",
    ),
    Coverage(
        "I-B",
        "the jammer takes nothing from the efficiency of transmission",
        reason="follows from (13) to (15): clients send no noise",
    ),
    Coverage(
        "Fig. 2, 4",
        "test accuracy on receiver noise alone",
        "#without-a-jammer",
        "the paper runs 160 iterations of Upcycled-FL and 80 of the others; a round here is an odd iteration with the "
        "even one after it, so that 80 rounds are 80 transmissions of each",
    ),
    Coverage("Fig. 3, 5", "training loss on receiver noise alone", "#training-loss", _NO_VERDICT),
    Coverage("Fig. 6, 7, 8", "test accuracy with the jammer", "#with-the-jammer"),
    Coverage("Fig. 9", "test accuracy on iid data", "#on-iid-data"),
    Coverage("Fig. 10", "training loss on iid data", "#training-loss", _NO_VERDICT),
    Coverage("Lemma 1", "even iterations cost no privacy", "#claims", "judged by the ledger: the ε is that of FedAvg"),
    Coverage(
        "I-B, III-B",
        "moments accountant instead of composition theorems",
        reason="known; [the jammer](#the-jammer-theorem-and-exact-calibration) shows what its conversion to ε still "
        "loses",
    ),
    Coverage("Theorems 1, 3", "ε on receiver noise alone", "#claims", "judged by the ledger, run by run"),
    Coverage("Theorems 2, 4", "the jammer's gain for an ε", "#the-jammer-theorem-and-exact-calibration"),
    Coverage(
        "IV, remark",
        "convergence without the strong convexity of Assumption 3",
        "#without-a-jammer",
        "every run: μ = 0.1 does not make a network's loss with its proximal term convex",
    ),
    Coverage(
        "Lemma 2, Theorem 5",
        "convergence of Upcycled-FL",
        "#theorem-5-beside-runs",
        "the runs have s_i = 1 and no jammer: they do not test C₅ and the back-off in C₄ "
        "(`tests/publications/convergence` does, on quadratics)",
    ),
    Coverage(
        "IV, last paragraph",
        "convergence of FedAvg and FedProx is guaranteed",
        reason="no bound is stated and the proof is left out: there is nothing to compare runs with",
    ),
)
