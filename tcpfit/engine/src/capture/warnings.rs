//! Damage and oddities of a capture, counted by kind; the first of each kind keeps its place.

#[derive(Clone, Debug, Default)]
pub struct Warnings {
    seen: Vec<Warning>,
}

#[derive(Clone, Debug)]
struct Warning {
    kind: &'static str,
    first: String,
    count: u64,
}

impl Warnings {
    /// Counts one warning of `kind`; the sentence is made only for the first.
    pub fn add(&mut self, kind: &'static str, sentence: impl FnOnce() -> String) {
        match self.seen.iter_mut().find(|warning| warning.kind == kind) {
            Some(warning) => warning.count += 1,
            None => self.seen.push(Warning {
                kind,
                first: sentence(),
                count: 1,
            }),
        }
    }

    /// One sentence a kind, in order of first appearance.
    pub fn sentences(&self) -> Vec<String> {
        self.seen
            .iter()
            .map(|warning| match warning.count {
                1 => warning.first.clone(),
                count => format!("{} ({count} times)", warning.first),
            })
            .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}
