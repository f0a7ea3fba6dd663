#!/bin/sh
# Resolves requirements.in into requirements.txt with exact versions and the hashes of every platform's files.
# pip-tools goes to a directory of its own, because it is needed for nothing else. BIN: the environment's bin directory.
set -eu
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${BIN:?}/python" -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check pip-tools
CUSTOM_COMPILE_COMMAND="make lock" "$tools/bin/pip-compile" --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements.txt requirements.in
