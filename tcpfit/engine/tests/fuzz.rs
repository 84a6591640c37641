//! The fuzz targets' corpora, and every input that once found an error, as tests. With the checks of a debug build: no
//! arithmetic overflows, no assertion fails.

#[path = "../fuzz/inputs.rs"]
mod inputs;

use std::path::Path;

fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut inputs: Vec<_> = folder
        .read_dir()
        .expect("the corpus is checked in")
        .map(|entry| entry.expect("the corpus can be read").path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for path in inputs {
        eprintln!("{}", path.display()); // shown where a test fails
        target(&std::fs::read(&path).expect("the corpus can be read"));
    }
}

#[test]
fn captures() {
    replay("capture", inputs::capture);
}

#[test]
fn packets() {
    replay("decode", inputs::decode);
}

#[test]
fn options() {
    replay("options", inputs::options);
}

#[test]
fn conversations() {
    replay("conversation", inputs::conversation);
}
