#!/usr/bin/env python3
"""Writes a table that comes with scikit-learn as a CSV file for `format: csv`.

    scripts/sklearn_table.py breast_cancer             datasets/breast_cancer.csv
    scripts/sklearn_table.py diabetes -o table.csv

Needs scikit-learn (apt-get install python3-sklearn), and no network. The column with the labels is called
`target`; it has the names of the classes, or numbers.
"""

import argparse
import csv
import pathlib
import sys

TABLES = ("breast_cancer", "diabetes", "iris", "wine")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="file that is written")
    arguments = parser.parse_args()
    try:
        from sklearn import datasets
    except ImportError:
        sys.exit("error: scikit-learn is not installed: apt-get install python3-sklearn")
    table = getattr(datasets, f"load_{arguments.table}")()
    names = getattr(table, "target_names", None)
    path = arguments.output or pathlib.Path(__file__).parents[1] / "datasets" / f"{arguments.table}.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*table.feature_names, "target"])
        for row, label in zip(table.data, table.target):
            writer.writerow([*(repr(float(x)) for x in row), label if names is None else names[label]])
    print(f"{path}: {len(table.data)} rows, {len(table.feature_names)} columns and the target")


if __name__ == "__main__":
    main()
