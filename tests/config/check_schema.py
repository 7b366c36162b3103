#!/usr/bin/env python3
"""Checks the JSON Schema of configs with an independent validator.

usage: check_schema.py SCHEMA CONFIG...      every config must be valid
       check_schema.py SCHEMA --bad CONFIG... none may be valid

SCHEMA is what `halfstep config schema` prints. Needs python3-jsonschema and python3-yaml.
"""

import sys

import jsonschema
import yaml


def load(path):
    """A config as an editor's YAML library sees it: its own guess of every scalar's type."""
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def main(arguments):
    with open(arguments[0], encoding="utf-8") as file:
        schema = yaml.safe_load(file)  # JSON is YAML
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    bad = "--bad" in arguments
    failures = 0
    for path in [a for a in arguments[1:] if a != "--bad"]:
        errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(load(path))]
        if bool(errors) != bad:
            failures += 1
            print(f"{path}: {errors if errors else 'is valid'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
