//! State that most flows never come to have: it takes a pointer until it first changes. Reading it before gives the state
//! that every flow begins with.

use std::ops::{Deref, DerefMut};

/// State as every flow begins with it.
pub trait Blank: 'static {
    const BLANK: &'static Self;

    fn new(flow: u32) -> Self;
}

#[derive(Clone, Debug)]
pub struct Rare<T> {
    flow: u32,
    changed: Option<Box<T>>,
}

impl<T: Blank> Rare<T> {
    pub fn new(flow: u32) -> Self {
        Self { flow, changed: None }
    }

    /// With the state that it has already come to, if any.
    pub fn begun(flow: u32, changed: Option<Box<T>>) -> Self {
        Self { flow, changed }
    }

    /// The state, if it ever changed.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.changed.as_deref()
    }

    /// The same; asking for `&mut T` otherwise is the change.
    pub fn changed(&mut self) -> Option<&mut T> {
        self.changed.as_deref_mut()
    }
}

impl<T: Blank> Deref for Rare<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.changed.as_deref().unwrap_or(T::BLANK)
    }
}

impl<T: Blank> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.changed.get_or_insert_with(|| Box::new(T::new(self.flow)))
    }
}
