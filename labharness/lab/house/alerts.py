"""Messages about background work on the alert channels of a lab.

They are not alarms: they need no acknowledgement, and go to the recipients of warnings who are
called first. A message that a channel does not take is in the log of the house.
"""

import logging
from collections.abc import Callable

from labharness.core.vocabulary.texts import Text, in_language
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.alarms import channels, senders
from labharness.safety.alarm.board import Severity
from labharness.safety.alarm.outlets import Channels, NullSenders, recipients

LOG = logging.getLogger(__name__)


class WorkAlerts:
    """Sends a text to the people of a lab; never blocks and never raises.

    Args:
        plan: The lab's files.
        sender: Sends the messages; ``None`` takes that of the lab file.
    """

    def __init__(self, plan: LabPlan, sender: Channels | None = None) -> None:
        self._plan = plan
        self._sender = sender

    def __call__(self, text: str) -> None:
        """Hand a text to the channels, each in its language."""
        LOG.warning("%s", text)
        if self._sender is None:
            self._sender = self._opened()
        title = Text("job.title", lab=self._plan.file.lab.title)
        for each in recipients(channels(self._plan), (Severity.WARNING,), 0):
            said = (in_language(title, each.language), in_language(text, each.language))
            self._sender.send(each.name, *said, _ended(each.name))

    def _opened(self) -> Channels:
        try:
            return senders(self._plan)
        except BadLabFile as why:
            LOG.error("no message can be sent: %s", why)
            return NullSenders()


def _ended(channel: str) -> Callable[[str], None]:
    def done(why: str) -> None:
        if why:
            LOG.error("alert channel %s took no message: %s", channel, why)

    return done
