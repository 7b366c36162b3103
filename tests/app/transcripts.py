#!/usr/bin/env python3
"""Checks that transcripts in pages equal the output of the program.

usage: transcripts.py PROGRAM PAGE... [--update]
       transcripts.py --quickstart OUTPUT PAGE

A transcript is a code block whose first line is `$ halfstep ...`, a command to be run in the root of
the checkout; the rest of the block must be its output. Data sets are replaced by generated
digits, which have the same shapes. The last column of a table, kernels, and the times predicted for
them depend on the machine, also where --arch names another one, and are not compared. --update writes the present output into the pages. --quickstart compares the file OUTPUT of
scripts/quickstart.sh with the page's block of it, line by line; numbers, the width of columns and the
policy that wins depend on the machine and are not compared.
"""

import difflib
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```(?:text)?\n\$ halfstep (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
DIGITS = "data={name: synthetic_digits, train_samples: 10240, test_samples: 1, validation_split: 0.2}"
COMPARED = 77
QUICKSTART = re.compile(r"^`quickstart\.sh` prints .*:\n\n```\n((?:.*\n)*?)```$", re.MULTILINE)
# The parts that vary, and their names.
VARIES = (
    (r"^use \w+ here: (no other policy is shown to be faster|[\d.]+ \[.*\] times as fast as float32, ).*",
     "use POLICY here: REASON"),
    (r"\b(yes|not shown)$", "SHOWN"),
    (r"^report: .*", "report: PATH"),
    (r"^(backward|casts|in 16 bits) .*", r"\1"),
    (r"(?<![A-Za-z_\d])[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "N"),
    (r"\s+", " "),
)  # fmt: skip


def run(program, command):
    words = [program, *shlex.split(command), "--set", DIGITS]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"halfstep {command} ends with {done.returncode}:\n{done.stderr}")
    return done.stdout


def without_variation(text):
    lines = []
    for line in text.splitlines():
        for pattern, name in VARIES:
            line = re.sub(pattern, name, line)
        lines.append(line.rstrip())
    return lines


def tell(shown, now, message):
    """Whether the lines differ; prints how."""
    if shown != now:
        print(message)
        print("\n".join(difflib.unified_diff(shown, now, "page", "program", lineterm="")))
    return shown != now


def quickstart_differs(output, page):
    block = QUICKSTART.search(pathlib.Path(page).read_text(encoding="utf-8"))
    if not block:
        sys.exit(f"{page} has no transcript of quickstart.sh")
    shown = without_variation(block[1])
    now = without_variation(pathlib.Path(output).read_text(encoding="utf-8"))
    # The page leaves out the lines of `doctor`, before, and describes those after. Timings on a busy
    # machine come with a note.
    start = now.index(shown[0]) if shown[0] in now else 0
    now = [line for line in now[start:] if not line.startswith("note: the machine was ")]
    shown += ["report: PATH", "backward", "casts", "in N bits"]
    return tell(shown, now, f"{page}: quickstart.sh prints something else (N is any number)")


def comparable(text):
    """The lines less the kernels: their column, its continuations, and the times predicted for them."""
    lines, predicted = [], False
    for line in text.splitlines():
        predicted = line.startswith("predicted") or (predicted and line.startswith("  "))
        cut = line[:COMPARED].rstrip()
        if not predicted and (cut or not line):
            lines.append(cut)
    return lines


def main(program, pages, update):
    differs = False
    for page in pages:
        text = pathlib.Path(page).read_text(encoding="utf-8")
        blocks = list(BLOCK.finditer(text))
        if not blocks:
            sys.exit(f"{page} has no transcript")
        for block in reversed(blocks):
            printed = run(program, block[1])
            if update:
                text = text[: block.start(2)] + printed + text[block.end(2) :]
                continue
            shown, now = comparable(block[2]), comparable(printed)
            differs |= tell(shown, now, f"{page}: halfstep {block[1]} prints something else")
        if update:
            pathlib.Path(page).write_text(text, encoding="utf-8")
    return differs


if __name__ == "__main__":
    if sys.argv[1:2] == ["--quickstart"]:
        sys.exit(quickstart_differs(*sys.argv[2:]))
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    sys.exit(main(arguments[0], arguments[1:], "--update" in sys.argv))
