#!/usr/bin/env python3
"""Reads a page of ours with Python's own parsers.

usage: read_html.py FILE    prints "title TEXT", "svg TITLE POINTS" per chart, "row CELL|CELL" per
                            table row

Ends with 1 when elements are not closed in order, or when the page asks for anything outside of
itself.
"""

import sys
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}
FETCHING = {"script", "link", "iframe", "img", "object", "embed"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.lines, self.problems, self.cells = [], [], [], []
        self.text, self.chart, self.points = "", "", 0

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th", "title"):
            self.text = ""

    def handle_startendtag(self, tag, attrs):
        names = dict(attrs)
        if tag in FETCHING:
            self.problems.append(f"<{tag}> fetches something")
        for name in ("src", "href"):
            if name in names:
                self.problems.append(f"{name} of <{tag}> leads outside")
        if tag == "svg":
            self.chart, self.points = names["aria-label"], 0
        if tag == "circle":
            self.points += 1

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]}")
            return
        self.open.pop()
        if tag == "title" and "svg" not in self.open:
            self.lines.append("title " + self.text)
        if tag in ("td", "th"):
            self.cells.append(self.text)
        if tag == "tr":
            self.lines.append("row " + "|".join(self.cells))
            self.cells = []
        if tag == "svg":
            self.lines.append(f"svg {self.chart} {self.points}")

    def handle_data(self, data):
        self.text += data
        if self.open[-1:] == ["style"] and ("url(" in data or "@import" in data):
            self.problems.append("the style fetches something")


def main(arguments):
    page = Page()
    with open(arguments[0], encoding="utf-8") as file:
        page.feed(file.read())
    page.close()
    if page.open:
        page.problems.append(f"{page.open} are not closed")
    print("\n".join(page.lines))
    for problem in page.problems:
        print(problem, file=sys.stderr)
    return 1 if page.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
