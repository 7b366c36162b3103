#!/usr/bin/env bash
# Style and structure.
#   scripts/check.sh              format, modules, headers, shell, prose
#   scripts/check.sh STEP...      some of: format modules headers shell prose counts tidy
#   scripts/check.sh tidy         clang-tidy, most recently changed files first, for at most
#                                 TIDY_SECONDS (default 1800); the rest is counted, not hidden
#   scripts/check.sh tidy FILE..  clang-tidy on these files
# Every step runs; the exit status is 1 when one of them found something.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/lib.sh

sources() { find lib app tests scripts \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) -type f | sort; }

# format: clang-format 14 with .clang-format, nothing to change.
check_format() {
  local tool=clang-format-14
  command -v $tool >/dev/null || tool=clang-format
  command -v $tool >/dev/null || {
    say "clang-format 14 is not installed (apt-get install clang-format-14)"
    return 1
  }
  sources | xargs -r -n 16 -P "$(processors)" $tool --dry-run -Werror --ferror-limit=1
}

# modules: who includes whom, who uses which library, tables, sizes.
check_modules() { python3 scripts/check_modules.py; }

# headers: each header of lib/ compiles alone, without warnings.
check_headers() {
  configure_preset ci &&
    cmake --build build/ci --parallel "$(processors)" --target check_headers -- -k 0
}

# prose: the wording of comments and Markdown.
check_prose() { python3 scripts/check_prose.py; }

# counts: sizes and duplicated facts, each held below its limit. Not among the default steps: most
# limits are today's values, which are to fall.
check_counts() { python3 scripts/check_counts.py; }

# shell: shellcheck on every script.
check_shell() {
  command -v shellcheck >/dev/null || {
    say "shellcheck is not installed (apt-get install shellcheck)"
    return 1
  }
  {
    find scripts tests -type f -name '*.sh'
    # Scripts without an ending are known by their first line.
    find scripts .ci -type f ! -name '*.*' -exec grep -lE '^#!.*\b(ba)?sh\b' {} +
  } | sort -u | xargs -r shellcheck -x
}

# The sources clang-tidy looks at, most recently changed first.
tidy_order() {
  {
    git diff --name-only HEAD
    git log --format= --name-only --diff-filter=AM -- lib app
    find lib app -name '*.cc'
  } 2>/dev/null | grep -E '^(lib|app)/.*\.cc$' | awk '!seen[$0]++' | while read -r file; do
    if [[ -e $file ]]; then echo "$file"; fi
  done
}

# tidy: the rules of .clang-tidy, as errors.
check_tidy() {
  command -v clang-tidy-19 >/dev/null || {
    say "clang-tidy 19 is not installed (apt-get install clang-tidy-19)"
    return 1
  }
  configure_preset debug || return 1
  local skipped
  skipped=$(mktemp)
  TIDY_END=$(($(date +%s) + ${TIDY_SECONDS:-1800})) TIDY_SKIPPED=$skipped
  export TIDY_END TIDY_SKIPPED
  # shellcheck disable=SC2016  # expanded by the inner shell
  { if (($# > 0)); then printf '%s\n' "$@"; else tidy_order; fi; } |
    xargs -r -n 1 -P "$(processors)" bash -c '
      # A file that this build does not compile has no flags to check it with.
      grep -qF "/$1\"" build/debug/compile_commands.json || exit 0
      (($(date +%s) < TIDY_END)) || { echo "$1" >>"$TIDY_SKIPPED"; exit 0; }
      clang-tidy-19 --quiet -p build/debug --extra-arg=-Wno-unknown-warning-option \
        --extra-arg=-Wno-deprecated-declarations "$1" 2>/dev/null' tidy
  local status=$?
  if [[ -s $skipped ]]; then say "clang-tidy: out of time, $(wc -l <"$skipped") files not looked at"; fi
  rm -f "$skipped"
  return $status
}

failed=()
run_step() {
  local step=$1 start=$SECONDS
  shift
  if "check_$step" "$@"; then
    say "check $step: ok ($((SECONDS - start)) s)"
  else
    say "check $step: FAILED ($((SECONDS - start)) s)"
    failed+=("$step")
  fi
}

if (($# == 0)); then set -- format modules headers shell prose; fi
while (($# > 0)); do
  step=$1
  shift
  case $step in
    format | modules | headers | shell | prose | counts) run_step "$step" ;;
    tidy)
      run_step tidy "$@"
      break
      ;;
    *) die "unknown step '$step'; steps: format modules headers shell prose counts tidy" ;;
  esac
done
if ((${#failed[@]} > 0)); then die "failed: ${failed[*]}"; fi
