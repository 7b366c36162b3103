#!/usr/bin/env bash
# Generates the reference pages docs/TOPIC.md from the output of `halfstep help TOPIC`, and
# docs/configs.md from the comments at the top of the shipped configs.
#   scripts/reference.sh [PROGRAM]           writes the pages
#   scripts/reference.sh --check [PROGRAM]   exit status 1 when a page is not up to date
# PROGRAM defaults to build/release/bin/halfstep, else build/ci/bin/halfstep.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/lib.sh

check=false
if [[ ${1-} == --check ]]; then
  check=true
  shift
fi
program=${1-}
for built in build/release/bin/halfstep build/ci/bin/halfstep; do
  if [[ -z $program && -x $built ]]; then program=$built; fi
done
[[ -n $program ]] || die "no program: build one, or name it"

# The comment at the top of a config: its first paragraph as one line, with commands as code.
description() {
  # shellcheck disable=SC2016  # Markdown's quotes of code
  sed -n '/^#/!q; /^#$/q; s/|/\\|/g; s/^#   *\([a-z].*\)/`\1`/; s/^# //; p' "$1" | tr '\n' ' ' |
    sed 's/ *$//'
}

configs_page() {
  printf '# Shipped configs\n\n%s\n\n%s\n\n| config | about |\n|---|---|\n' \
    "Written by \`scripts/reference.sh\` from the comments at the top of \`configs/*.yaml\`; do not edit by hand." \
    "Each trains with \`halfstep train CONFIG\`. Batch scripts for Slurm are in \`configs/slurm/\`."
  local config
  for config in configs/*.yaml; do
    printf '| [%s](../%s) | %s |\n' "${config#configs/}" "$config" "$(description "$config")"
  done
}

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
stale=()
topics=$("$program" help | sed -n '/^Topics:/,/^$/s/^  \([a-z_]*\) .*/\1/p')
[[ -n $topics ]] || die "$program help lists no topics"
for topic in $topics configs; do
  if [[ $topic == configs ]]; then
    configs_page >"$fresh/$topic.md"
  else
    "$program" help "$topic" --markdown >"$fresh/$topic.md"
  fi
  if ! cmp -s "$fresh/$topic.md" "docs/$topic.md"; then stale+=("docs/$topic.md"); fi
  if ! $check; then cp "$fresh/$topic.md" "docs/$topic.md"; fi
done
if ! $check; then
  say "written: ${stale[*]:-nothing new}"
elif ((${#stale[@]} > 0)); then
  for page in "${stale[@]}"; do
    diff -u --label "$page" --label "written anew" "$page" "$fresh/${page#docs/}" | head -n 20 || true
  done
  die "stale: ${stale[*]}; scripts/reference.sh $program writes them"
fi
