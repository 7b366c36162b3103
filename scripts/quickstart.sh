#!/usr/bin/env bash
# From a clean Debian 12 to a finished comparison of three precisions on Fashion-MNIST.
#   scripts/quickstart.sh
# Installs missing packages with apt (as root or with sudo) and names them, builds the program in
# build/release (with the CUDA plugin where there are a GPU and a toolkit), trains
# configs/quickstart.yaml under three policies and prints the costs and gains of 16 bits. A second
# run builds nothing and takes less than two minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

install_missing "${build_packages[@]}"
# The tests may have been configured in this tree before: they stay.
if [[ -f build/release/CMakeCache.txt ]]; then configure_preset release; else configure_preset release -DHALFSTEP_TESTS=OFF; fi
targets=(halfstep)
if [[ -e /dev/nvidiactl ]] && has_target release halfstep_cuda; then targets+=(halfstep_cuda); fi
build_preset release "${targets[@]}"

halfstep=build/release/bin/halfstep
"$halfstep" doctor
say ""
run=runs/quickstart/compare-$(date -u +%Y%m%dT%H%M%SZ)
"$halfstep" compare configs/quickstart.yaml \
  --policies float32,mixed_bfloat16,mixed_float16 --seeds 3 --run-dir "$run"
say ""
say "what runs in 16 bits under mixed_bfloat16 ($halfstep explain configs/quickstart.yaml --policy mixed_bfloat16 shows each op):"
"$halfstep" explain configs/quickstart.yaml --policy mixed_bfloat16 | grep -E '^(backward|casts|in 16 bits) '
"$halfstep" report export "$run" --format html --output "$run/report.html"
say "as a page: $run/report.html"
