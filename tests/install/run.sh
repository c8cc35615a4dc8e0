#!/usr/bin/env bash
# Installs the build in $1 into a temporary folder, builds against it consumer.cc and what the documentation shows, and runs
# these on a trace of tests/data. Its last line says that all went well.
set -eu
here=$(dirname "$(readlink -f "$0")")
data=$here/../data
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
quietly() { "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }; }
# cpp_of PAGE: its first block of C++.
cpp_of() { awk '/^```cpp$/ {inside = 1; next} /^```$/ {if (inside) exit} inside' "$1"; }

quietly cmake --install "$1" --prefix "$tmp/prefix"
mkdir "$tmp/documented"
cpp_of "$here/../../README.md" >"$tmp/documented/readme.cc"
cpp_of "$here/../../docs/cpp_api.md" >"$tmp/documented/breakdown.cc"
quietly cmake -S "$here" -B "$tmp/build" -DCMAKE_PREFIX_PATH="$tmp/prefix" -DDOCUMENTED="$tmp/documented"
quietly cmake --build "$tmp/build"
# Empty metadata, and two nodes of type COMP: 7, and 8 that depends on 7.
printf '\0\4\10\7\30\4\7\10\10\30\4\52\1\7' >"$tmp/two.et"
[ "$("$tmp/build/consumer" "$data/mlp_et.json.gz" "$tmp/two.et")" = "224 nodes, 2 Chakra nodes" ]
"$tmp/prefix/bin/etude" breakdown -q "$data/mlp_kineto.json.gz" >"$tmp/expected"
"$tmp/build/breakdown" "$data/mlp_kineto.json.gz" >"$tmp/found"
# The command has a line about the file before the same tables.
while IFS= read -r line; do
  grep -qxF -- "$line" "$tmp/expected" || { printf 'not a line of etude breakdown: %s\n' "$line"; exit 1; }
done <"$tmp/found"
grep -q . "$tmp/found"
printf 'broken' >"$tmp/broken.json"
if "$tmp/build/breakdown" "$tmp/broken.json" 2>"$tmp/said"; then exit 1; fi
grep -q 'broken.json: ' "$tmp/said"
echo "the installed library works"
