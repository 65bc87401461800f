"""``labharness broker`` at a RabbitMQ that changes the default queue type of a virtual host."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Said, say
from confidential import CALLEE_ID, CALLER, confidential_lab
from management import ManagementAnswers, managed

DESCRIBED = {"name": "/hcp", "description": "of two labs", "tags": ["one", "two"]}
KEEPS = "hcp.evt.somebody"


def queue(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "vhost": "/hcp", "type": kind, "arguments": {}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManagementAnswers]:
    found = ManagementAnswers("4.1.0", 3, [dict(DESCRIBED, default_queue_type="classic")], [])
    with managed(found) as place:
        monkeypatch.setenv("LABHARNESS_MANAGEMENT", f"http://administrator:secret@{place}")
        yield found


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    made = confidential_lab(tmp_path / "lab")
    secrets = tmp_path / "passwords.toml"
    secrets.touch(0o600)
    secrets.write_text(f'{CALLEE_ID} = "a"\n{CALLER} = "b"\n', "utf-8")
    return made


def command(verb: str, lab: Path, *options: str) -> Said:
    secrets = ("--passwords", lab.parent.parent / "passwords.toml") if verb == "setup" else ()
    return say("broker", verb, "--lab", lab, *secrets, *options)


def test_in_a_cluster_setup_makes_quorum_the_default_and_keeps_all_else_of_the_virtual_host(
    cluster: ManagementAnswers, lab: Path
) -> None:
    before = command("check", lab)
    assert before.code == 1
    assert "update_vhost_metadata /hcp --default-queue-type quorum" in before.out
    said = command("setup", lab)
    assert said.code == 0, said
    assert cluster.hosts == [dict(DESCRIBED, default_queue_type="quorum")]
    (commands,) = cluster.queues
    assert commands["name"] == f"hcp.cmd.{CALLEE_ID}"
    assert commands["arguments"]["x-single-active-consumer"] is True
    assert command("setup", lab).code == 0
    assert cluster.hosts == [dict(DESCRIBED, default_queue_type="quorum")]
    assert sum(each.startswith("PUT") for each in cluster.asked) == 1
    assert command("check", lab).code == 0


def test_a_virtual_host_that_setup_makes_in_a_cluster_has_quorum_queues(
    cluster: ManagementAnswers, lab: Path
) -> None:
    cluster.hosts.clear()
    assert command("setup", lab).code == 0
    assert [each["default_queue_type"] for each in cluster.hosts] == ["quorum"]


def test_setup_deletes_no_queue_and_keeps_a_default_under_which_one_could_not_be_declared(
    cluster: ManagementAnswers, lab: Path
) -> None:
    cluster.queues.append(queue(KEEPS, "classic"))
    said = command("setup", lab)
    assert said.code == 1
    assert "setup does not change it while a queue below is of another kind" in said.out
    assert f"rabbitmqctl delete_queue --vhost /hcp --if-empty --if-unused {KEEPS}" in said.out
    assert said.out.endswith("2 findings\n")
    assert cluster.hosts[0]["default_queue_type"] == "classic"
    assert cluster.queues[0] == queue(KEEPS, "classic")
    del cluster.queues[0]
    assert command("setup", lab).code == 0


def test_one_broker_alone_has_quorum_queues_where_they_are_asked_for(
    cluster: ManagementAnswers, lab: Path
) -> None:
    cluster.nodes = 1
    assert command("setup", lab).code == 0
    assert cluster.hosts == [dict(DESCRIBED, default_queue_type="classic")]
    assert command("check", lab).code == 0
    assert command("check", lab, "--quorum").code == 1
    assert command("setup", lab, "--quorum").code == 0
    assert command("check", lab).code == 0, "and from then on without the option too"
