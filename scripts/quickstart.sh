#!/usr/bin/env bash
# From a clean Debian 12 to a finished comparison of three precisions on Fashion-MNIST.
#   scripts/quickstart.sh
# Installs missing packages with apt (as root or with sudo) and says which, builds the preset
# `release`, trains configs/quickstart.yaml under three policies and prints what 16 bits cost and
# gained. Run again, it builds nothing and takes less than two minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

install_missing "${build_packages[@]}"
configure_preset release -DHALFSTEP_TESTS=OFF
build_preset release

halfstep=build/release/bin/halfstep
"$halfstep" doctor
say ""
run=runs/quickstart/compare-$(date -u +%Y%m%dT%H%M%SZ)
"$halfstep" compare configs/quickstart.yaml \
  --policies float32,mixed_bfloat16,mixed_float16 --seeds 3 --run-dir "$run"
"$halfstep" report export "$run" --format html --output "$run/report.html"
say "as a page: $run/report.html"
