#!/usr/bin/env python3
"""Compares the sources with the rules of their modules: includes, libraries, contents and length of
a file, and that a table has an entry for every leaf file.

Prints one line per finding, `file:line: message`; exit status 1 when there is any.
`--list` prints the modules and the modules that each may include.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The modules that a module may include besides itself; their own dependencies are included.
MODULES = {
    "core": [],
    "config": ["core"],
    "graph": ["core"],
    "comm": ["core"],
    "passes": ["graph"],
    "precision": ["graph", "config"],
    "backend": ["graph", "comm"],
    "data": ["graph", "config"],
    "nn": ["passes", "precision", "graph", "config"],
    "plan": ["nn", "backend"],
    "train": ["plan", "data"],
    "analysis": ["train"],
    "report": ["analysis"],
    "study": ["report"],
    "app": ["study"],
}

# A folder that the rest of its own module must not include: its table is passed as an argument.
SEALED = {"graph": "graph/ops/"}

# First part of an include of a library -> the path prefixes that may use it.
LIBRARIES = {
    "yaml-cpp/": ["lib/config/"],
    "CLI/": ["app/"],
    "nlohmann/": ["lib/core/field_ref", "lib/core/json_", "lib/report/", "lib/study/", "lib/train/checkpoint", "lib/train/progress", "lib/train/ranks",
                  "lib/data/", "lib/config/schema", "lib/precision/graph_report.cc"],
    "dnnl": ["lib/backend/cpu/onednn/"],
    "oneapi/": ["lib/backend/cpu/onednn/"],
    "cublasLt.h": ["lib/backend/cuda/vendor/real/"],
    "cudnn": ["lib/backend/cuda/vendor/real/"],
    "cuda_runtime": ["lib/backend/cuda/vendor/real/", "lib/backend/cuda/kernels/shim/"],
    "zlib.h": ["lib/data/"],
    "xxhash.h": ["lib/core/hash.cc"],
    "re2/": ["lib/core/pattern.cc"],
    # It recurses over the text and can take exponential time: core/pattern.h does neither.
    "regex": [],
    "fmt/": ["lib/", "app/"],
    # Intrinsics live where the build sets the flags for them.
    "immintrin.h": ["lib/backend/cpu/"],
    "x86intrin.h": ["lib/backend/cpu/"],
    "cpuid.h": ["lib/backend/cpu/", "lib/core/"],
    "iostream": ["app/"],
}

# Folder of one file per thing -> the file that names each of them, or a file that does.
TABLES = {
    "lib/nn/layers": "lib/nn/layers/table.cc",
    "lib/nn/losses": "lib/nn/losses/table.cc",
    "lib/nn/optim": "lib/nn/optim/table.cc",
    "lib/graph/ops": "lib/graph/ops/table.cc",
    "lib/report/export": "lib/report/export/table.cc",
    "lib/backend/cpu/reference": "lib/backend/cpu/reference/table.cc",
    "lib/backend/cpu/onednn": "lib/backend/cpu/onednn/onednn.cc",
}

# Files of those folders without a table entry: a header elsewhere declares their functions.
NO_ROWS = ["lib/backend/cpu/onednn/threads.cc", "lib/backend/cpu/onednn/threads_gomp.cc",
           "lib/backend/cpu/onednn/threads_openmp.cc", "lib/backend/cpu/onednn/openmp_imports.cc",
           "lib/backend/cpu/onednn/api_v2.cc", "lib/backend/cpu/onednn/api_v3.cc"]

# The file that tells the device's compiler from the processor's, and those with instructions of a
# processor: for its floating-point control register, and its hint for spin loops.
DIRECTIVES_ALLOWED = [
    "lib/backend/cuda/kernels/shim/compat.h",
    "lib/core/subnormals.cc",
    "lib/core/thread_pool.cc",
]

HEADER_LINES = 180
SOURCE_LINES = 450

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
DIRECTIVE = re.compile(r"^\s*#\s*(if|ifdef|ifndef|define)\b")
USING_NAMESPACE = re.compile(r"\busing\s+namespace\s+(?!std::\w*literals\b)")
ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|environ|setenv|putenv)\b")
DEFINITION = re.compile(r"^(?:extern |constinit |constexpr |const )+[\w:<>]+ (\w+)\s*[{=]", re.M)

findings = []


def report(path, line, message):
    findings.append(f"{path.relative_to(ROOT)}:{line}: {message}")


def reachable(module):
    """The modules that `module` may include: itself and its transitive dependencies."""
    seen = {module}
    waiting = [module]
    while waiting:
        for below in MODULES[waiting.pop()]:
            if below not in seen:
                seen.add(below)
                waiting.append(below)
    return seen


def without_comments_and_strings(text):
    """The code alone; line numbers are unchanged."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
        text = match.group(0)
        return "\n" * text.count("\n") if text.startswith("/") else '""'

    return pattern.sub(blank, text)


def check_include(path, line, module, quote, target):
    where = str(path.relative_to(ROOT))
    for prefix, places in LIBRARIES.items():
        if target.startswith(prefix) and not any(where.startswith(p) for p in places):
            report(path, line, f"<{target}> may be included only in {', '.join(places) or 'no file'}")
    # core/json_fields.h is how the JSON-writing code gets its type.
    if path.suffix == ".h" and target == "nlohmann/json.hpp" and where != "lib/core/json_fields.h":
        report(path, line, "a header takes <nlohmann/json_fwd.hpp>")
    if quote == "<":
        if (ROOT / "lib" / target).is_file():
            report(path, line, f'<{target}> is our own: write "{target}"')
        return
    if module == "app" and (ROOT / "app" / target).is_file():
        return
    if not (ROOT / "lib" / target).is_file():
        report(path, line, f'"{target}" is not a file of lib/ (includes are written from lib/)')
        return
    other = target.split("/")[0]
    if other not in reachable(module):
        report(path, line, f'{module} may not include {other} ("{target}")')
    sealed = SEALED.get(module)
    if sealed and target.startswith(sealed) and not where.startswith("lib/" + sealed):
        report(path, line, f'{module} may not include {sealed} ("{target}")')


def check_file(path, module):
    text = path.read_text()
    lines = text.splitlines()
    code = without_comments_and_strings(text).splitlines()
    header = path.suffix == ".h"

    limit = HEADER_LINES if header else SOURCE_LINES
    if len(lines) > limit:
        report(path, limit, f"{len(lines)} lines; a {'header' if header else 'source'} has at most"
               f" {limit}")
    if header and (not lines or lines[0].strip() != "#pragma once"):
        report(path, 1, "a header begins with #pragma once")

    includes = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            includes.append(match.group(2))
            check_include(path, number, module, *match.groups())
    own = path.with_suffix(".h")
    base = ROOT / ("app" if module == "app" else "lib")
    if not header and own.is_file() and (not includes or base / includes[0] != own):
        report(path, 1, f"the first include is the file's own header {own.name}")

    for number, line in enumerate(code, 1):
        if USING_NAMESPACE.search(line):
            report(path, number, "using namespace")
        if DIRECTIVE.match(line) and str(path.relative_to(ROOT)) not in DIRECTIVES_ALLOWED:
            report(path, number, "no macros and no conditional compilation: let the build choose")
        if module != "app" and ENVIRONMENT.search(line):
            report(path, number, "only app/ reads the environment")
        if module != "app" and re.search(r"\bstd::(cout|cerr)\b|\bprintf\s*\(|\bputs\s*\(", line):
            report(path, number, "only app/ and core/log write to the terminal")


def check_tables():
    for folder, table in TABLES.items():
        table_path = ROOT / table
        leaves = sorted((ROOT / folder).glob("*.cc"))
        if not leaves or not table_path.is_file():
            continue
        # A file with a header of its own is a helper, used by that name.
        code = {leaf: without_comments_and_strings(leaf.read_text()) for leaf in leaves}
        unnamed = [leaf for leaf in leaves
                   if leaf != table_path and not leaf.with_suffix(".h").is_file()
                   and str(leaf.relative_to(ROOT)) not in NO_ROWS]
        words = set(re.findall(r"\w+", without_comments_and_strings(table_path.read_text())))
        while True:
            named = [leaf for leaf in unnamed
                     if words & set(DEFINITION.findall(code[leaf]))
                     or any(leaf.stem in word for word in words)]
            if not named:
                break
            for leaf in named:
                unnamed.remove(leaf)
                words.update(re.findall(r"\w+", code[leaf]))
        for leaf in unnamed:
            report(leaf, 1, f"no row of {table} names anything of this file")


def main():
    if "--list" in sys.argv[1:]:
        for module in MODULES:
            print(f"{module}: {' '.join(sorted(reachable(module) - {module})) or '-'}")
        return 0
    for folder in ("lib", "app"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu"):
                continue
            module = "app" if folder == "app" else path.relative_to(ROOT / "lib").parts[0]
            if module not in MODULES:
                report(path, 1, f"lib/{module} is not in the module table of scripts/check_modules.py")
                continue
            check_file(path, module)
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix in (".h", ".cc"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if USING_NAMESPACE.match(line.lstrip()):
                    report(path, number, "using namespace")
    check_tables()
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
