#!/usr/bin/env python3
"""Checks that transcripts in pages equal the output of the program.

usage: transcripts.py PROGRAM PAGE... [--update]

A transcript is a code block whose first line is `$ halfstep ...`, a command to be run in the root of
the checkout; the rest of the block must be its output. Data sets are replaced by generated
digits, which have the same shapes. The last column of a table, kernels, depends on the machine and is
not compared. --update writes the present output into the pages.
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


def run(program, command):
    words = [program, *shlex.split(command), "--set", DIGITS]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"halfstep {command} ends with {done.returncode}:\n{done.stderr}")
    return done.stdout


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
            shown, now = ([line[:COMPARED].rstrip() for line in side.splitlines()]
                          for side in (block[2], printed))  # fmt: skip
            if shown != now:
                differs = True
                print(f"{page}: halfstep {block[1]} prints something else")
                print("\n".join(difflib.unified_diff(shown, now, "page", "program", lineterm="")))
        if update:
            pathlib.Path(page).write_text(text, encoding="utf-8")
    return differs


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    sys.exit(main(arguments[0], arguments[1:], "--update" in sys.argv))
