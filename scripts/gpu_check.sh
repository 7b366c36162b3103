#!/usr/bin/env bash
# Everything that only a GPU can prove, in one run of at most ten minutes.
#   scripts/gpu_check.sh OUT                 all stages; results in the folder OUT
#   scripts/gpu_check.sh OUT STAGE...        some: facts kernels parity scaling sanitizer bench torch profile
#   scripts/gpu_check.sh --emulated OUT      the stages that need no GPU, over the emulated device
# Runs from a bundle (scripts/bundle.sh) or from a build in build/ci. Each stage has its own time
# limit and the next one follows whatever it did. OUT gets results.jsonl (a line per check), a log
# per stage, properties.json (the GPU's properties for cuDNN) and step times. The last lines are a table
# and "N passed, N failed"; the exit status is 1 when anything failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
die() {
  say "error: $*" >&2
  exit 2
}

# Seconds; the sum is below ten minutes.
declare -A limit=([facts]=15 [kernels]=60 [parity]=90 [scaling]=30 [sanitizer]=60 [bench]=110
  [torch]=170 [profile]=40)
all_stages=(facts kernels parity scaling sanitizer bench torch profile)
emulated_stages=(facts kernels parity scaling)

programs() {
  if [[ -x $root/bin/halfstep ]]; then
    bin=$root/bin
    plugins=$root/libexec
  else
    bin=$root/build/ci/bin
    plugins=$bin
  fi
  halfstep=$bin/halfstep
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
  check doctor "$halfstep" doctor
  check glibc bash -c 'ldd --version | head -n 1'
  if [[ -n $emulated ]]; then return; fi
  check nvidia-smi nvidia-smi
  check properties bash -c "'$bin/test_cuda_gpu' --properties | tee '$out/properties.json' | grep deviceVer"
}

stage_kernels() {
  if [[ -n $emulated ]]; then
    check device "$bin/test_cuda_device" -nc
    return
  fi
  # Without a GPU these end well and say so; here that is a failure.
  check device bash -c "'$bin/test_cuda_gpu' -nc -s=false | tee /dev/stderr | grep -q SUCCESS"
}

stage_parity() {
  checks python3 "$root/scripts/gpu/parity.py" "$halfstep" parity ${emulated:+--quick}
}

stage_scaling() { checks python3 "$root/scripts/gpu/parity.py" "$halfstep" scaling; }

# Tools that look for wrong addresses, races and memory that nobody wrote, on the own kernels.
stage_sanitizer() {
  local tool seconds sanitizer
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  while read -r tool seconds; do
    check "$tool" timeout "$seconds" "$sanitizer" --tool "$tool" --target-processes all \
      --error-exitcode 9 "$bin/test_cuda_gpu" -nc -tc='own kernels*,gather_batch*,device memory*'
  done <<'TOOLS'
memcheck 22
racecheck 22
initcheck 14
TOOLS
}

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
  local config batch steps policy flags
  : >"$out/own.jsonl"
  while read -r config batch steps; do
    for policy in mixed_float16 mixed_bfloat16 float32_tf32 float32; do
      flags=(--policy "$policy")
      if [[ $policy == float32_tf32 ]]; then
        flags=(--policy float32 --set precision.float32_math=tf32)
      fi
      own_time "$config" "$policy" --batch-size "$batch" --warmup 10 --steps "$steps" "${flags[@]}"
    done
  done <<'WORKLOADS'
guide_4096 8192 20
guide_64 128 300
mnist_cnn 1024 40
fashion_cnn 1024 40
WORKLOADS
}

stage_torch() {
  python3 "$root/scripts/gpu/torch_steps.py" "$halfstep" --ceilings --seconds 140 >"$out/torch.jsonl" 2>>"$log"
  checks python3 "$root/scripts/gpu/ratios.py" "$out/own.jsonl" "$out/torch.jsonl"
  cat "$log"
}

stage_profile() {
  check ops "$halfstep" bench "$root/configs/guide_4096.yaml" --device cuda --synthetic --profile \
    --policy mixed_float16 --warmup 5 --steps 10 --repeat 1
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
  sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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

stages=("${all_stages[@]}")
if [[ -n $emulated ]]; then
  stages=("${emulated_stages[@]}")
  export HALFSTEP_CUDA_PLUGIN=$plugins/libhalfstep_cuda_emulated.so
fi
if (($# > 0)); then stages=("$@"); fi
for stage in "${stages[@]}"; do
  [[ -n ${limit[$stage]:-} ]] || die "unknown stage '$stage'; stages: ${all_stages[*]}"
done
mkdir -p "$out" || die "cannot make $out"
out=$(cd "$out" && pwd)
: >"$out/results.jsonl"
if [[ -z $emulated ]]; then
  export CUDA_MODULE_LOADING=LAZY
  wheels=$(wheel_folders)
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}${wheels:+:$wheels}
fi

declare -A took=()
for stage in "${stages[@]}"; do
  start=$SECONDS
  timeout --kill-after=5 "${limit[$stage]}" \
    bash "${BASH_SOURCE[0]}" ${emulated:+--emulated} "$out" --inside "$stage"
  status=$?
  took[$stage]=$((SECONDS - start))
  if ((status == 124 || status == 137)); then
    result false "time" "over its ${limit[$stage]} s"
  elif ((status != 0)); then
    result false "stage" "ended with status $status"
  fi
done

count() { grep -c "$1" "$out/results.jsonl"; }
say ""
for stage in "${stages[@]}"; do
  printf '%-10s %4d s  %3d passed, %d failed\n' "$stage" "${took[$stage]}" \
    "$(count "\"stage\": \"$stage\".*\"ok\": true")" "$(count "\"stage\": \"$stage\".*\"ok\": false")"
done
failed=$(count '"ok": false')
say "$(count '"ok": true') passed, $failed failed"
((failed == 0))
