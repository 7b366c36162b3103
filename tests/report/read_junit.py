#!/usr/bin/env python3
"""Reads a JUnit file as continuous integration does.

usage: read_junit.py FILE    prints "passed|failed|error NAME: MESSAGE" per test case

Ends with 1 when a suite's counts are not those of its cases.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main(arguments):
    root = ElementTree.parse(arguments[0]).getroot()
    bad = 0
    for suite in root.iter("testsuite"):
        counts = {"tests": 0, "failures": 0, "errors": 0}
        for case in suite.iter("testcase"):
            outcome, message = "passed", ""
            for tag, word in (("failure", "failed"), ("error", "error")):
                for element in case.iter(tag):
                    outcome, message = word, element.get("message")
                    counts[tag + "s"] += 1
            counts["tests"] += 1
            float(case.get("time"))
            print(f"{outcome} {case.get('name')}: {message}")
        for name, count in counts.items():
            if int(suite.get(name)) != count or int(root.get(name)) != count:
                print(f"{name} is not {count}", file=sys.stderr)
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
