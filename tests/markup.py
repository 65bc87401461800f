"""HTML read back: that it is balanced, and what is in it."""

from html.parser import HTMLParser

VOID = {"br", "input", "meta"}


class Balance(HTMLParser):
    """Holds every end tag against its start, and keeps tags, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(html: str) -> Balance:
    reader = Balance()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader
