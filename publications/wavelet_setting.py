"""The wavelet paper's setting beside ours, and where its figures, tables and theorems stand on the page."""

from __future__ import annotations

from collections.abc import Mapping

from publications.paper import Coverage, Setting
from publications.studies import SIZES, Size

_SEEDS: Mapping[Size, str] = {"small": "5 seeds", "medium": "3 seeds", "full": "5 seeds"}

_TRAINING: Mapping[Size, str] = {
    "small": "2,000",
    "medium": "60,000; CIFAR-10: 10,000",
    "full": "60,000; CIFAR-10: 10,000",
}

_EPSILONS: Mapping[Size, str] = {
    "small": "5.57, 2.76, 1.07",
    "medium": "12.9, 6.45, 2.59",
    "full": "not run",
}

_TEST: Mapping[Size, str] = dict.fromkeys(SIZES, "10,000; CIFAR-10: 2,000")

SETTING = (
    Setting("data", "MNIST, Fashion-MNIST, CIFAR-10", "data.dataset.name"),
    Setting("division", "iid, equal parts", "data.partition.scheme"),
    Setting("training samples", "60,000; CIFAR-10: 50,000", ours=_TRAINING),
    Setting("test samples", "10,000", ours=_TEST),
    Setting("clients, a sample's privacy", "100", "clients.count", "sample"),
    Setting("clients, a client's privacy", "100", "clients.count", "client"),
    Setting("clients a round, q_c", "not stated", ours=dict.fromkeys(SIZES, "all")),
    Setting("rounds", "300", "rounds"),
    Setting("local epochs", "50", "training.epochs", "sample"),
    Setting("local steps instead, a sample's privacy", "–", "training.steps", "sample"),
    Setting("local steps instead, a client's privacy", "–", "training.steps", "client"),
    Setting("batch size", "not stated", "training.batch_size", "sample"),
    Setting("learning rate of DP-SGD", "tuned, not stated", "training.optimizer.lr", "sample"),
    Setting("learning rate of DP-FedAvg", "tuned, not stated", "training.optimizer.lr", "client"),
    Setting("network", "drawn in Fig. 5 and 6", "model.name", "sample"),
    Setting("evaluated", "after every epoch", "evaluate.every", "sample"),
    Setting("noise multiplier σ", "1, 1.5, 3", "training.privacy.noise_multiplier", "sample"),
    Setting(
        "noise on coefficients",
        "σC/W (4.3, Alg. 1); with σ √(2/(2 + log₂ m)) in place of σ, not run (4.2, 5.2)",
        ours=dict.fromkeys(SIZES, "σC/W"),
    ),
    Setting("δ", "1e-5", "privacy.delta"),
    Setting(
        "accountant of ε",
        "RDP of Google's library",
        ours=dict.fromkeys(SIZES, "PLD of Google's library; Dyn-DP-SGD: the approximation of Du et al."),
    ),
    Setting("ε of DP-SGD at σ = 1, 1.5, 3 (MNIST)", "6.38, 3.61, 1.64", ours=_EPSILONS),
    Setting(
        "clipping norm", "median of public gradients, fixed after the first rounds", "training.privacy.clip", "sample"
    ),
    Setting(
        "the same, in the study `median`",
        "median of public gradients, in the initial rounds",
        ours=dict.fromkeys(SIZES, "of 100 samples that belong to no client, in 5 rounds, in the norm that is clipped"),
    ),
    Setting("clipping norm of DP-FedAvg", "median", "training.privacy.clip", "client"),
    Setting(
        "clipping at client level",
        "gradients, in local training",
        ours=dict.fromkeys(SIZES, "updates, at the server; client-gradients: gradients"),
    ),
    Setting("repetitions", "not stated", ours=_SEEDS),
)

COVERAGE = (
    Coverage("Fig. 1, 2", "the systems", reason="drawings"),
    Coverage("Fig. 3, Table 2", "the Haar transform of eight numbers", "#section-43-by-hand"),
    Coverage(
        "Fig. 4",
        "density of the noise of both forms",
        "#lemmas-1-and-2-by-hand",
        "at the same σ, and at the same true multiplier",
    ),
    Coverage(
        "Fig. 5, 6",
        "the networks",
        reason="drawings without layer sizes; `medium` and `full` have those of the paper on clipping",
    ),
    Coverage("Fig. 7", "accuracy on MNIST, a sample's privacy", "#sample-level"),
    Coverage(
        "Fig. 8", "accuracy on Fashion-MNIST, a sample's privacy", "#sample-level", "one noise level in size `small`"
    ),
    Coverage("Fig. 9", "accuracy on CIFAR-10, a sample's privacy", "#sample-level", "one noise level in size `small`"),
    Coverage("Fig. 10", "accuracy on MNIST, a client's privacy", "#client-level"),
    Coverage(
        "Fig. 11", "accuracy on Fashion-MNIST, a client's privacy", "#client-level", "one noise level in size `small`"
    ),
    Coverage("Fig. 12", "accuracy on CIFAR-10, a client's privacy", "#client-level", "one noise level in size `small`"),
    Coverage("I, contribution 4", "gains in accuracy and loss", "#claims", "the loss on test samples"),
    Coverage(
        "Section 2, eqs. (1)-(4)",
        "background",
        reason="definitions; eq. (2) has S_f for S_f², and the sentence after it a larger σ as less noise",
    ),
    Coverage("Eq. (5)", "S_f ≤ C/(q_c d)", "#what-is-clipped-at-client-level"),
    Coverage("Section 3.2", "threat model", "#audits", "audits play the strongest of it, membership"),
    Coverage("Table 1", "symbols", reason="nothing to test"),
    Coverage("Table 3, gains", "DP-Adam and DP-AdaGrad", "#the-gains-beside-the-papers"),
    Coverage("Table 3, ε", "6.38, 3.61, 1.64 and 24.5, 7.94, 4.75", "#the-stated-epsilons"),
    Coverage("Sections 6.3, 6.4", "gains over four methods", "#the-gains-beside-the-papers"),
    Coverage("Section 4.3, eq. (6)", "transform, weights, clipping by levels", "#section-43-by-hand"),
    Coverage(
        "Algorithm 1",
        "DP-SGD-WAV",
        "#sample-level",
        "the study `sample`; noise is added once to the sum of a batch, as in DP-SGD, not to each sample",
    ),
    Coverage(
        "Algorithm 2",
        "DP-FedAvg-WAV",
        "#what-is-clipped-at-client-level",
        "the study `client-gradients`, whose noise is that of K clients in place of all samples; bounds are exact",
    ),
    Coverage("Lemma 1", "variance of the noise", "#lemmas-1-and-2-by-hand", "exact, among the claims"),
    Coverage(
        "Lemma 2",
        "σ_Haar, a saved factor, and the guarantee",
        "#lemmas-1-and-2-by-hand",
        "its formula and factor exactly; its guarantee among the claims, and by audits",
    ),
    Coverage("Theorem 3", "convergence", "#theorem-3-by-hand"),
    Coverage("Appendix", "proof of Theorem 3", "#claims", "where it fails is the reason of the verdict"),
    Coverage("Section 5.3", "K = 1 as DP-SGD", "#what-is-clipped-at-client-level", "for one local step only"),
    Coverage("Section 6.3", "three baselines, one non-private", "#without-privacy", "judged among the claims"),
    Coverage(
        "Section 7",
        "more computation, the same rate of convergence",
        "#rounds-until-convergence-and-computation",
        "computation was measured apart from these runs",
    ),
)
