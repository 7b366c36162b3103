#!/usr/bin/env bash
# scripts/sysroot_aarch64.sh: unpacks the arm64 libraries that halfstep is built over into
# build/aarch64/sysroot, for the preset `aarch64`. Needs apt and dpkg-deb, no root, and changes nothing
# of the system. 25 MB to download, 135 MB unpacked; does nothing where these packages are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

sysroot=build/aarch64/sysroot
packages=(libstdc++-12-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev doctest-dev
  libdnnl-dev zlib1g-dev libpng-dev libjpeg-dev libxxhash-dev libre2-dev libcsv-dev)
# An older sysroot has other packages.
[[ $(cat "$sysroot/packages" 2>/dev/null) != "${packages[*]}" ]] || exit 0

# A package database of its own, in which nothing is installed yet.
state=$PWD/build/aarch64/apt
mkdir -p "$state"/{lists,archives}/partial
: >"$state/status"
options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none
  -o Acquire::Retries=3 -o Dir::State::status="$state/status" -o Dir::State::lists="$state/lists"
  -o Dir::State::extended_states="$state/extended_states" -o Dir::Cache="$state"
  -o Dir::Cache::archives="$state/archives" -o Debug::NoLocking=1)
if (($(id -u) == 0)); then options+=(-o APT::Sandbox::User=root); fi
apt-get "${options[@]}" update >&2 || say "warning: apt-get update failed; trying with what it got"
apt-get "${options[@]}" --yes --no-install-recommends --download-only install "${packages[@]}" >&2

rm -rf "$sysroot.part"
mkdir "$sysroot.part"
for package in "$state"/archives/*.deb; do dpkg-deb --extract "$package" "$sysroot.part"; done
echo "${packages[*]}" >"$sysroot.part/packages"
rm -rf "$sysroot"
mv "$sysroot.part" "$sysroot"
rm -r "$state"
