#!/usr/bin/env bash
# From a clean Debian 12 to a passed test suite.
#   scripts/test.sh                   everything
#   scripts/test.sh --fast            without the tests labelled slow
#   scripts/test.sh --preset PRESET   of another build than build/release, which the quickstart uses too
# Installs missing packages with apt (as root or with sudo) and says which; needs no network when
# nothing is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

selection=()
preset=release
while (($# > 0)); do
  case $1 in
    --fast) selection=(-LE slow) ;;
    --preset)
      (($# > 1)) || die "--preset needs a name; cmake --list-presets shows them"
      preset=$2
      shift
      ;;
    -h | --help)
      sed -n '2,7s/^# \{0,1\}//p' scripts/test.sh
      exit 0
      ;;
    *) die "unknown argument '$1'; there are --fast and --preset PRESET" ;;
  esac
  shift
done

install_missing "${test_packages[@]}"
configure_preset "$preset" -DHALFSTEP_TESTS=ON
build_preset "$preset"
ctest --test-dir "build/$preset" --output-on-failure --parallel "$(processors)" --timeout 900 \
  "${selection[@]}"
