#!/usr/bin/env bash
# Runs the README's commands in an empty Debian 12 root that contains only the tracked files of the
# checkout. Prints the time of each command.
#   scripts/fresh_install.sh               both commands, as an ordinary user with sudo
#   scripts/fresh_install.sh --root        both commands, as root, where sudo is not installed
#   scripts/fresh_install.sh --quickstart  quickstart.sh, then as --configure, as an ordinary user
#   scripts/fresh_install.sh --configure   packages and CMake's configuration alone, as root
#   scripts/fresh_install.sh --deb FILE    installs a package of scripts/package.sh, and trains
#   scripts/fresh_install.sh --inputs      prints a hash over the files that decide on packages and the build
# Fails where quickstart.sh prints something else than the README shows; numbers may differ.
# On 2 processors quickstart.sh may take 6 minutes, 8 with the CUDA toolkit, and test.sh 10; FRESH_LIMITS=off
# for a busy machine. Once both have passed as an ordinary user, scripts/fresh_install.proof holds the hash.
# Needs root, for chroot and mounts. The root is build/fresh and is removed at the end, unless
# KEEP_ROOT is set. DEBIAN_SUITE names another release than bookworm. Exits with 3 where no root can
# be made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

mode=user
case ${1:-} in
  "") ;;
  --root) mode=root ;;
  --quickstart) mode=quickstart ;;
  --configure) mode=configure ;;
  --inputs)
    # Of the scripts those alone that one of the commands runs.
    git ls-files -z CMakePresets.json '*CMakeLists.txt' '*.cmake' \
      scripts/{lib,quickstart,test,reference,fetch_datasets}.sh |
      xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
    exit 0
    ;;
  --deb)
    mode=deb
    package=${2:-}
    [[ -f $package ]] || die "--deb needs the package's file, of scripts/package.sh; there is no '$package'"
    ;;
  -h | --help)
    sed -n '2,15s/^# \{0,1\}//p' scripts/fresh_install.sh
    exit 0
    ;;
  *) die "unknown argument '$1'; see --help" ;;
esac
as_user=""
if [[ $mode == user || $mode == quickstart ]]; then as_user=1; fi
(($(id -u) == 0)) || die "chroot and mounts need root: sudo scripts/fresh_install.sh $*"
install_missing mmdebstrap python3

root=$PWD/build/fresh

# Mounts live in a namespace of their own, so that none is left behind, however this ends.
if [[ ${1:-} != "${FRESH_INSIDE:-}" || -z ${FRESH_NAMESPACE:-} ]]; then
  rm -rf "$root"
  mkdir -p "$root"
  trap '[[ -n ${KEEP_ROOT:-} ]] || rm -rf "$root"' EXIT
  include=ca-certificates
  [[ -z $as_user ]] || include+=,sudo
  say "== an empty Debian ${DEBIAN_SUITE:-bookworm} in $root"
  mmdebstrap --quiet --variant=minbase --include="$include" "${DEBIAN_SUITE:-bookworm}" "$root" || {
    say "error: Debian's mirror gave no ${DEBIAN_SUITE:-bookworm}"
    exit 3
  }
  FRESH_NAMESPACE=1 FRESH_INSIDE=${1:-} unshare --mount --propagation private \
    bash scripts/fresh_install.sh "$@"
  exit
fi

mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
home=/root
run=(chroot "$root" env -i "PATH=/usr/sbin:/usr/bin:/sbin:/bin" LANG=C.UTF-8 HOME=/root)
if [[ -n $as_user ]]; then
  home=/home/newcomer
  chroot "$root" useradd --create-home newcomer
  echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/newcomer"
  run=(chroot --userspec=newcomer:newcomer "$root"
    env -i "PATH=/usr/local/bin:/usr/bin:/bin" LANG=C.UTF-8 HOME=/home/newcomer)
fi
mkdir -p "$root$home/halfstep"
inputs=$(scripts/fresh_install.sh --inputs)
git ls-files -z | tar --null --files-from=- --create | tar --extract --directory "$root$home/halfstep"
[[ -z $as_user ]] || chroot "$root" chown -R newcomer: "$home/halfstep"

# inside COMMAND: runs a line in the checkout of the new root.
inside() { "${run[@]}" bash -euo pipefail -c "cd $home/halfstep && $1"; }

configure() {
  # shellcheck disable=SC2016  # the inner shell expands it
  inside '. scripts/lib.sh && install_missing "${build_packages[@]}" &&
    configure_preset release -DHALFSTEP_TESTS=OFF && install_missing "${test_packages[@]}" &&
    configure_preset release -DHALFSTEP_TESTS=ON'
  say "== packages install and CMake configures"
}
if [[ $mode == configure ]]; then
  configure
  exit
fi
if [[ $mode == deb ]]; then
  cp "$package" "$root/tmp/halfstep.deb"
  inside 'apt-get -q update && apt-get -q -y install --no-install-recommends /tmp/halfstep.deb && cd /tmp &&
    halfstep doctor && halfstep train /usr/share/halfstep/configs/quickstart.yaml --set data.name=synthetic_digits \
      --policy mixed_bfloat16 --epochs 1 --run-dir /tmp/run && halfstep report show /tmp/run && apt-get -q -y remove halfstep'
  say "== $package installs, trains and is removed again"
  exit
fi

# timed MINUTES COMMAND: runs it as `inside` does; MINUTES are those of two processors, more on one.
timed() {
  local start=$SECONDS limit=$(($1 * 120 / ($(processors) < 2 ? 1 : 2)))
  inside "$2"
  say "== $2: $((SECONDS - start)) s, of at most $limit s"
  [[ ${FRESH_LIMITS:-on} == off ]] || ((SECONDS - start <= limit)) || die "$2 takes too long"
}

timed "$(inside 'command -v nvcc' >/dev/null && echo 8 || echo 6)" scripts/quickstart.sh | tee "$root/quickstart.txt"
python3 -B tests/app/transcripts.py --quickstart "$root/quickstart.txt" README.md
if [[ $mode == quickstart ]]; then
  configure
  exit
fi
timed 10 scripts/test.sh
if [[ $mode == user && ${DEBIAN_SUITE:-bookworm} == bookworm ]]; then
  echo "$inputs" >scripts/fresh_install.proof
fi
