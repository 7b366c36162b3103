#!/usr/bin/env python3
"""Counts duplicated facts, and holds each count below its limit.

Prints a table with the value, the limit and the target of each row; exit status 1 when a value is
above its limit. A limit that is above its target is a ratchet: it is the value of the day it was
written, so that the count can fall but not grow. Lower a limit whenever its count has fallen.
"""

import pathlib
import re
import sys

import check_modules
import check_prose

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".h", ".cc", ".cu", ".inc"}

# The files that are about names of ops as text: the text form, TensorFlow's lists and imports.
NAMES_AS_TEXT = re.compile(r"lib/graph/text|lib/precision/(lists|import|tensorflow)")


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES:
                yield path


def code(path):
    """The text without comments; strings stay."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
    return pattern.sub(lambda m: "" if m.group(0).startswith("/") else m.group(0),
                       path.read_text())


def op_comparisons():
    """Comparisons of an op's name with a string, outside the text form and TensorFlow's tables."""
    pattern = re.compile(r'\bop(?:\(\)|_name)?\s*[!=]=\s*"|"\s*[!=]=\s*\w+(?:\.|->)op\b')
    return sum(len(pattern.findall(code(path))) for path in sources("lib")
               if not NAMES_AS_TEXT.match(str(path.relative_to(ROOT))))


def files_naming(*names):
    pattern = re.compile(r"\b(?:" + "|".join(names) + r")\b")
    return sum(bool(pattern.search(code(path))) for path in sources("lib"))


def lines(*folders):
    return sum(path.read_text().count("\n") for path in sources(*folders))


def short_files():
    return sum(path.read_text().count("\n") <= 25 for path in sources("lib", "app"))


def trainer_members():
    """(private member functions, data members) of class Trainer."""
    text = check_modules.without_comments_and_strings((ROOT / "lib/train/trainer.h").read_text())
    private = re.search(r"^class Trainer \{.*?^ private:\n(.*?)^\};", text, re.S | re.M).group(1)
    # Bodies of functions go, so that each declaration ends in one semicolon.
    private = re.sub(r"\{[^{}]*\}", ";", private)
    declarations = [" ".join(part.split()) for part in private.split(";") if part.strip()]
    declarations = [part for part in declarations
                    if not part.startswith(("using ", "static constexpr", "friend "))]
    functions = [part for part in declarations if re.search(r"\w+\(.*\)(?: const)?$", part)]
    return len(functions), len(declarations) - len(functions)


def rows():
    """(name, value, limit, target); the target is the redesign's."""
    functions, members = trainer_members()
    return [
        ("files of lib/ that name the op Elu or its gradient", files_naming("Elu", "EluGrad"), 4, 4),
        ("files of lib/ that name the op MaxPool or its gradient",
         files_naming("MaxPool", "MaxPoolGrad"), 8, 8),
        ('comparisons with an op\'s name (op == "...") in lib/', op_comparisons(), 0, 0),
        ("lines of lib/report and lib/study", lines("lib/report", "lib/study"), 13724, 10761),
        ("lines of lib/passes", lines("lib/passes"), 4113, 1496),
        ("lines of lib/", lines("lib"), 109581, 66399),
        ("files of at most 25 lines in lib/ and app/", short_files(), 30, 30),
        ("private member functions of Trainer", functions, 10, 10),
        ("data members of Trainer", members, 8, 8),
        ('comment lines with "what" as a noun in lib/ and app/',
         check_prose.count_what(["lib", "app"]), 0, 0),
    ]


def main():
    status = 0
    table = [("", "value", "limit", "target", "")]
    for name, value, limit, target in rows():
        note = "above the limit" if value > limit else ""
        if value < limit:
            note = f"the limit can fall to {max(value, target)}" if limit > target else ""
        status |= value > limit
        table.append((name, str(value), str(limit), str(target), note))
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [row[column].rjust(widths[column]) for column in range(1, 4)]
        print("  ".join([*cells, row[4]]).rstrip())
    return status


if __name__ == "__main__":
    sys.exit(main())
