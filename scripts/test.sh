#!/usr/bin/env bash
# From a clean Debian 12 to a passed test suite.
#   scripts/test.sh          everything
#   scripts/test.sh --fast   without the tests labelled slow
# Installs missing packages with apt (as root or with sudo) and says which; needs no network when
# nothing is missing. Builds the preset `ci` in build/ci.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

selection=()
for argument in "$@"; do
  case $argument in
    --fast) selection=(-LE slow) ;;
    -h | --help)
      sed -n '2,6s/^# \{0,1\}//p' scripts/test.sh
      exit 0
      ;;
    *) die "unknown argument '$argument'; the only option is --fast" ;;
  esac
done

install_missing "${build_packages[@]}"
configure_preset ci
build_preset ci
ctest --test-dir build/ci --output-on-failure --parallel "$(processors)" --timeout 900 \
  "${selection[@]}"
