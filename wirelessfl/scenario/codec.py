"""Codecs of digital and secure uploads: how vectors become bits."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wirelessfl.scenario.base import CoreVariant, External, Positive, Reference, Rule, Share, key
from wirelessfl.scenario.family import Family


class NoCodec(CoreVariant, core="wirelessfl.learning.compression:NoCodec", core_names={"error_feedback": None}):
    """Single precision."""

    name: Literal["none"] = key("none", "No codec: 32-bit floating point.")
    error_feedback: Literal[False] = key(False, "Nothing is lost that could be added to the next upload.")


class LossyCodec(CoreVariant, core_names={"error_feedback": None}):
    """Base of the codecs that lose something."""

    name: str = key("", "Which of them.")
    error_feedback: bool = key(False, "Whether what was lost of an upload is added to the client's next one.")


class TopK(LossyCodec, core="wirelessfl.learning.compression:TopK"):
    """The largest coordinates."""

    name: Literal["top_k"] = key("top_k", "The coordinates of largest magnitude, with the bits of their places.")
    share: Share = key(0.01, "Share of the coordinates that are sent.")


class RandK(LossyCodec, core="wirelessfl.learning.compression:RandK"):
    """Coordinates drawn at random."""

    name: Literal["rand_k"] = key("rand_k", "Coordinates drawn at random, the same for all clients of a round.")
    share: Share = key(0.01, "Share of the coordinates that are sent.")

    def arguments(self) -> dict[str, Any]:
        """The server makes up for what is missing where the clients do not."""
        return {"share": self.share, "unbiased": not self.error_feedback}


class Qsgd(LossyCodec, core="wirelessfl.learning.compression:Qsgd"):
    """Levels of the norm, rounded at random (Alistarh et al. 2017)."""

    name: Literal["qsgd"] = key("qsgd", "Levels of the norm, rounded at random without bias (QSGD).")
    levels: Annotated[int, Field(ge=1, le=2**20)] = key(4, "Levels s of magnitude, zero not counted.")


class Uniform(
    LossyCodec,
    core="wirelessfl.learning.compression:RandomRounding",
    core_names={"bits": "width", "error_feedback": None},
):
    """Even levels up to the largest coordinate, rounded at random."""

    name: Literal["uniform"] = key("uniform", "Even levels up to the largest coordinate, rounded at random.")
    bits: Annotated[int, Field(ge=1, le=16)] = key(
        8, "Bits b of a coordinate: 2^b − 1 levels, zero among them (1 bit: ± the largest)."
    )


class Sign(LossyCodec, core="wirelessfl.learning.compression:Sign"):
    """Signs (Bernstein et al. 2019; Karimireddy et al. 2019)."""

    name: Literal["sign"] = key("sign", "Signs, one bit a coordinate.")
    vote_step: Positive | None = key(
        None, "Step of the server in each coordinate, as the majority of signs has it. null: sign(x) times mean |x|."
    )

    def rules(self) -> list[Rule]:
        """A vote loses nothing that the next one could make up for."""
        voting = self.vote_step is not None and self.error_feedback
        return [(voting, "error_feedback", "true with vote_step", "false, or vote_step: null")]


class ExternalCodec(
    External,
    family="codec",
    protocol="wirelessfl.learning.compression:Codec",
    check="wirelessfl.learning.conformance:check_codec",
):
    """A codec of the user's own."""

    name: Reference = key(..., "Importable codec, as package.module:Class; its bits decide the airtime.")


Codec = Annotated[NoCodec | TopK | RandK | Qsgd | Uniform | Sign | ExternalCodec, Family("name", default="none")]
