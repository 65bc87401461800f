"""The persons who may approve in a lab, by the file that its lab file names."""

from collections.abc import Mapping

from labharness.lab.config.address import BadLabFile, LabAddress, read_text
from labharness.work.admission.approval import Approver, BadApprovers, read_approvers


def approvers_of(place: LabAddress) -> Mapping[str, Approver] | None:
    """Read the persons who may approve; ``None`` where a lab takes names on trust.

    Raises:
        BadLabFile: The approvers file cannot be honoured.
    """
    if place.approvers_file is None:
        return None
    try:
        return read_approvers(read_text(place.approvers_file))
    except BadApprovers as why:
        raise BadLabFile(str(why)) from None
