#!/usr/bin/env bash
# Downloads data sets into a folder where halfstep finds them, and compares checksums.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/fetch_datasets.sh [--dir DIR] [--mirror URL] [--verify] NAME...

  NAME          mnist fashion_mnist kmnist emnist_digits cifar10 cifar100, or all
  --dir DIR     where the sets go, each in a folder of its name
                (default: $HALFSTEP_DATA, else datasets/ of this checkout)
  --mirror URL  download URL/<file> instead of asking the public mirrors
  --verify      download nothing; only compare what is there
  --help        this text

Files that are there and right are left alone; a download that was cut off is
taken up where it ended. Exit status: 0 all there, 1 something is missing or
wrong, 2 wrong use.
TEXT
}

# Exit codes of curl (22 33 36) and wget (8) when the server refuses, as for a range it cannot give.
readonly k_refused="8 22 33 36"
readonly k_sets="mnist fashion_mnist kmnist emnist_digits cifar10 cifar100"

# One line per file: set, file, how its checksum is meant, sha256, mirrors.
#   content: of the file without gzip, since mirrors compress differently
#   file:    of the file as downloaded
# A file that ends in .tar.gz or .zip is unpacked and then removed.
table() {
  cat <<'TEXT'
mnist train-images-idx3-ubyte.gz content ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db https://storage.googleapis.com/cvdf-datasets/mnist https://ossci-datasets.s3.amazonaws.com/mnist
mnist train-labels-idx1-ubyte.gz content 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 https://storage.googleapis.com/cvdf-datasets/mnist https://ossci-datasets.s3.amazonaws.com/mnist
mnist t10k-images-idx3-ubyte.gz content 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 https://storage.googleapis.com/cvdf-datasets/mnist https://ossci-datasets.s3.amazonaws.com/mnist
mnist t10k-labels-idx1-ubyte.gz content ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 https://storage.googleapis.com/cvdf-datasets/mnist https://ossci-datasets.s3.amazonaws.com/mnist
fashion_mnist train-images-idx3-ubyte.gz content c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888 http://fashion-mnist.s3-website.eu-central-1.amazonaws.com https://storage.googleapis.com/tensorflow/tf-keras-datasets
fashion_mnist train-labels-idx1-ubyte.gz content bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9 http://fashion-mnist.s3-website.eu-central-1.amazonaws.com https://storage.googleapis.com/tensorflow/tf-keras-datasets
fashion_mnist t10k-images-idx3-ubyte.gz content 5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b http://fashion-mnist.s3-website.eu-central-1.amazonaws.com https://storage.googleapis.com/tensorflow/tf-keras-datasets
fashion_mnist t10k-labels-idx1-ubyte.gz content 0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34 http://fashion-mnist.s3-website.eu-central-1.amazonaws.com https://storage.googleapis.com/tensorflow/tf-keras-datasets
kmnist train-images-idx3-ubyte.gz file 51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4 http://codh.rois.ac.jp/kmnist/dataset/kmnist
kmnist train-labels-idx1-ubyte.gz file e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17 http://codh.rois.ac.jp/kmnist/dataset/kmnist
kmnist t10k-images-idx3-ubyte.gz file edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5 http://codh.rois.ac.jp/kmnist/dataset/kmnist
kmnist t10k-labels-idx1-ubyte.gz file 20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c http://codh.rois.ac.jp/kmnist/dataset/kmnist
emnist_digits gzip.zip file fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e https://biometrics.nist.gov/cs_links/EMNIST https://www.itl.nist.gov/iaui/vip/cs_links/EMNIST
cifar10 cifar-10-binary.tar.gz file c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd https://www.cs.toronto.edu/~kriz
cifar100 cifar-100-binary.tar.gz file 58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec https://www.cs.toronto.edu/~kriz
TEXT
}

# The files that an archive unpacks to, relative to the folder of the set; empty for plain files.
unpacked() {
  case "$1" in
    cifar-10-binary.tar.gz)
      echo cifar-10-batches-bin/{data_batch_{1,2,3,4,5},test_batch}.bin ;;
    cifar-100-binary.tar.gz)
      echo cifar-100-binary/{train,test}.bin ;;
    gzip.zip)
      echo emnist-digits-{train,test}-{images-idx3,labels-idx1}-ubyte.gz ;;
  esac
}

say() { printf '%s\n' "$*" >&2; }

fail() {
  say "fetch_datasets.sh: $1"
  exit "${2:-1}"
}

sha256_of() {
  local path="$1" kind="$2"
  if [[ "$kind" == content ]]; then
    gzip -dc -- "$path" 2>/dev/null | sha256sum | cut -d' ' -f1
  else
    sha256sum <"$path" | cut -d' ' -f1
  fi
}

is_good() {
  local path="$1" kind="$2" want="$3"
  [[ -f "$path" ]] && [[ "$(sha256_of "$path" "$kind")" == "$want" ]]
}

# Downloads url to path, going on where an earlier attempt ended.
download() {
  local url="$1" path="$2"
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 2 --connect-timeout 20 \
      --continue-at - --output "$path" -- "$url"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=3 --connect-timeout=20 --continue --output-document="$path" -- "$url"
  else
    fail "neither curl nor wget is installed (apt-get install curl)"
  fi
}

# Downloads one file into the folder from the first mirror that has it. A partial download is
# continued, unless that fails.
fetch_file() {
  local folder="$1" file="$2" kind="$3" want="$4"
  shift 4
  local partial="$folder/$file.partial" url resumed status
  # Only a file of our own is gone on with; nothing is written through a link.
  if [[ -L "$partial" ]]; then rm -f -- "$partial"; fi
  for url in "$@"; do
    say "  $file from $url"
    while true; do
      resumed=0
      if [[ -s "$partial" ]]; then resumed=1; fi
      status=0
      download "$url/$file" "$partial" || status=$?
      if [[ "$status" == 0 ]]; then
        if is_good "$partial" "$kind" "$want"; then
          mv -f -- "$partial" "$folder/$file"
          return 0
        fi
        rm -f -- "$partial"
        # A leftover of another version may be to blame: once more from the start.
        if [[ "$resumed" == 1 ]]; then continue; fi
        say "  $url/$file is not the published file (its sha256 differs)"
      elif [[ "$resumed" == 1 && " $k_refused " == *" $status "* ]]; then
        rm -f -- "$partial"
        continue
      fi
      break
    done
  done
  return 1
}

# Unpacks an archive and removes it; stores the checksums of its contents.
unpack() {
  local folder="$1" file="$2" member
  local -a members
  read -r -a members <<<"$(unpacked "$file")"
  case "$file" in
    *.tar.gz)
      tar -xzf "$folder/$file" -C "$folder" -- "${members[@]}" || return 1
      ;;
    *.zip)
      command -v unzip >/dev/null || fail "unzip is not installed (apt-get install unzip)"
      for member in "${members[@]}"; do
        rm -f -- "$folder/$member.partial"
        unzip -p "$folder/$file" "gzip/$member" >"$folder/$member.partial" || return 1
        mv -f -- "$folder/$member.partial" "$folder/$member" || return 1
      done
      ;;
  esac
  rm -f -- "$folder/SHA256SUMS.partial"
  (cd "$folder" && sha256sum -- "${members[@]}") >"$folder/SHA256SUMS.partial" || return 1
  mv -f -- "$folder/SHA256SUMS.partial" "$folder/SHA256SUMS" || return 1
  rm -f -- "$folder/$file"
}

# True when the file, or the files that it unpacks to, exist and match.
is_there() {
  local folder="$1" file="$2" kind="$3" want="$4"
  if [[ -n "$(unpacked "$file")" ]]; then
    [[ -f "$folder/SHA256SUMS" ]] && (cd "$folder" && sha256sum --quiet -c SHA256SUMS) &>/dev/null
  else
    is_good "$folder/$file" "$kind" "$want"
  fi
}

fetch_set() {
  local name="$1" folder="$2/$1" ok=0
  say "$name: $folder"
  local set file kind want rest
  local -a mirrors
  while read -r set file kind want rest; do
    [[ "$set" == "$name" ]] || continue
    if is_there "$folder" "$file" "$kind" "$want"; then
      say "  $file is there"
      continue
    fi
    if [[ "$verify" == 1 ]]; then
      if [[ -n "$(unpacked "$file")" ]]; then
        say "  what $file unpacks to is missing or damaged"
      elif [[ -e "$folder/$file" ]]; then
        say "  $file is damaged or not the published file"
      else
        say "  $file is missing"
      fi
      ok=1
      continue
    fi
    mkdir -p -- "$folder" || fail "cannot create $folder"
    read -r -a mirrors <<<"$rest"
    if [[ -n "$mirror" ]]; then mirrors=("$mirror"); fi
    if ! is_good "$folder/$file" "$kind" "$want" &&
      ! fetch_file "$folder" "$file" "$kind" "$want" "${mirrors[@]}"; then
      say "  $file could not be had; is this machine offline?"
      if [[ "$name" == fashion_mnist ]]; then
        say "  (apt-get install dataset-fashion-mnist has the same files)"
      fi
      return 1
    fi
    if [[ -n "$(unpacked "$file")" ]] && ! unpack "$folder" "$file"; then
      say "  $file could not be unpacked"
      return 1
    fi
  done < <(table)
  return "$ok"
}

main() {
  local dir="${HALFSTEP_DATA:-}" name status=0
  local -a names=()
  mirror=""
  verify=0
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --dir | --mirror)
        [[ $# -ge 2 ]] || fail "$1 needs a value" 2
        if [[ "$1" == --dir ]]; then dir="$2"; else mirror="${2%/}"; fi
        shift
        ;;
      --dir=*) dir="${1#*=}" ;;
      --mirror=*) mirror="${1#*=}" && mirror="${mirror%/}" ;;
      --verify) verify=1 ;;
      --help | -h)
        usage
        exit 0
        ;;
      -*) fail "unknown option $1 (see --help)" 2 ;;
      all) read -r -a names <<<"$k_sets" ;;
      *)
        [[ " $k_sets " == *" $1 "* ]] || fail "unknown data set '$1'; known are: $k_sets" 2
        names+=("$1")
        ;;
    esac
    shift
  done
  if [[ ${#names[@]} -eq 0 ]]; then
    usage >&2
    exit 2
  fi
  if [[ -z "$dir" ]]; then
    dir="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)/datasets"
  fi
  for name in "${names[@]}"; do
    fetch_set "$name" "$dir" || status=1
  done
  exit "$status"
}

main "$@"
