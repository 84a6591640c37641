//! Memory of connections and flows that ended, for the next ones.
//!
//! What was used last is near; what the allocator would give has not been used for long, and outstanding segments would
//! have to make room for themselves step by step once more.

use crate::flow::connection::Connection;
use crate::flow::direction::Flow;
use crate::flow::packed::Packed;
use crate::flow::ring::Ring;
use crate::flow::scoreboard::Unit;
use crate::flow::table::settle::TOGETHER;

/// Connections kept.
const CONNECTIONS: usize = TOGETHER;
/// Flows kept: those of as many connections.
const FLOWS: usize = 2 * TOGETHER;
/// Packed connections kept: as many as are settled in a train of them, before others open.
const PACKED: usize = 16 * TOGETHER;
/// Boards kept: connections close in trains, and what one gives another takes soon.
const BOARDS: usize = 64;
/// Outstanding segments of a flow whose board is kept had room for so many at most, so that what is kept, and what the next
/// flow has in reserve, is little.
const ROOM: usize = 64;

#[derive(Default)]
#[expect(clippy::vec_box, reason = "boxes are what is kept, not what was in them")]
pub struct Spare {
    connections: Vec<Box<Connection>>,
    flows: Vec<Box<Flow>>,
    boards: Vec<Ring<Unit>>,
    packed: Vec<Box<Packed>>,
}

impl Spare {
    pub fn give_connection(&mut self, connection: Box<Connection>) {
        if self.connections.len() < CONNECTIONS {
            self.connections.push(connection);
        }
    }

    pub fn connection(&mut self, new: Connection) -> Box<Connection> {
        boxed(self.connections.pop(), new)
    }

    pub fn give_packed(&mut self, packed: Box<Packed>) {
        if self.packed.len() < PACKED {
            self.packed.push(packed);
        }
    }

    pub fn packed(&mut self, new: Packed) -> Box<Packed> {
        boxed(self.packed.pop(), new)
    }

    /// A flow that was given out.
    pub fn give_flow(&mut self, mut flow: Box<Flow>) {
        let units = &mut flow.sender.board.units;
        if !units.is_small(ROOM) {
            *units = Ring::default();
        }
        if self.flows.len() < FLOWS && flow.is_plain() {
            // with its board: to move that now would wait until all that was written before has reached the cache
            self.flows.push(flow);
        } else {
            self.give_board(std::mem::take(&mut flow.sender.board.units));
        }
    }

    /// A flow as `new` makes it, written where it stays: it is long.
    #[inline]
    pub fn flow(&mut self, new: impl FnOnce() -> Flow) -> Box<Flow> {
        let (mut flow, units) = match self.flows.pop() {
            Some(mut place) => {
                let room = place.sender.rounds.room();
                let units = std::mem::take(&mut place.sender.board.units).emptied(ROOM);
                *place = new();
                place.sender.rounds.reuse(room);
                (place, units)
            }
            None => (Box::new(new()), None),
        };
        if let Some(units) = units.or_else(|| self.boards.pop()) {
            flow.sender.board.units = units;
        }
        flow
    }

    /// Where the segments were that a flow had outstanding: it has closed, or was quiet for long.
    pub fn give_board(&mut self, units: Ring<Unit>) {
        if self.boards.len() < BOARDS {
            self.boards.extend(units.emptied(ROOM));
        }
    }
}

/// The value, where the old one was if there is one.
fn boxed<T>(old: Option<Box<T>>, new: T) -> Box<T> {
    match old {
        Some(mut place) => {
            *place = new;
            place
        }
        None => Box::new(new),
    }
}
