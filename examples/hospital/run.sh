#!/bin/sh
# A hospital asks a model of another organisation about an image, which stays in the hospital. Both run on this machine.
set -eu
here=$(dirname "$0")
models=$here/../../zoo/models
folder=$(mktemp -d)
trap 'kill "$service" 2>/dev/null || true; rm -rf "$folder"' EXIT

# Who may talk to whom: an authority, and a certificate for each party.
privet keys "$folder/keys" --json > /dev/null

# The owner of the model serves it. The samples tell how large values get; the model's weights stay here.
mkfifo "$folder/events"
privet serve "$models/digits-cnn.onnx" --calibration "$models/digits-cnn-samples.npy" --keys "$folder/keys" \
    --state "$folder/server" --listen 127.0.0.1:0 --json > "$folder/events" 2> "$folder/log" &
service=$!
exec 3< "$folder/events"
read -r listening <&3
address=$(expr "$listening" : '.*"address": "\([^"]*\)"')

# The hospital makes material while it has no image, and then asks.
privet prepare "$address" --keys "$folder/keys" --state "$folder/client" --count 1
privet infer "$address" --keys "$folder/keys" --state "$folder/client" --input "$models/digit-7.png"
