#!/usr/bin/env bash
# Makes a Debian package of the program and checks it with lintian, whose errors stop it.
#   scripts/package.sh       build/package/halfstep_VERSION-1_ARCHITECTURE.deb
# Installs missing packages with apt (as root or with sudo) and says which. The package depends on the
# libraries of the release that it is made on. Install it with `apt-get install ./FILE.deb`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

install_missing "${build_packages[@]}" dpkg-dev file lintian
configure_preset package
build_preset package halfstep
rm -f build/package/*.deb
(umask 022 && cd build/package && cpack -G DEB >/dev/null) || die "cpack failed; see build/package/_CPack_Packages"
file=$(echo build/package/halfstep_*.deb)
# A maintainer's address at a host that exists is to be set with -DHALFSTEP_CONTACT by who publishes it.
lintian --no-cfg --allow-root --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
  --fail-on error "$file"
echo "$file"
