#!/usr/bin/env python3
"""Checks the wording of comments and of the project's Markdown.

Prints one line per finding, `file:line: "found": the term to use`; exit status 1 when there is any.

    check_prose.py              all tracked files
    check_prose.py PATH...      these files and folders
    check_prose.py --count      the number of comment lines with "what" as a noun, for check_counts.py

Two rules:
- No free relative clause with "what" ("what follows", "What it holds"): a sentence has a subject
  noun. A question, one that ends in a question mark, may ask "what".
- No term of TERMS below. Text in backquotes and in quotation marks is not looked at: an identifier
  is written there, so that a name of the code is never mistaken for a word of the sentence.
"""

import bisect
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

CPP = {".h", ".cc", ".cu", ".inc", ".js", ".css"}
HASH = {".sh", ".py", ".cmake", ".yaml"}

# Pages written by a program from the tables of the code; its texts are checked by its own tests.
GENERATED = re.compile(r"generated|written by", re.I)

WHAT = re.compile(r"\bwhat\b", re.I)

# Pattern -> the term to use. A pattern holds only the sense to avoid: "in place", "decimal place",
# "stands for", "row-major" and "hyper-parameter sweep" are the field's own.
TERMS = [
    (r"\brooms?\b(?! for\b)", "module; workspace, scratch, register"),
    (r"\b(?:lies|lie|lay|lying)\b", "is, is at, is stored"),
    (r"\bfares?\b", "performs"),
    (r"\b(?:stands|stand|stood)\b(?!-| (?:in )?for\b)", "is, is stored, is written"),
    (r"(?<!in )(?<!In )(?<!into )(?<!decimal )(?<!take )(?<!takes )(?<!the last )(?<!taking )"
     r"(?<!ten )\bplaces?\b(?! (?:of|on|the|it|them|blocks|each)\b)",
     "offset, index, coordinate; location, position"),
    (r"\b(?:in|as|as a|with a|the|their|its) words?\b(?! (?:of|at|i)\b)", "name, label, text"),
    (r"\b(?:kernel|op) rows?\b|\brows? of (?:the |a |this |its |[\w/]+'s )?"
     r"(?:table|registry|tables|plugin|folder|families|family|backend|device)\b",
     "entry, registry entry, kernel"),
    (r"\brows? of (?:the |a |this |its )?(?:batch|data ?set|split|shard|file)\b", "sample"),
    (r"\bsteps? of (?:the |a |this |its )?(?:plan|rewrite|packing|slab|panel)\b|\bplan steps?\b",
     "launch; rule; k block"),
    (r"(?<!parameter )(?<!hyperparameter )\bsweeps?\b", "microkernel call, pass over"),
    (r"\bfinishers?\b", "epilogue"),
    (r"\bslabs?\b", "kc block"),
    (r"\bsides? [ab]\b", "operand a, operand b"),
    (r"\brecordings?\b", "captured graph, capture"),
    (r"\b(?:unrecorded)\b", "eager"),
    (r"\breplay(?:s|ed|ing)?\b", "launch of the captured graph"),
    (r"\b(?:run|runs|running|ran) ahead\b", "pipelined steps"),
    (r"\b(?:take|takes|taken|took|taking) back\b", "roll back"),
    (r"(?<!dot )(?<!dot-)(?<!inner )(?<!outer )(?<!scalar )(?<!vector )(?<!cross )(?<!partial )"
     r"(?<!Partial )(?<!bfloat16 )\bproducts?\b(?! of\b)(?! over\b)", "matmul, GEMM (or: dot product)"),
    (r"\bforeign (?:ops?|graphs?|nodes?|definitions?|rows?)\b", "imported op, imported graph"),
    (r"\bgiven graphs?\b", "imported graph"),
    (r"\b(?:judges?|judged|obeys?|obeyed)\b", "evaluate, apply"),
    (r"\bsettles?\b|\bsettled\b", "finish, fix"),
    (r"\bblueprints?\b", "step spec"),
    (r"\bbe it that\b", "if"),
    (r"\bbut for\b", "except"),
    (r"\bof no account\b", "irrelevant, ignored"),
    (r"\bthe lab\b|\ba lab\b|\btiny (?:session|run|config|model|net)\b", "fixture"),
]
TERMS = [(re.compile(pattern), term) for pattern, term in TERMS]

# file -> words that have their ordinary meaning there.
ALLOWED = {}

# Tokens of C++ in which "//" is no comment; the comment is the first group.
CPP_TOKEN = re.compile(
    r'R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\n\']+|\\\'|[^\'\\\n])\''
    r"|(//[^\n]*|/\*.*?\*/)", re.S)
# The same for scripts: strings, ${x#y}, $#; a comment begins a line or follows a blank.
HASH_TOKEN = re.compile(
    r'\$\{[^}\n]*\}|\$#|"""(.*?)"""|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|(?:(?<=\s)|\A)(#[^\n]*)", re.S)
# Text that is quoted or an identifier.
QUOTED = re.compile(r"`[^`]{0,200}`|\"[^\"]{0,200}\"|\b\w+\(|\b\w+(?:[/_.]\w+)+\b|\b\w+_\b")


def cpp_comments(text):
    """(line, text) of every line of a comment."""
    for match in CPP_TOKEN.finditer(text):
        if match.group(2) is None:
            continue
        line = text.count("\n", 0, match.start()) + 1
        for number, part in enumerate(match.group(2).split("\n")):
            yield line + number, re.sub(r"^\s*(?:///?<?|/\*+|\*+/?)|\*/$", "", part)


def hash_comments(text):
    for match in HASH_TOKEN.finditer(text):
        found = match.group(1) if match.group(1) is not None else match.group(2)
        if found is None or found.startswith("#!"):
            continue
        line = text.count("\n", 0, match.start()) + 1
        for number, part in enumerate(found.split("\n")):
            yield line + number, part.lstrip("#")


def markdown(text):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def prose_of(path):
    text = path.read_text(errors="replace")
    if path.suffix in CPP:
        return cpp_comments(text)
    if path.suffix == ".md":
        return () if GENERATED.search(text[:600]) else markdown(text)
    if path.suffix in HASH or path.name == "CMakeLists.txt" or text.startswith("#!"):
        return hash_comments(text)
    return ()


def paragraphs(lines):
    """Neighbouring lines joined, as (text, starts, numbers): a sentence may wrap."""
    block, starts, numbers = "", [], []
    for number, line in lines:
        if numbers and (number != numbers[-1] + 1 or not line.strip()):
            yield block, starts, numbers
            block, starts, numbers = "", [], []
        if line.strip():
            starts.append(len(block))
            numbers.append(number)
            block += line.strip() + " "
    if numbers:
        yield block, starts, numbers


def is_question(text, at):
    end = re.search(r"[.?!;](?:\s|$)", text[at:])
    return bool(end) and end.group(0).startswith("?")


def findings(path):
    """(line, found, term) of one file."""
    allowed = ALLOWED.get(str(path.relative_to(ROOT)), ())
    for text, starts, numbers in paragraphs(prose_of(path)):
        text = QUOTED.sub(lambda match: "`" * len(match.group(0)), text)

        def line_of(at, starts=starts, numbers=numbers):
            return numbers[bisect.bisect_right(starts, at) - 1]

        for match in WHAT.finditer(text):
            if not is_question(text, match.end()):
                yield line_of(match.start()), match.group(0), "a noun: the value that ..., the ops after ..."
        for pattern, term in TERMS:
            for match in pattern.finditer(text):
                if match.group(0).lower() not in allowed:
                    yield line_of(match.start()), match.group(0), term


def tracked(paths):
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard", "--", *paths]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in sorted(name for name in names.split("\0") if name):
        path = ROOT / name
        if path.is_file() and name != "scripts/check_prose.py":
            yield path


def count_what(folders):
    """Comment lines that hold "what" as a noun."""
    lines = {(path, line) for path in tracked(folders) for line, found, _ in findings(path)
             if found.lower() == "what"}
    return len(lines)


def main():
    arguments = sys.argv[1:]
    if "--count" in arguments:
        print(count_what(["lib", "app"]))
        return 0
    status = 0
    for path in tracked(arguments):
        for line, found, term in sorted(findings(path)):
            print(f'{path.relative_to(ROOT)}:{line}: "{found}": {term}')
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
