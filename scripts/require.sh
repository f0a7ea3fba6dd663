#!/bin/sh
# Says in one line what is missing before anything is built. Usage: require.sh PYTHON CARGO
set -u
python=$1
cargo=$2

fail() {
    printf 'privet: %s\n' "$1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    fail "no '$python' found. Install Python 3.11 or newer, or name one: make PYTHON=python3.12"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "'$python' is $("$python" --version 2>&1); Python 3.11 or newer is needed: make PYTHON=python3.12"
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    fail "'$python' cannot create virtual environments. On Debian: apt-get install python3-venv"
command -v "$cargo" >/dev/null 2>&1 ||
    fail "no '$cargo' found. Install Rust 1.95 or newer (rustup gives rustc, cargo, rustfmt and clippy)"
"$cargo" --version >/dev/null 2>&1 ||
    fail "'$cargo' does not run: $("$cargo" --version 2>&1 | head -n 1)"
command -v bash >/dev/null 2>&1 ||
    fail "no 'bash' found; cargo calls scripts/rustc.sh. On Alpine: apk add bash"
command -v cc >/dev/null 2>&1 ||
    fail "no C compiler 'cc' found; Rust links with it. On Debian: apt-get install build-essential"
