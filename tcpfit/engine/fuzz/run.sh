#!/bin/sh
# Runs every target for so many minutes: run.sh MINUTES. What it learns is kept in target/corpus, what fails as crash-*.
set -eu
cd "$(dirname "$0")"
./build.sh
seconds=$((${1:-1} * 60))
bin=${CARGO_TARGET_DIR:-target}/$(rustc -vV | sed -n 's/host: //p')/release
for target in capture decode options conversation; do
    learnt=${CARGO_TARGET_DIR:-target}/corpus/$target
    mkdir -p "$learnt"
    "$bin/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=500 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix=crash-"$target"- "$learnt" "corpus/$target" 2>&1 | tail -n 20
done
