#!/usr/bin/env python3
"""Reads a page of ours with Python's own parsers.

usage: read_html.py FILE    prints "title TEXT", "chart ID SERIES POINTS" per line or range of a
                            chart, "row CELL|CELL" per table row

Ends with 1 when elements are not closed in order, when the page asks for anything outside of itself,
or when a script would run that the page's policy does not name by its hash.
"""

import base64
import hashlib
import json
import sys
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}
FETCHING = {"link", "iframe", "img", "object", "embed", "audio", "video", "base", "form"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.lines, self.problems, self.cells = [], [], [], []
        self.text, self.canvas, self.policy = "", "", ""

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))
        if tag in ("td", "th", "title", "script"):
            self.text = ""

    def handle_startendtag(self, tag, attrs):
        names = dict(attrs)
        if tag in FETCHING:
            self.problems.append(f"<{tag}> fetches something")
        for name in names:
            if name in ("src", "href", "srcdoc") or name.startswith("on"):
                self.problems.append(f"{name} of <{tag}>")
        if names.get("http-equiv") == "Content-Security-Policy":
            self.policy = names["content"]
        if tag == "canvas":
            self.canvas = names["id"]

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open[-1][0] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]}")
            return
        attributes = self.open.pop()[1]
        if tag == "title":
            self.lines.append("title " + self.text)
        if tag in ("td", "th"):
            self.cells.append(self.text)
        if tag == "tr":
            self.lines.append("row " + "|".join(self.cells))
            self.cells = []
        if tag == "script" and attributes.get("type") == "application/json":
            self.chart(json.loads(self.text))
        elif tag == "script":
            digest = base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()
            if f"'sha256-{digest}'" not in self.policy:
                self.problems.append(f"the policy does not name the script {self.text[:40]!r}")

    def chart(self, spec):
        for series in spec.get("series", []):
            known = sum(y is not None for y in series["y"])
            self.lines.append(f"chart {self.canvas} {series['name']} {known}")
        for marks in filter(None, [spec.get("marks")]):
            self.lines.append(f"chart {self.canvas} {spec['marks_name']} {len(marks)}")
        for row in spec.get("ranges", []):
            self.lines.append(f"chart {self.canvas} {row['name']} 1")

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1][0] == "style" and ("url(" in data or "@import" in data):
            self.problems.append("the style fetches something")


def main(arguments):
    page = Page()
    with open(arguments[0], encoding="utf-8") as file:
        page.feed(file.read())
    page.close()
    if page.open:
        page.problems.append(f"{page.open} are not closed")
    if "default-src 'none'" not in page.policy or "unsafe-eval" in page.policy:
        page.problems.append(f"the policy is '{page.policy}'")
    print("\n".join(page.lines))
    for problem in page.problems:
        print(problem, file=sys.stderr)
    return 1 if page.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
