"""Planted bugs at the doors beside the broker: artifacts over HTTP, and callers over WebSockets."""

from planted_bug import PlantedBug

HTTP = "labharness.faces.service.artifact_pages"

BUGS = (
    PlantedBug(
        "artifact over HTTP for whoever has an account",
        f"{HTTP}:ArtifactPages.page",
        "task is None or task.requested_by != account",
        "task is None",
        "test_anybody_else_and_anything_else_is_refused",
    ),
    PlantedBug(
        "account over HTTP without its password",
        f"{HTTP}:ArtifactPages.page",
        "bool(account) and await self.vouches(account, password)",
        "bool(account)",
        "test_anybody_else_and_anything_else_is_refused",
    ),
    PlantedBug(
        "account that names the broker it is vouched for by",
        "labharness.faces.broker.connection:_as_account",
        "quote(account, '')",
        "account",
        "test_no_account_has_another_broker_asked",
    ),
    PlantedBug(
        "last byte of a range left out",
        f"{HTTP}:_part",
        "min(int(last) + 1, size)",
        "min(int(last), size)",
        "test_a_range_is_answered_as_rfc_9110_says",
    ),
    PlantedBug(
        "part of another version than the one asked for",
        f"{HTTP}:_part",
        "match is None or headers.get('if-range', etag) != etag",
        "match is None",
        "test_a_range_is_answered_as_rfc_9110_says",
    ),
    PlantedBug(
        "part without the checksum of its artifact",
        f"{HTTP}:_page",
        "end - first < size",
        "headers.pop('ETag') and end - first < size",
        "test_a_range_is_answered_as_rfc_9110_says",
    ),
    PlantedBug(
        "artifact handed out over HTTP that nobody logs",
        f"{HTTP}:_page",
        "log_access(\n    folder,\n    data_class=data_class_of(folder / JOURNAL_NAME),\n    reader=account,\n    via='http',\n    what=uri,\n)",
        "pass",
        "test_its_caller_gets_an_artifact_with_its_checksum",
        of_promise=70,
    ),
    PlantedBug(
        "page of a browser that is let in",
        "labharness.faces.service.sockets:refusal_of",
        "'Origin' in asked.headers or not hmac.compare_digest(stated, secret.encode())",
        "not hmac.compare_digest(stated, secret.encode())",
        "test_the_address_is_a_secret_of_the_account_and_no_browser_uses_it",
    ),
    PlantedBug(
        "address of a service that every account may read",
        "labharness.faces.service.sockets:_kept_address",
        "0o600",
        "0o644",
        "test_the_address_is_a_secret_of_the_account_and_no_browser_uses_it",
    ),
    PlantedBug(
        "older connection of a caller that takes the newer one with it",
        "labharness.faces.service.sockets:_Sockets._take",
        "self._connected.get(caller_id) is talks",
        "caller_id in self._connected",
        "test_the_newest_connection_of_a_caller_outlives_the_older_ones",
    ),
    PlantedBug(
        "frame that cannot be read and is not answered",
        "labharness.faces.service.sockets:_Sockets.dead_letter",
        "await SPEAKS.get().send_text(json.dumps(said, ensure_ascii=False))",
        "pass",
        "test_a_frame_that_cannot_be_read_is_answered_on_its_own_connection",
    ),
)
