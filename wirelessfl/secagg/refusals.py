"""Refusals of messages, one class of ValueError for each reason.

MessageRefused                 a message that does not fit the round; nothing of it is used
├── ForeignMessage             another session, an unknown sender, another receiver
├── AlteredMessage             its authentication tag, or that of a share inside it, does not verify
├── ReplayedMessage            the same step was already taken with this sender
├── LateMessage                the stage it belongs to is closed
├── MalformedMessage           shapes, ranges or names inside it do not fit the round
└── ForbiddenRequest           answering would give the server both secrets of one client
"""


class MessageRefused(ValueError):
    """A message that the receiver does not act on; its state is as if the message had never come."""


class ForeignMessage(MessageRefused):
    """A message of another session, from an unknown sender or for another receiver."""


class AlteredMessage(MessageRefused):
    """A message whose authentication tag does not verify."""


class ReplayedMessage(MessageRefused):
    """A message for a step that was already taken."""


class LateMessage(MessageRefused):
    """A message for a stage that is closed, or from a client that dropped out of the round."""


class MalformedMessage(MessageRefused):
    """An authentic message whose content does not fit the round."""


class ForbiddenRequest(MessageRefused):
    """A request for both the mask key and the self-mask seed of one client."""
