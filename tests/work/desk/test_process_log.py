"""The process log has the last sample of each channel in each of its rows."""

from pathlib import Path

from labharness.journal import SqliteJournal
from labharness.work.desk.process_log import process_log


def test_a_row_has_the_newest_samples_before_its_time(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with SqliteJournal(path) as journal:
        heat = journal.stream("heat.process", ["temperature", "output"])
        flow = journal.stream("gas.frame", ["flow"])
        for second in range(131):  # over two blocks, the second of which ends within a row
            journal.sample(heat, float(second), (100.0 + second, 5.0))
        journal.sample(flow, 12.5, (7.0,))
    table, rows = process_log(path, {"heat.temperature": "degC", "gas.flow": "sccm"})
    head, *lines = table.decode().splitlines()
    assert head == "time [s],heat.temperature [degC],gas.flow [sccm]"
    assert rows == len(lines) == 14
    assert lines[:3] == ["10,109,", "20,119,7", "30,129,"]
    assert lines[-2:] == ["130,229,", "140,230,"]
