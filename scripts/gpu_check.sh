#!/usr/bin/env bash
# Everything that only a GPU can prove, in calls of a few minutes:
#   scripts/gpu_check.sh OUT quick    2 minutes: libraries, answers to the questions that decide on kernels
#   scripts/gpu_check.sh OUT first    4 minutes: the same, then every kernel against the reference
#   scripts/gpu_check.sh OUT speed   10 minutes: training against the CPU's, times beside PyTorch's
#   scripts/gpu_check.sh OUT deep     5 minutes: sanitizers on the own kernels, profiles of the slowest
#   scripts/gpu_check.sh OUT ranks    3 minutes: two ranks on two GPUs; with one GPU, says so
#   scripts/gpu_check.sh OUT STAGE... some of their stages: facts questions kernels parity scaling bench
#                                     profile torch memcheck racecheck initcheck ncu
#   scripts/gpu_check.sh --emulated OUT [CALL]   the stages that need no GPU, over the emulated device
# Runs from a bundle (scripts/bundle.sh) or from a build in build/ci. Each stage has its own time limit;
# those of a call sum to less than the call's. A call ends at once where the device or a library is missing,
# and `first` where a kernel is wrong. OUT gets results.jsonl (a line per check), a log per stage,
# properties.json (the GPU's properties for cuDNN), step times and tables; OUT.tar.gz holds all of it, whatever
# ends the call. The last lines are a summary and "N passed, N failed"; exit status 1 when anything failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
die() {
  say "error: $*" >&2
  exit 2
}

# Seconds of each stage and call; a stage that does not end gets 5 more.
declare -A limit=([facts]=20 [questions]=80 [kernels]=100 [parity]=120 [scaling]=25 [ranks]=140 [bench]=230 [profile]=20
  [torch]=140 [memcheck]=90 [racecheck]=90 [initcheck]=40 [ncu]=50)
declare -A call_limit=([quick]=120 [first]=240 [speed]=600 [deep]=300)
declare -A call=([quick]="facts questions" [first]="facts questions kernels"
  [speed]="facts parity scaling bench profile torch" [deep]="memcheck racecheck initcheck ncu")
for name in "${!call[@]}"; do
  seconds=0
  for stage in ${call[$name]}; do ((seconds += limit[$stage] + 5)); done
  ((seconds <= call_limit[$name])) || die "the stages of $name may take $seconds s of its ${call_limit[$name]}"
done

# Stages after which the others cannot be trusted.
gates=" facts kernels "
emulated_stages=(facts questions kernels parity scaling bench profile ranks)

programs() {
  if [[ -x $root/bin/halfstep ]]; then
    bin=$root/bin
    plugins=$root/libexec
  else
    bin=$root/build/ci/bin
    plugins=$bin
  fi
  halfstep=$bin/halfstep
  device_tests=$bin/test_cuda_$([[ -n $emulated ]] && echo device || echo gpu)
  [[ -x $halfstep ]] || die "no program at $halfstep: unpack a bundle, or build the preset ci"
}

# The folders of NVIDIA's libraries in Python wheels, for machines without a toolkit.
wheel_folders() {
  python3 - 2>/dev/null <<'PYTHON'
import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
folders = [f for base in (spec.submodule_search_locations if spec else [])
           for f in glob.glob(os.path.join(base, "*", "lib"))]
print(":".join(sorted(folders)))
PYTHON
}

# One check's result: as a line of JSON, and on the terminal.
result() {
  local ok=$1 name=$2 detail=$3 escaped
  escaped=$(printf '%s' "$detail" | tr '\n\t' '  ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')
  printf '{"stage": "%s", "check": "%s", "ok": %s, "detail": "%s"}\n' \
    "$stage" "$name" "$ok" "$escaped" >>"$out/results.jsonl"
  if [[ $ok == true ]]; then say "ok   $stage/$name"; else say "FAIL $stage/$name: ${detail:0:300}"; fi
}

# check NAME COMMAND...: passes when the command does; its output goes to the stage's log.
check() {
  local name=$1 text status=0
  shift
  text=$("$@" 2>&1) || status=$?
  printf '== %s\n%s\n' "$name" "$text" >>"$log"
  if ((status == 0)); then
    result true "$name" "$(tail -n 1 <<<"$text")"
  else
    result false "$name" "status $status: $(tail -n 5 <<<"$text")"
  fi
}

# checks COMMAND...: a result per line "ok NAME: ..." or "FAIL NAME: ..." that the command prints.
checks() {
  local line any=""
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    case $line in
      "ok "*) any=1 line=${line#ok } && result true "${line%%: *}" "${line#*: }" ;;
      "FAIL "*) any=1 line=${line#FAIL } && result false "${line%%: *}" "${line#*: }" ;;
    esac
  done < <("$@" 2>&1)
  if [[ -z $any ]]; then result false "$(basename "$2")" "printed no result: $(tail -n 3 "$log")"; fi
}

stage_facts() {
  if [[ -z $emulated ]]; then
    check nvidia-smi nvidia-smi
    nvidia-smi -q >"$out/nvidia-smi.txt" 2>&1
    check libraries bash -c "ldd '$plugins/libhalfstep_cuda.so' | tee /dev/stderr | { ! grep 'not found'; }"
  fi
  check doctor "$halfstep" doctor --device cuda
  check glibc bash -c 'ldd --version | head -n 1'
  if [[ -n $emulated ]]; then return; fi
  check properties bash -c "'$device_tests' --properties | tee '$out/properties.json' | grep deviceVer"
}

# Which algorithms, epilogues and arithmetic the libraries have here, and times of nodes and matmuls.
stage_questions() { checks "$device_tests" -nc -ns -tc='questions*'; }

stage_kernels() {
  # Without a GPU the tests end well and say so; here that is a failure.
  check device bash -c "'$device_tests' -nc -s=false | tee /dev/stderr | grep -q SUCCESS"
}

stage_parity() {
  checks python3 "$root/scripts/gpu/parity.py" "$halfstep" parity ${emulated:+--quick}
}

stage_scaling() { checks python3 "$root/scripts/gpu/parity.py" "$halfstep" scaling; }

stage_ranks() {
  local gpus=2
  if [[ -z $emulated ]]; then gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU'); fi
  if ((gpus < 2)); then
    result true skipped "two ranks need two GPUs, there are $gpus"
  elif ! command -v mpirun >/dev/null; then
    result true skipped "there is no mpirun to start two ranks with"
  else
    checks python3 "$root/scripts/gpu/ranks.py" "$halfstep"
  fi
}

# sanitize TOOL TESTS FLAG...: compute-sanitizer on own kernels.
sanitize() {
  local tool=$1 tests=$2 sanitizer
  shift 2
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  check "$tool" "$sanitizer" --tool "$tool" --error-exitcode 9 "$@" "$device_tests" -nc -ns -tc="$tests"
}

# A test allocates more than there is on purpose, which is no error of the API's use.
stage_memcheck() { sanitize memcheck 'sanitized*,gather_batch*,device memory*' --report-api-errors no; }
stage_racecheck() { sanitize racecheck 'sanitized*'; }
stage_initcheck() { sanitize initcheck 'gather_batch*,sanitized*'; }

# own_time CONFIG POLICY FLAG...: our step time, in $out/own.jsonl.
own_time() {
  local config=$1 policy=$2 report=$out/bench_$1_$2.json
  shift 2
  if ! "$halfstep" bench "$root/configs/$config.yaml" --device cuda --synthetic --json --quiet \
    --repeat 5 "$@" >"$report" 2>>"$log"; then
    result false "$config/$policy" "bench failed: $(tail -n 3 "$log")"
    return
  fi
  python3 - "$report" "$config" "$policy" >>"$out/own.jsonl" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
print(json.dumps({"workload": sys.argv[2], "policy": sys.argv[3],
                  "ms": report["step_time"]["median"], "ci95": report["step_time"]["median_ci95"]}))
PYTHON
  result true "$config/$policy" "$(tail -n 1 "$out/own.jsonl")"
}

stage_bench() {
  local config batch steps policy flags policies=(mixed_float16 mixed_bfloat16 float32_tf32 float32)
  local workloads="guide_4096 8192 20
guide_64 128 300
mnist_cnn 1024 40
fashion_cnn 1024 40
lstm_rows 128 100
gru_rows 128 100
transformer_patches 128 100
cifar10_resnet 256 20"
  if [[ -n $emulated ]]; then
    policies=(mixed_float16)
    workloads="guide_64 32 4
lstm_rows 16 2
gru_rows 16 2"
  fi
  : >"$out/own.jsonl"
  while read -r config batch steps; do
    for policy in "${policies[@]}"; do
      flags=(--policy "$policy")
      if [[ $policy == float32_tf32 ]]; then
        flags=(--policy float32 --set precision.float32_math=tf32)
      fi
      own_time "$config" "$policy" --batch-size "$batch" --warmup "$((steps < 10 ? steps : 10))" \
        --steps "$steps" "${flags[@]}"
    done
  done <<<"$workloads"
  if [[ -n $emulated ]]; then return; fi
  local measured
  while read -r config batch steps; do
    measured=mixed_float16
    if [[ $config == *resnet ]]; then measured=float32; fi
    own_time "$config" "${measured}_measured" --batch-size "$batch" --warmup 10 --steps "$steps" \
      --policy "$measured" --set device.autotune=measure --set device.tuning_folder="$out/tuning"
  done <<<"$(grep -E 'cnn|resnet' <<<"$workloads")"
}

stage_profile() {
  local config=guide_4096
  if [[ -n $emulated ]]; then config=guide_64; fi
  check ops "$halfstep" bench "$root/configs/$config.yaml" --device cuda --synthetic --profile \
    ${emulated:+--batch-size 32} --policy mixed_float16 --warmup 3 --steps 5 --repeat 1
}

stage_torch() {
  check cases python3 "$root/scripts/gpu/torch_steps.py" "$halfstep" --ceilings \
    --seconds "$((limit[torch] - 15))" --out "$out/torch.jsonl"
}

# From the lines that there are; outside of the stages with limits.
tables() {
  if [[ ! -s $out/own.jsonl ]]; then return; fi
  stage=tables
  log=$out/tables.log
  if [[ -s $out/torch.jsonl ]]; then
    checks python3 "$root/scripts/gpu/ratios.py" "$out/own.jsonl" "$out/torch.jsonl"
  else
    check own python3 "$root/scripts/gpu/ratios.py" "$out/own.jsonl"
  fi
  cat "$log"
}

stage_ncu() {
  check ncu ncu --set basic --clock-control none --target-processes all --launch-skip 60 --launch-count 30 \
    --export "$out/profile" --force-overwrite "$halfstep" bench "$root/configs/guide_4096.yaml" \
    --device cuda --synthetic --policy mixed_float16 --warmup 1 --steps 2 --repeat 1
}

emulated=""
if [[ ${1:-} == --emulated ]]; then
  emulated=1
  shift
fi
out=${1:-}
[[ -n $out && $out != -* ]] || {
  sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}
shift
programs

# A stage runs as a process of its own, so that `timeout` can end it.
if [[ ${1:-} == --inside ]]; then
  stage=$2
  log=$out/$stage.log
  "stage_$stage"
  exit
fi

name=${1:-first}
if [[ -n $emulated ]]; then
  stages=("${emulated_stages[@]}")
  # The reference and the devices under test are slow; nothing is measured.
  for stage in "${!limit[@]}"; do limit[$stage]=300; done
  export HALFSTEP_CUDA_PLUGIN=$plugins/libhalfstep_cuda_emulated.so
  if (($# > 0)); then
    mapfile -t stages < <(for stage in ${call[$name]:-"$@"}; do
      [[ " ${emulated_stages[*]} " == *" $stage "* ]] && echo "$stage"
    done)
  fi
elif [[ -n ${call[$name]:-} ]]; then
  read -r -a stages <<<"${call[$name]}"
else
  stages=("$@")
fi
for stage in "${stages[@]}"; do
  [[ -n ${limit[$stage]:-} ]] ||
    die "unknown stage '$stage'; calls: ${!call[*]}; stages: ${!limit[*]}"
done
mkdir -p "$out" || die "cannot make $out"
out=$(cd "$out" && pwd)
: >"$out/results.jsonl"
if [[ -z $emulated ]]; then
  export CUDA_MODULE_LOADING=LAZY
  wheels=$(wheel_folders)
  libraries=${LD_LIBRARY_PATH:-}${wheels:+:$wheels}
  export LD_LIBRARY_PATH=${libraries#:}
fi

# Whatever ends the call, its results are in one archive.
watcher=""
pack() {
  trap - EXIT
  if [[ -n $watcher ]]; then kill "$watcher" 2>/dev/null; fi
  tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
  say "results: $out.tar.gz"
}
trap pack EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
if [[ -z $emulated ]] && command -v nvidia-smi >/dev/null; then
  # Keeps the driver loaded between the processes of the stages, too.
  nvidia-smi dmon -o T -f "$out/dmon.txt" >/dev/null 2>&1 &
  watcher=$!
fi

count() { grep -c "$1" "$out/results.jsonl"; }
failures_of() { count "\"stage\": \"$1\".*\"ok\": false"; }

declare -A took=()
stopped=""
for stage in "${stages[@]}"; do
  start=$SECONDS
  timeout --kill-after=5 "${limit[$stage]}" \
    bash "${BASH_SOURCE[0]}" ${emulated:+--emulated} "$out" --inside "$stage" &
  # A signal interrupts this wait, and not that of a program in the foreground.
  wait $!
  status=$?
  took[$stage]=$((SECONDS - start))
  if ((status == 124 || status == 137)); then
    result false "time" "over its ${limit[$stage]} s"
  elif ((status != 0)); then
    result false "stage" "ended with status $status"
  fi
  if [[ $gates == *" $stage "* ]] && (($(failures_of "$stage") > 0)); then
    stopped=$stage
    break
  fi
done
stage=""
if [[ -z $stopped ]]; then tables; fi

say ""
for stage in "${!took[@]}"; do
  printf '%-10s %4d s  %3d passed, %d failed\n' "$stage" "${took[$stage]}" \
    "$(count "\"stage\": \"$stage\".*\"ok\": true")" "$(failures_of "$stage")"
done | sort
if [[ -n $stopped ]]; then say "stopped after $stopped"; fi
failed=$(count '"ok": false')
say "$(count '"ok": true') passed, $failed failed"
((failed == 0))
