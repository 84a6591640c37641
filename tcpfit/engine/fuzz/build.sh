#!/bin/sh
# Builds the fuzz targets with libFuzzer's counters, on stable Rust: the flags are those that cargo-fuzz passes, but for
# the address sanitizer, which a crate without unsafe code does not need. Overflow and debug assertions are on.
set -eu
cd "$(dirname "$0")"
RUSTFLAGS='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1' \
    exec cargo build --release --target "$(rustc -vV | sed -n 's/host: //p')" "$@"
