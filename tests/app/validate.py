#!/usr/bin/env python3
"""Checks reports with an independent validator.

usage: validate.py SCHEMA REPORT...   every report must be valid

SCHEMA is the output of `halfstep report schema`. Exits with 77 if python3-jsonschema is missing.
"""

import json
import sys


def no_constants(word):
    raise ValueError(f"{word} is not JSON")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=no_constants)


def main(arguments):
    try:
        import jsonschema
    except ImportError:
        return 77
    schema = load(arguments[0])
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = 0
    for path in arguments[1:]:
        for error in validator.iter_errors(load(path)):
            failures += 1
            print(f"{path}: {'/'.join(map(str, error.path))}: {error.message}"[:500])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
