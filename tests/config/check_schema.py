#!/usr/bin/env python3
"""Checks the JSON Schema of configs with an independent validator.

usage: check_schema.py PROGRAM CONFIG... [--bad CONFIG...]

Those before --bad must be valid by the output of `PROGRAM config schema`, those after it must not.
Needs python3-jsonschema and python3-yaml.
"""

import json
import subprocess
import sys

import jsonschema
import yaml


def load(path):
    """A config as an editor's YAML library sees it: its own guess of every scalar's type."""
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def main(program, configs):
    printed = subprocess.run([program, "config", "schema"], check=True, capture_output=True)
    schema = json.loads(printed.stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = 0
    bad = False
    for path in configs:
        if path == "--bad":
            bad = True
            continue
        errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(load(path))]
        if bool(errors) != bad:
            failures += 1
            print(f"{path}: {errors if errors else 'is valid'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
