"""Planted bugs in the messages of a dialogue: bytes and packages that end what reads them."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "object parsed before its bounds are looked at",
        "labharness.protocols.strict_json:json_object",
        "check_bounds(data, bytes_max, depth_max)",
        "",
        "test_bytes_that_are_not_one_object_are_an_error_of_parsing",
    ),
    PlantedBug(
        "package of somebody else that ends the reader of messages",
        "labharness.protocols.mcp_cp.codec:message_types",
        'why = "mcp_cp.not_imported"',
        "raise",
        "test_a_broken_package_breaks_no_type_of_the_text",
    ),
)
