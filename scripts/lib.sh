# shellcheck shell=bash
# Shared by the scripts: the Debian packages that halfstep needs, and their installation.
# Sourced from the root of the checkout.
# shellcheck disable=SC2034  # the lists are used by the scripts that source this file

# To build the program and to train on Fashion-MNIST.
build_packages=(
  g++ cmake ninja-build
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libdnnl-dev zlib1g-dev libpng-dev
  libjpeg-dev libxxhash-dev libre2-dev libcsv-dev
  libjs-chart.js dataset-fashion-mnist
)
# To build and run the tests.
test_packages=("${build_packages[@]}" doctest-dev python3-jsonschema python3-numpy jq)
# For the test of HTML reports in a browser, which is skipped without them.
browser_packages=(chromium chromium-driver python3-selenium)
# For the tests of runs of several ranks, which are skipped without them.
cluster_packages=(openmpi-bin mpich slurm-wlm munge libpmix-dev)
# To check style as well, to build with the second compiler and its libFuzzer (preset `fuzz`), and to compile
# a file once for all checkouts.
check_packages=(ccache clang-format-14 shellcheck python3 clang-19 clang-tidy-19 libclang-rt-19-dev)

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

# Processors this process may use.
processors() { nproc; }

# install_missing PACKAGE...: installs missing packages with apt, as root or through sudo. Uses
# neither the network nor apt when nothing is missing.
install_missing() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: make sure that these are installed: $*"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0

  local as_root=()
  if (($(id -u) != 0)); then
    command -v sudo >/dev/null ||
      die "missing packages, and neither root nor sudo to install them: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing with apt: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # A foreign package source that fails to update must not stop an install that does not need it.
  "${apt[@]}" update >&2 || say "warning: apt-get update failed; trying with the lists at hand"
  "${apt[@]}" install --no-install-recommends "${missing[@]}" >&2 ||
    die "apt could not install: ${missing[*]}"
}

# configure_preset PRESET [CMAKE ARGUMENT...]: configures build/PRESET, through ccache when it is
# there. Objects compiled in another checkout of the same sources are found again.
configure_preset() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  local log
  if ! log=$(cmake --preset "$preset" "${launcher[@]}" "$@" 2>&1); then
    say "$log"
    return 1
  fi
}

# has_target PRESET TARGET: whether build/PRESET, as configured on this machine, has the target.
has_target() { cmake --build "build/$1" --target help | grep -E "^$2(:|\$)" >/dev/null; }

# build_preset PRESET [TARGET...]: builds targets of build/PRESET, everything by default.
build_preset() {
  local preset=$1
  shift
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  cmake --build "build/$preset" --parallel "$(processors)" "${targets[@]}" >&2
}
