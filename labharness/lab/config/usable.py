"""Finds settings without use, and approval files that are missing.

Without use are values that no capability takes, alert addresses that nothing knows, and gases that
the simulated plant has elsewhere. They cannot harm: a task would be rejected, or a call reach no
person. They are found before.
"""

from collections.abc import Iterator
from pathlib import Path

from labharness.core.vocabulary.texts import Text
from labharness.lab.config.capability_tables import offered
from labharness.lab.config.kinds import capabilities, plant_kinds
from labharness.lab.config.lab_facts import line_facts
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.wires import Finding
from labharness.safety.alarm.outlets import strange_addresses


def unusable(plan: LabPlan) -> tuple[Finding, ...]:
    """Find values that no capability takes, unknown addresses, and gases that flow elsewhere."""
    return (*_misfits(plan), *_alerts(plan), *_gases(plan), *_left_idle(plan))


def unsigned(plan: LabPlan) -> tuple[str, ...]:
    """Name the standing approvals of the lab file that are not there."""
    return tuple(path for path in plan.file.lab.approvals if _is_gone(plan.beside(path)))


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except OSError as why:  # of any other its reader reports why it cannot be read
        return isinstance(why, FileNotFoundError | NotADirectoryError)
    return False


def _misfits(plan: LabPlan) -> Iterator[Finding]:
    try:
        known = capabilities()
    except LookupError as why:
        yield Finding("capabilities", str(why))
        return
    settings, _ = offered(plan.file.capability, known)  # a fault there was reported before
    for name, facts in line_facts(plan, settings).items():
        for what in known[name].misfits(facts):
            yield Finding(name, what)


def _left_idle(plan: LabPlan) -> Iterator[Finding]:
    """Find modes in which the safe procedure leaves an instrument, and which no task may leave."""
    for each in plan.instruments if plan.file.capability else ():
        drives = {own for off in each.driver.off or () for own in off.drives}
        for own in drives:
            acts = each.driver.channels[own].acts_while
            limit = plan.envelope.limits.get(f"{each.name}.{own}")
            if acts is None or limit is None or limit.high <= 0 or acts.setter in drives:
                continue  # what drives it too is switched on by a plan
            sets = f"{each.name}.{acts.setter}"
            begins = {
                **plan.safe_values,
                **{f"{each.name}.{name}": value for name, value in each.prepare},
            }
            if begins.get(sets, acts.values[0]) in acts.values:
                continue
            safe, found = plan.safe_procedure, acts.otherwise
            what = Text("usable.idle", table=safe, found=found, channel=sets, sets=own)
            paste = f'prepare = [["{acts.setter}", {acts.values[0]:g}]]'
            yield Finding(Text("lab.instrument", name=each.name), what, paste)


def _alerts(plan: LabPlan) -> Iterator[Finding]:
    addresses = {row.name: row.url.get_secret_value() for row in plan.file.alert}
    for name in strange_addresses(addresses):
        yield Finding(Text("usable.alert", name=name), Text("usable.address"))


def _gases(plan: LabPlan) -> Iterator[Finding]:
    """Find settings whose gas is not the one of that part of the simulated plant."""
    if plan.file.plant is None:
        return
    parts = plant_kinds()[plan.file.plant.kind](None, **plan.file.plant.settings).parts
    for row in plan.file.instrument:
        flows = getattr(parts.get(row.part), "gas", None)
        said = row.settings.get("gas")
        if isinstance(said, str) and isinstance(flows, str) and said != flows:
            yield Finding(
                Text("lab.instrument", name=row.name),
                Text("usable.gas", said=said, part=row.part, flows=flows),
            )
