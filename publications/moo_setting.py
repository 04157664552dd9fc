"""The setting of the paper on multi-objective clipping beside ours, and where its figures, tables and lemmas stand."""

from __future__ import annotations

from publications.moo_methods import EPSILON, KAPPA, NORM_RATE
from publications.paper import Coverage, Setting
from publications.studies import SIZES

SETTING = (
    Setting("rounds", "200", "rounds", "moo"),
    Setting("clients", "not stated", "clients.count", "moo"),
    Setting("clients a round, q_c", "not stated", ours=dict.fromkeys(SIZES, "all")),
    Setting(
        "training samples",
        "60,000 (CIFAR-10: 50,000)",
        ours={"small": "2,000", "medium": "60,000 (CIFAR-10: 10,000)", "full": "60,000 (CIFAR-10: 10,000)"},
    ),
    Setting("test samples", "10,000", ours=dict.fromkeys(SIZES, "10,000 (CIFAR-10: 2,000)")),
    Setting(
        "data sets",
        "MNIST, Fashion-MNIST, CIFAR-10",
        ours={
            "small": "MNIST, Fashion-MNIST, CIFAR-10",
            "medium": "MNIST; Fashion-MNIST in other-data, CIFAR-10 in other-data-cifar10",
            "full": "MNIST, Fashion-MNIST, CIFAR-10; MNIST in …-once",
        },
    ),
    Setting("division", "not iid, not stated how", ours=dict.fromkeys(SIZES, "5 of 10 classes a client")),
    Setting("network", "Tables I and II", "model.name", "moo"),
    Setting("local epochs", "E, not stated", "training.epochs", "moo"),
    Setting("local steps", "not stated", "training.steps", "moo"),
    Setting("batch (lot) L", "searched, not stated", "training.batch_size", "moo"),
    Setting(
        "learning rate",
        "searched, not stated",
        ours={
            "small": "0.5; tuned beside it on MNIST",
            "medium": "0.5; tuned beside it on MNIST at ε = 3.61",
            "full": "0.5, not tuned",
        },
    ),
    Setting("norm C at the start", "the same for all methods, not stated", "training.privacy.clip", "moo"),
    Setting("least norm C", "10⁻³, eq. (12)", ours=dict.fromkeys(SIZES, "10⁻³")),
    Setting("∂L_model/∂C", "not stated how", ours=dict.fromkeys(SIZES, "S, the fall of the loss per unit of C")),
    Setting("κ", "not stated", KAPPA, "moo"),
    Setting("η_C", "not stated", NORM_RATE, "moo"),
    Setting("update of C", "with every sample (Alg. 1, lines 13-17)", "training.privacy.clipping.update", "moo"),
    Setting("weight decay", "searched, not stated", ours=dict.fromkeys(SIZES, "none")),
    Setting(
        "norm and multiplier of dynamic DP",
        "not stated",
        ours={"small": "both halve", "medium": "both halve; as tuned, the multiplier stays", "full": "both halve"},
    ),
    Setting("ε", "6.38, 3.61, 1.64", EPSILON, "moo"),
    Setting("δ", "10⁻⁵", "privacy.delta", "moo"),
    Setting(
        "accountant",
        "RDP of Google's library",
        ours=dict.fromkeys(SIZES, "PLD of Google's library; dynamic DP: the approximation of Du et al."),
    ),
    Setting(
        "seeds",
        "not stated",
        ours={"small": "5, three in sweeps", "medium": "3, one in sweeps", "full": "5, one in …-once"},
    ),
)

COVERAGE = (
    Coverage("Fig. 1", "overview of the framework", reason="a drawing without numbers"),
    Coverage(
        "Algorithm 1", "DP-FL with MOO", "#the-norm-over-the-rounds", "C follows every sample; once a step beside it"
    ),
    Coverage(
        "Table I",
        "network for MNIST and Fashion-MNIST",
        "#setting",
        "model cnn_mnist, in medium and full; no padding and no stride of the pooling is named: none and 1",
    ),
    Coverage("Table II", "network for CIFAR-10", "#setting", "model cnn_cifar10; medium: other-data-cifar10"),
    Coverage(
        "Table III",
        "accuracy of six methods, and without privacy",
        "#table-iii",
        "small size all numbers, medium MNIST; at the paper's MOO, DP-SGD and no privacy on MNIST, one seed",
    ),
    Coverage("I, contributions", "better accuracy at the same ε, by theory and runs", "#claims"),
    Coverage("Section II, eqs. (1)-(8)", "background", reason="definitions; eq. (8) clips parameters, not updates"),
    Coverage("Section III", "adversaries", "#audits", "audits play the strongest, who tells whether a sample is in"),
    Coverage(
        "Sections IV-A, IV-B, eqs. (9)-(19)", "composite loss and its minimiser", "#what-is-proven-about-the-norm"
    ),
    Coverage("Lemma 1, eq. (23)", "optimality gap after a step", "#what-is-proven-about-the-norm"),
    Coverage(
        "After Lemma 1",
        "a larger C has more noise and converges more slowly",
        reason="that more noise slows training is judged on the page on wavelets; the lemma has no C in it, so that "
        "nothing follows of an optimum of C",
    ),
    Coverage("Appendix", "proof of Lemma 1", reason="that of Theorem 3 of the paper on wavelets, where it is judged"),
    Coverage("Lemma 2, eq. (28)", "convergence of C", "#what-is-proven-about-the-norm"),
    Coverage("Section V-C", "leads of MOO, and how accuracy falls with ε", "#claims"),
    Coverage(
        "Section V-C",
        "more stable training, better generalisation",
        reason="no measure is given; of our runs only those of MOO that follows raw gradients diverge",
    ),
    Coverage(
        "Section V-C",
        "over-clipping is prevented",
        "#the-norm-over-the-rounds",
        "C falls, so that MOO clips to a smaller norm than DP-SGD: at the paper's size to 0.27, 0.095 and 0.070 on "
        "average",
    ),
    Coverage("Section V-A", "search of the settings", "#how-the-norm-is-tuned", "the rest under Tuned alike"),
)
