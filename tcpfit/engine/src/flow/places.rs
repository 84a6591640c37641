//! Where connections are kept: what each is known by, one beside the other, and what is known of it elsewhere.
//!
//! A segment's connection is found by listings alone, a line of a cache each; whether a connection is followed or packed
//! makes no difference to it.

use crate::flow::connection::Connection;
use crate::flow::listing::Listing;
use crate::flow::packed::{Packed, Store};
use crate::prefetch::prefetch;
use crate::segment::Segment;

/// What is known of a connection.
pub enum Kept {
    Nothing,
    Live(Box<Connection>),
    Packed(Box<Packed>),
}

impl Kept {
    /// The connection is followed.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Live(_) | Self::Packed(_))
    }

    /// Some flow of it has begun.
    pub fn carries_data(&self) -> bool {
        match self {
            Self::Live(connection) => connection.carries_data(),
            Self::Packed(packed) => packed.carries_data(),
            _ => false,
        }
    }
}

#[derive(Default)]
pub struct Places {
    pub listings: Vec<Listing>,
    /// Of the same places.
    pub kept: Vec<Kept>,
    free: Vec<u32>,
}

impl Places {
    /// Keeps a connection.
    pub fn add(&mut self, listing: Listing, kept: Kept) -> u32 {
        if let Some(place) = self.free.pop() {
            self.listings[place as usize] = listing;
            self.kept[place as usize] = kept;
            return place;
        }
        self.listings.push(listing);
        self.kept.push(kept);
        (self.kept.len() - 1) as u32
    }

    /// Takes what is known of the connection from there.
    pub fn free(&mut self, place: u32) -> Kept {
        self.free.push(place);
        let place = place as usize;
        self.listings[place] = Listing::NONE;
        std::mem::replace(&mut self.kept[place], Kept::Nothing)
    }

    /// What is known of the connection there, if that one is followed.
    pub fn open(&self, place: u32, number: u32) -> Option<(&Listing, &Kept)> {
        let (listing, kept) = (&self.listings[place as usize], &self.kept[place as usize]);
        (listing.number == number && kept.is_open()).then_some((listing, kept))
    }

    /// The place, and the end that sent the segment, if that connection is there.
    #[inline]
    pub fn at(&self, place: u32, segment: &Segment) -> Option<(u32, usize)> {
        let end = self.listings.get(place as usize)?.ends.sender(segment)?;
        Some((place, end))
    }

    /// The end that sent the segment, if nothing of it is in the capture yet.
    pub fn lacks(&self, place: u32, segment: &Segment) -> Option<usize> {
        let listing = self.listings.get(place as usize)?;
        match &self.kept[place as usize] {
            Kept::Live(connection) => connection.lacks(listing, segment),
            Kept::Packed(packed) => packed.lacks(listing, segment),
            _ => None,
        }
    }

    /// Places of the connections that are followed, with each one's listing, and whether it carries data.
    pub fn all_open(&self) -> impl Iterator<Item = (u32, &Listing, bool)> {
        let all = (0..).zip(&self.listings).zip(&self.kept);
        all.filter(|(_, kept)| kept.is_open())
            .map(|((place, listing), kept)| (place, listing, kept.carries_data()))
    }

    /// Asks for what the connection there is known by, and where it is kept.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        if let (Some(listing), Some(kept)) = (self.listings.get(place as usize), self.kept.get(place as usize)) {
            prefetch(listing);
            prefetch(kept);
        }
    }

    /// Asks for what is known of the connection there.
    #[inline]
    pub fn prefetch_kept(&self, place: u32) {
        match self.kept.get(place as usize) {
            Some(Kept::Live(connection)) => prefetch(&**connection),
            Some(Kept::Packed(packed)) => prefetch(&**packed),
            _ => {}
        }
    }

    /// Asks for the part of it that the segment is for.
    #[inline]
    pub fn prefetch_for(&self, place: u32, segment: &Segment, store: &Store) {
        match self.kept.get(place as usize) {
            Some(Kept::Live(connection)) => {
                if let Some(end) = self.listings[place as usize].ends.between(segment) {
                    connection.prefetch(end, segment);
                }
            }
            Some(Kept::Packed(packed)) => packed.prefetch(store),
            _ => {}
        }
    }

    /// Asks for what is needed to settle connections soon: `next` says where those are that come next.
    #[inline]
    pub fn prefetch_to_settle(&self, next: impl Fn(usize) -> Option<u32>, store: &Store) {
        if let Some(place) = next(2) {
            self.prefetch(place);
        }
        if let Some(place) = next(1) {
            self.prefetch_kept(place);
        }
        if let Some(Kept::Packed(packed)) = next(0).and_then(|place| self.kept.get(place as usize)) {
            packed.prefetch_all(store);
        }
    }
}
