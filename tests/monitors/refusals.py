"""What is refused of the definition of a service, and in which line."""

from __future__ import annotations

from typing import Any

FIELDS = {"name": "a", "healthy": "b"}
A_PATH = "must be a path, such as status or checks.state"
A_TEST = 'must be a path or {"field": path, "equals": value}'
ONE_OF = "must have exactly one of and, or, not, status, header, body, latency, certificate"
A_LONG_TEXT = "x" * 201
A_LEAF = {"status": {"equals": 200}}
TEXT_OF_200 = "must be a text of 1 to 200 characters"


def nested(levels: int) -> dict[str, Any]:
    """A tree of so many levels."""
    return {"not": nested(levels - 1)} if levels > 1 else A_LEAF


REFUSALS: list[tuple[str, Any, str]] = [
    ("mapping", [], "mapping must be an object"),
    ("mapping", {}, "mapping.fields is missing"),
    ("mapping", {"fields": 3}, "mapping.fields must be an object"),
    (
        "mapping",
        {"fields": FIELDS, "roots": "a"},
        "mapping.roots is unknown: use one of root, fields",
    ),
    ("mapping", {"fields": FIELDS, "root": 3}, f"mapping.root {A_PATH}"),
    ("mapping", {"fields": FIELDS, "root": None}, f"mapping.root {A_PATH}"),
    (
        "mapping",
        {"fields": FIELDS, "root": "$key"},
        "mapping.root is $key, which only the name can be: write a path",
    ),
    ("mapping", {"fields": {"healthy": "b"}}, "mapping.fields.name is missing"),
    ("mapping", {"fields": {"name": "a"}}, "mapping.fields.healthy is missing"),
    (
        "mapping",
        {"fields": FIELDS | {"checkdetails": "c"}},
        (
            "mapping.fields.checkdetails is unknown: use one of name, healthy, type, description,"
            " impact, state, code, latency, skipped, contact, checkDetails, error, errorMessage,"
            " lastChecked"
        ),
    ),
    ("mapping", {"fields": FIELDS | {"type": None}}, f"mapping.fields.type {A_PATH}"),
    ("mapping", {"fields": FIELDS | {"type": {"a": 1}}}, f"mapping.fields.type {A_PATH}"),
    (
        "mapping",
        {"fields": FIELDS | {"type": ""}},
        "mapping.fields.type is empty: write a path, such as status or checks.state",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"type": A_LONG_TEXT}},
        "mapping.fields.type has more than 200 characters: make it shorter",
    ),
    *[
        (
            "mapping",
            {"fields": FIELDS | {"checkDetails": path}},
            (
                "mapping.fields.checkDetails has an empty part: write names with one dot between,"
                " such as checks.state"
            ),
        )
        for path in (".a", "a.", "a..b", ".")
    ],
    (
        "mapping",
        {"fields": FIELDS | {"latency": "$key"}},
        "mapping.fields.latency is $key, which only the name can be: write a path",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"latency": "$keys"}},
        (
            "mapping.fields.latency begins with $: write names with one dot between, such as"
            " checks.state"
        ),
    ),
    ("mapping", {"fields": FIELDS | {"healthy": 3}}, f"mapping.fields.healthy {A_TEST}"),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": "a", "equals": 10**16}}},
        "mapping.fields.healthy.equals must be between -1e15 and 1e15",
    ),
    (
        "expect",
        {"body": {"path": "a", "equals": -(10**16)}},
        "expect.body.equals must be between -1e15 and 1e15",
    ),
    (
        "expect",
        {"status": {"above": 10**16}},
        "expect.status.above must be between -1e15 and 1e15",
    ),
    ("mapping", {"fields": FIELDS | {"skipped": None}}, f"mapping.fields.skipped {A_TEST}"),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"equals": 1}}},
        "mapping.fields.healthy.field is missing",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": "a"}}},
        "mapping.fields.healthy.equals is missing",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": "a", "equals": []}}},
        "mapping.fields.healthy.equals must be a text, a number or a boolean",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": "a", "equals": A_LONG_TEXT}}},
        "mapping.fields.healthy.equals has more than 200 characters: make it shorter",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": "a", "equal": 1}}},
        "mapping.fields.healthy.equal is unknown: use one of field, equals",
    ),
    (
        "mapping",
        {"fields": FIELDS, "root": "x" * 8200},
        "mapping has more than 8192 bytes of JSON: make it shorter",
    ),
    ("expect", 3, "expect must be an object"),
    ("expect", {}, f"expect {ONE_OF}"),
    ("expect", {"xor": []}, f"expect {ONE_OF}"),
    ("expect", {"status": {"equals": 200}, "latency": {"below": 3}}, f"expect {ONE_OF}"),
    ("expect", {"and": []}, "expect.and must be a list of one or more"),
    ("expect", {"and": [3]}, "expect.and[0] must be an object"),
    ("expect", {"or": [{"not": {}}]}, f"expect.or[0].not {ONE_OF}"),
    ("expect", {"status": 200}, "expect.status must be an object"),
    (
        "expect",
        {"status": {"contains": "2"}},
        "expect.status.contains is unknown: use one of equals, above, below",
    ),
    ("expect", {"status": {}}, "expect.status must have exactly one of equals, above, below"),
    ("expect", {"status": {"equals": "200"}}, "expect.status.equals must be a number"),
    ("expect", {"status": {"equals": True}}, "expect.status.equals must be a number"),
    (
        "expect",
        {"latency": {"above": 1, "below": 2}},
        "expect.latency must have exactly one of above, below",
    ),
    ("expect", {"certificate": {"above": None}}, "expect.certificate.above must be a number"),
    ("expect", {"header": {"equals": "a"}}, "expect.header.name is missing"),
    (
        "expect",
        {"header": {"name": "", "equals": "a"}},
        "expect.header.name must be a text of 1 to 200 characters",
    ),
    (
        "expect",
        {"header": {"name": "a", "exists": 1}},
        "expect.header.exists must be true or false",
    ),
    (
        "expect",
        {"header": {"name": "a", "equals": 1}},
        "expect.header.equals must be a text of 1 to 200 characters",
    ),
    ("expect", {"body": {"equals": 1}}, "expect.body.path is missing"),
    ("expect", {"body": {"path": None, "equals": 1}}, f"expect.body.path {A_PATH}"),
    (
        "expect",
        {"body": {"path": "a"}},
        "expect.body must have exactly one of equals, contains, above, below, exists",
    ),
    (
        "expect",
        {"not": {"body": {"path": "a..b", "equals": 1}}},
        (
            "expect.not.body.path has an empty part: write names with one dot between, such as"
            " checks.state"
        ),
    ),
    (
        "expect",
        {"body": {"path": "a", "equals": {}}},
        "expect.body.equals must be a text, a number or a boolean",
    ),
    ("expect", nested(9), "expect is deeper than 8"),
    ("expect", {"and": [A_LEAF] * 50}, "expect has more than 50 parts"),
    (
        "expect",
        {"status": "x" * 8200},
        "expect has more than 8192 bytes of JSON: make it shorter",
    ),
    ("expect", {"and": [A_LEAF, {}]}, f"expect.and[1] {ONE_OF}"),
    (
        "expect",
        {"header": {"name": A_LONG_TEXT, "exists": True}},
        f"expect.header.name {TEXT_OF_200}",
    ),
    ("expect", {"header": {"name": "a", "contains": 1}}, f"expect.header.contains {TEXT_OF_200}"),
    ("expect", {"body": {"contains": 1}}, f"expect.body.contains {TEXT_OF_200}"),
    ("expect", {"body": {"contains": ""}}, f"expect.body.contains {TEXT_OF_200}"),
    ("expect", {"body": {"path": "a", "below": "3"}}, "expect.body.below must be a number"),
    (
        "expect",
        {"body": {"path": "a", "equals": A_LONG_TEXT}},
        "expect.body.equals has more than 200 characters: make it shorter",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": 3, "equals": 1}}},
        f"mapping.fields.healthy.field {A_PATH}",
    ),
    (
        "mapping",
        {"fields": FIELDS | {"healthy": {"field": "$key", "equals": 1}}},
        "mapping.fields.healthy.field is $key, which only the name can be: write a path",
    ),
    ("headers", "a", "headers must be an object"),
    (
        "headers",
        {f"X-{n}": "x" * 1999 for n in range(5)},
        "headers has more than 8192 bytes of JSON: make it shorter",
    ),
    (
        "headers",
        {"X" * 101: "x"},
        f"headers.{'X' * 100} is no name of a header: use letters, digits and -",
    ),
    *[
        ("headers", {name: "x"}, f"headers.{name} is set by the poller: leave it out")
        for name in (
            *("connection", "content-length", "transfer-encoding", "accept-encoding", "upgrade"),
            *("te", "trailer", "Expect", "keep-alive", "proxy-authorization", "Proxy-Connection"),
        )
    ],
    ("headers", {"a b": "x"}, "headers.a b is no name of a header: use letters, digits and -"),
    ("headers", {"": "x"}, "headers. is no name of a header: use letters, digits and -"),
    ("headers", {"Host": "x"}, "headers.Host is set by the poller: leave it out"),
    ("headers", {"X-A": "x", "x-a": "y"}, "headers.x-a is given twice"),
    ("headers", {"X-A": 3}, "headers.X-A must be a text of up to 2000 characters"),
    ("headers", {"X-A": "x" * 2001}, "headers.X-A must be a text of up to 2000 characters"),
    *[
        (
            "headers",
            {"X-A": value},
            "headers.X-A has a character that no header can hold: use printable ASCII",
        )
        for value in ("a\r\nX-B: c", "\x01", "\x08", "\x1f", "\x7f", "\u0100", "\u20ac")
    ],
    ("headers", {f"X-{n}": "" for n in range(65)}, "headers has more than 64 entries"),
    ("url", "http://a/" + "x" * 2048, "url has more than 2048 bytes: make it shorter"),
    *[
        (
            "url",
            url,
            "url has a blank or a control character in it: write it as %20 or leave it out",
        )
        for url in ("http://a b/", "http://a/\n", "http://a\\@b/", " http://a")
    ],
    *[
        ("url", url, "url must begin with http:// or https:// and name a host")
        for url in ("", "a", "ftp://a", "http:/a", "http://", "http:///a", "http://[::1", "//a")
    ],
    *[
        ("url", url, "url has a user or password in it: put it into headers, as a secret")
        for url in ("http://u@a", "http://u:p@a/", "https://@a", "http://a:80@b:80/")
    ],
    *[
        ("url", url, "url has a port that is not 1 to 65535")
        for url in ("http://a:0", "http://a:65536", "http://a:x", "http://a:", "http://[::1]:0/")
    ],
    (
        "url",
        f"http://{'a' * 254}/",
        "url has a host of more than 253 bytes: make it shorter",
    ),
]
"""(column, value, line): Python says the line; SQL too, of a URL, with the table before it."""

ACCEPTED: list[tuple[str, Any]] = [
    ("mapping", {"fields": {"name": "$key", "healthy": "b"}}),
    ("mapping", {"root": "", "fields": FIELDS}),
    ("mapping", {"root": "a", "fields": FIELDS | {"contact": "x" * 200}}),
    *[
        ("mapping", {"fields": FIELDS | {"skipped": {"field": "a.b", "equals": value}}})
        for value in (10**15, -(10**15), "x" * 200, "", True)
    ],
    ("expect", nested(8)),
    ("expect", {"and": [A_LEAF] * 49}),
    *[("expect", {"status": {comparison: 1}}) for comparison in ("equals", "above", "below")],
    *[("expect", {kind: {"below": 0.5}}) for kind in ("latency", "certificate")],
    ("expect", {"header": {"name": "x" * 200, "contains": "x" * 200}}),
    ("expect", {"header": {"name": "a", "equals": "b"}}),
    ("expect", {"header": {"name": "a", "exists": False}}),
    ("expect", {"body": {"contains": "x" * 200}}),
    *[
        ("expect", {"body": {"path": "a", comparison: value}})
        for comparison, value in (
            *(("equals", False), ("contains", "a"), ("above", 1), ("below", 1), ("exists", True)),
        )
    ],
    ("headers", {"Authorization": "Bearer {orders}", "X-Empty": ""}),
    ("headers", {}),
    ("headers", {f"X-{n}": "" for n in range(64)}),
    ("headers", {"X" * 100: "x" * 2000}),
    ("headers", {"X-A": "a\tb \x80\xff"}),
    *[
        ("url", url)
        for url in (
            "http://a",
            "HTTPS://a.b:65535/x?y=1#z",
            "http://[::1]:80",
            "http://a:1",
            "http://a/@b:c",
            "http://a?b=@",
            "http://bücher.example/",
            f"http://{'a' * 253}/",
            "http://a/" + "x" * 2039,
        )
    ],
]
"""(column, value): what is just within the bounds, and what looks odd and is right."""
