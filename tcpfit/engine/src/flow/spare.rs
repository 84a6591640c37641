//! Memory of connections and flows that ended, for the next ones.
//!
//! What was used last is near; what the allocator would give has not been used for long, and outstanding segments would
//! have to make room for themselves step by step once more.

use crate::flow::connection::Connection;
use crate::flow::direction::Flow;
use crate::flow::packed::Packed;

/// Flows kept: those of a connection.
const FLOWS: usize = 2;
/// Packed connections kept.
const PACKED: usize = 16;
/// Outstanding segments of a flow that is kept had room for so many at most, so that what is kept, and what the next flow
/// has in reserve, is little.
const ROOM: usize = 64;

#[derive(Default)]
#[expect(clippy::vec_box, reason = "boxes are what is kept, not what was in them")]
pub struct Spare {
    connection: Option<Box<Connection>>,
    flows: Vec<Box<Flow>>,
    packed: Vec<Box<Packed>>,
}

impl Spare {
    pub fn give_connection(&mut self, connection: Box<Connection>) {
        self.connection = Some(connection);
    }

    pub fn connection(&mut self, new: Connection) -> Box<Connection> {
        boxed(self.connection.take(), new)
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
        if self.flows.len() == FLOWS || !flow.is_plain() {
            return;
        }
        let units = std::mem::take(&mut flow.sender.board.units);
        if let Some(units) = units.emptied(ROOM) {
            flow.sender.board.units = units;
            self.flows.push(flow);
        }
    }

    pub fn flow(&mut self, mut new: Flow) -> Box<Flow> {
        let mut old = self.flows.pop();
        if let Some(old) = &mut old {
            std::mem::swap(&mut new.sender.board.units, &mut old.sender.board.units);
            new.sender.rounds.reuse(&mut old.sender.rounds);
        }
        boxed(old, new)
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
