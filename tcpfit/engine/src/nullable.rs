//! A number or none, in the room that the number takes: an `Option` of one takes twice as much, and rows of tables are moved,
//! kept and sorted by the million.

use std::fmt;

/// A number that may be missing. The one that stands for none is itself none: `f64`'s NaN, the largest of the others.
#[derive(Clone, Copy)]
pub struct Nullable<N>(N);

/// A number of which one value stands for none.
pub trait Number: Copy {
    const NONE: Self;

    fn is_none(self) -> bool;
}

impl Number for f64 {
    const NONE: Self = Self::NAN;

    #[inline]
    fn is_none(self) -> bool {
        self.is_nan()
    }
}

macro_rules! whole {
    ($($number:ty),+) => {
        $(impl Number for $number {
            const NONE: Self = Self::MAX;

            #[inline]
            fn is_none(self) -> bool {
                self == Self::NONE
            }
        })+
    };
}

whole!(u32, u64, i64);

impl<N: Number> Nullable<N> {
    pub const NONE: Self = Self(N::NONE);

    #[inline]
    pub fn get(self) -> Option<N> {
        (!self.0.is_none()).then_some(self.0)
    }
}

impl<N: Number> Default for Nullable<N> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<N: Number> From<N> for Nullable<N> {
    #[inline]
    fn from(number: N) -> Self {
        Self(number)
    }
}

impl<N: Number> From<Option<N>> for Nullable<N> {
    #[inline]
    fn from(number: Option<N>) -> Self {
        Self(number.unwrap_or(N::NONE))
    }
}

impl<N: Number + PartialEq> PartialEq for Nullable<N> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<N: Number + Eq> Eq for Nullable<N> {}

impl<N: Number + fmt::Debug> fmt::Debug for Nullable<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.get().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_and_none_does_not() {
        assert_eq!(Some(7), Nullable::from(7u64).get());
        assert_eq!(Some(0.0), Nullable::from(Some(0.0)).get());
        assert_eq!(None, Nullable::<i64>::from(None).get());
        assert_eq!(None, Nullable::from(f64::NAN).get());
        assert_eq!(Nullable::<f64>::NONE, Nullable::default());
        assert_eq!(size_of::<u32>(), size_of::<Nullable<u32>>());
    }
}
