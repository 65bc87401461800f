"""Planted bugs in latch and lock: what keeps a line shut, and lets one owner drive it."""

from planted_bug import PlantedBug

IN_LATCH_AND_LOCK = (
    PlantedBug(
        "latch that is a dangling link taken for none",
        "labharness.safety.guard.latch:Latch.__init__",
        "is_there(path)",
        "path.exists()",
        "tests/core/files/test_named_files.py::test_a_latch_that_is_no_file_is_a_latch",
        promise=14,
    ),
    PlantedBug(
        "pipe in a file's place waited for",
        "labharness.core.files.named:open_named",
        "os.O_RDONLY | NO_WAIT",
        "os.O_RDONLY",
        "tests/core/files/test_named_files.py::test_a_pipe_put_there_after_the_look_is_not_waited_for",
        promise=14,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "line not made safe because its lock is no file",
        "labharness.lab.operate.idle_line:_unowned_if_known",
        "OSError",
        "ZeroDivisionError",
        "tests/core/files/test_named_files.py::test_no_other_file_of_a_line_is_waited_for[line.lock-pipe]",
        promise=12,
    ),
    PlantedBug(
        "ports of a line locked by its own file alone",
        "labharness.lab.config.lock:LineLock.__init__",
        "self._ports = PortLock(ports, LINE, {} if owner is None else asdict(owner))",
        "pass",
        "tests/safety/guard/test_port_latch.py::test_two_lab_files_that_lead_to_one_instrument_have_one_owner",
        promise=36,
        daily=True,
    ),
    PlantedBug(
        "line driven elsewhere armed, set and left heating by a copy of its file",
        "labharness.lab.config.lab_plan:LabPlan.lock",
        "LineLock(self.state_dir, owner, self.identities(), leases)",
        "LineLock(self.state_dir, owner, (), leases)",
        "tests/lab/operate/test_line_elsewhere.py::"
        "test_what_is_driven_elsewhere_is_refused_by_name_and_made_safe_by_its_owner",
        promise=36,
        dear=True,
    ),
    PlantedBug(
        "safe by a copy of the file sent to nobody",
        "labharness.faces.cli.owner:_made_safe",
        "owner_of(place, late) or owner_abroad(place, late)",
        "owner_of(place, late)",
        "tests/lab/operate/test_line_elsewhere.py::"
        "test_what_is_driven_elsewhere_is_refused_by_name_and_made_safe_by_its_owner",
        promise=36,
        dear=True,
    ),
    PlantedBug(
        "ports of a guard not asked for safe by a copy of its file",
        "labharness.faces.cli.owner:guarded_by",
        "other is not None",
        "False",
        "tests/lab/operate/test_line_elsewhere.py::"
        "test_a_guard_that_somebody_keeps_makes_its_ports_safe_for_who_comes_by_a_copy",
        promise=36,
        dear=True,
    ),
    PlantedBug(
        "latch of a port seen by its own lab alone",
        "labharness.safety.guard.port_records:PortLatch.look",
        "if record.state_dir != self._home and _stands(record.state_dir):\n"
        "    return (ours, record)",
        "if record.state_dir != self._home:\n    continue",
        "tests/safety/guard/test_port_latch.py::test_a_latch_holds_whichever_lab_leads_to_its_port",
        promise=14,
    ),
    PlantedBug(
        "ports of an armed line not marked",
        "labharness.safety.guard.latch:Latch.set_marker",
        "ports.set_marker(procedure)",
        "pass",
        "tests/safety/guard/test_port_latch.py::test_a_port_that_was_left_armed_is_latched_for_every_lab",
        promise=14,
    ),
    PlantedBug(
        "latch of a port taken away with the armed marker",
        "labharness.safety.guard.latch:Latch.clear_marker",
        "self._ports is not None and self.trip is None",
        "self._ports is not None",
        "tests/safety/guard/test_port_latch.py::test_a_mark_that_goes_leaves_the_latch_of_a_port",
        promise=14,
    ),
    PlantedBug(
        "port armed that was latched elsewhere meanwhile",
        "labharness.safety.guard.latch:Latch.set_marker",
        "_must_be_ours(ports)",
        "pass",
        "tests/safety/guard/test_port_latch.py::"
        "test_a_line_is_not_marked_whose_port_was_latched_elsewhere_meanwhile",
        promise=14,
    ),
    PlantedBug(
        "guard armed on a port that is latched elsewhere",
        "labharness.safety.guard.process:ProcessGuard.__init__",
        "Latch.or_shut(self._latch_file, armed.safe_table, self._port_latch)",
        "Latch.or_shut(self._latch_file, armed.safe_table)",
        "tests/safety/guard/test_port_latch.py::"
        "test_a_guard_started_elsewhere_does_not_arm_a_port_that_is_latched",
        promise=14,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "record of a port that cannot be read taken for open",
        "labharness.safety.guard.port_records:_read",
        "raise ValueError(f'{path}: {why}') from None",
        "return None",
        "tests/safety/guard/test_port_latch.py::test_a_record_that_cannot_be_read_is_a_latch",
        promise=14,
    ),
    PlantedBug(
        "one host by two names taken for two instruments",
        "labharness.instruments.link.identity:_tcp",
        "{HERE if is_here(each) else _written(each) for each in (*found,)}",
        "{host}",
        "tests/safety/guard/test_port_latch.py::test_a_host_is_the_same_by_whatever_name_it_is_reached",
        promise=36,
    ),
    PlantedBug(
        "one device by two names taken for two instruments",
        "labharness.instruments.link.identity:_serial",
        "path.stat",
        "path.lstat",
        "tests/safety/guard/test_port_latch.py::test_a_device_is_the_same_by_whatever_name_it_is_reached",
        promise=36,
    ),
    PlantedBug(
        "line over a network armed though nobody claims it",
        "labharness.lab.config.lab_plan:LabPlan.check",
        "(*check_wires(self.envelope, self.instruments, self.timings, "
        "self.procedures()), *unproven(self.envelope, self.instruments, "
        "self.contacts), *self.unclaimed(), *unknown_room(self.room))",
        "(*check_wires(self.envelope, self.instruments, self.timings, "
        "self.procedures()), *unproven(self.envelope, self.instruments, "
        "self.contacts), *unknown_room(self.room))",
        "tests/instruments/link/test_lease.py::test_a_line_over_a_network_that_nobody_claims_is_not_armed",
        promise=36,
    ),
    PlantedBug(
        "line driven without its lease",
        "labharness.lab.config.lock:LineLock.__init__",
        "self._lease(leases, owner)",
        "pass",
        "tests/instruments/link/test_lease.py::"
        "test_who_holds_the_lease_on_another_machine_keeps_this_one_from_driving",
        promise=36,
    ),
    PlantedBug(
        "guard goes on armed though its door is gone",
        "labharness.safety.guard.process:ProcessGuard._keep_time",
        "self._door.lost and (not self._shut_out)",
        "False",
        "tests/safety/guard/test_port_latch.py::test_a_guard_that_finds_its_door_taken_away_makes_the_line_safe"
        "_latches_and_ends[the socket]",
        promise=36,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "owner goes on driving though its door is gone",
        "labharness.lab.wiring.control:served",
        "lost is not None",
        "False",
        "tests/lab/operate/test_line_elsewhere.py::"
        "test_an_owner_that_finds_its_door_taken_away_makes_the_line_safe_and_says_so[the socket]",
        promise=36,
        dear=True,
    ),
    PlantedBug(
        "state of a real line looked for wherever a shell says",
        "labharness.lab.config.lab_plan:_state_dir",
        "file.real_addresses and (named is None or not Path(named).is_absolute())",
        "False",
        "tests/safety/guard/test_port_latch.py::test_a_lab_with_a_real_port_states_one_place_for_all_accounts",
        promise=14,
    ),
)
