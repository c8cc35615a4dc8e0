#!/usr/bin/env bash
# Fuzzes readers and parsers of input with libFuzzer, under address and undefined-behaviour
# sanitizers (needs clang).
#
#   tools/fuzz.sh [SECONDS] [TARGET...]   each target (all of them) for so long (600) of CPU time,
#                                          as many at once as there are cores
#
# Inputs that reach more code are kept in build/fuzz/found/TARGET and are where the next run begins;
# what crashed, hung or took too much memory lies beside them in build/fuzz/findings. Exit code 1 if
# there is any. A finding that was mended belongs into tests/corpus/TARGET.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
seconds=600
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
elif [[ ${1:-} == -* ]]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  exit 0
fi
clang=$(command -v clang++-16 || command -v clang++) || { echo "fuzz.sh: found no clang++" >&2; exit 4; }
cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DETUDE_TORCH=OFF -DETUDE_BENCH=OFF -DETUDE_FUZZ=ON -DETUDE_SANITIZE=address,undefined >/dev/null
targets=("$@")
[ $# -gt 0 ] || for folder in tests/corpus/*; do targets+=("$(basename "$folder")"); done
cmake --build build/fuzz --target "${targets[@]/%/_fuzz}" >&2

mkdir -p build/fuzz/findings
# Runs one target and says how it went.
fuzz() {
  local target=$1 found=build/fuzz/found/$1 log=build/fuzz/found/$1.log status=0 ran covered verdict
  mkdir -p "$found"
  # libFuzzer looks at the wall clock; the limit on CPU time ends it where others use the machine.
  (ulimit -t "$seconds" && exec "build/fuzz/bin/${target}_fuzz" -max_total_time=$((10 * seconds)) \
    -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$target-" "$found" "tests/corpus/$target") >"$log" 2>&1 ||
    status=$?
  ran=$(grep -oE '^#[0-9]+' "$log" | tail -1)
  covered=$(grep -oE 'cov: [0-9]+' "$log" | tail -1)
  # 152 and 137: out of CPU time.
  case $status in
    0 | 137 | 152) verdict=ok ;;
    *) verdict="FAILED, see $log" ;;
  esac
  printf '%-16s %12s inputs  %-12s %s\n' "$target" "${ran#\#}" "$covered" "$verdict"
  [ "$verdict" = ok ]
}
export -f fuzz
export seconds
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I {} bash -c 'fuzz {}'
