//! The columns of each table, in the order of `tcpfit/schema.py`.

use std::sync::{Arc, LazyLock};

use arrow_array::ArrayRef;
use arrow_schema::{Schema, SchemaRef};

use super::column::{Column, Edges, Readable, Value};
use super::packed::{Pack, Packable, Reader, Writer};
use super::part::{gather_column, Gather, Place, Sorted, Stowable};
use super::runs::Order;
use crate::rows::{Ending, EventRow, Feedback, FlowRow, Kind, Phase, Reason, RoundRow, Vantage};
use crate::segment::{Address, Segment};

/// Rows that make up a table.
pub trait Rows: Sized {
    type Columns: Columns<Self>;

    fn schema() -> SchemaRef;
}

/// The columns of a table that is being filled.
pub trait Columns<R> {
    fn with_room(rows: usize) -> Self;
    /// Takes `BLOCK` rows, or at the end less.
    fn extend<'a>(&mut self, rows: impl Iterator<Item = &'a R> + Clone)
    where
        R: 'a;
    fn finish(self) -> Vec<ArrayRef>;
}

/// `name: type = value`, the value of the type or an `Option` of it; a row is called as the closure names it.
macro_rules! table {
    ($row:ty, $columns:ident, |$it:ident| { $($name:ident: $kind:ty = $value:expr),+ $(,)? }
     $(, lists { $($list:ident = $options:expr),+ })?) => {
        pub struct $columns {
            $($name: <$kind as Value>::Column,)+
            $($($list: Edges,)+)?
        }

        impl Rows for $row {
            type Columns = $columns;

            fn schema() -> SchemaRef {
                static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
                    let fields = vec![
                        $(<$kind as Value>::field(stringify!($name)),)+
                        $($(Edges::field(stringify!($list)),)+)?
                    ];
                    Arc::new(Schema::new(fields))
                });
                SCHEMA.clone()
            }
        }

        impl Columns<$row> for $columns {
            fn with_room(rows: usize) -> Self {
                Self {
                    $($name: <<$kind as Value>::Column as Column<$kind>>::with_room(rows),)+
                    $($($list: Edges::with_room(rows),)+)?
                }
            }

            fn extend<'a>(&mut self, rows: impl Iterator<Item = &'a $row> + Clone) {
                $(self.$name.extend(rows.clone().map(|$it| $value));)+
                $($(self.$list.extend(rows.clone().map(|$it| $options));)+)?
            }

            fn finish(self) -> Vec<ArrayRef> {
                vec![$(self.$name.finish(),)+ $($(self.$list.finish(),)+)?]
            }
        }
    };
}

/// A table whose rows may have to wait; columns have the names of what they are made of. What is no column need not come
/// back.
macro_rules! waiting {
    ($row:ident, $columns:ident, |$it:ident| { $($name:ident: $kind:ty = $value:expr),+ $(,)? } $(, rest $rest:expr)?) => {
        table!($row, $columns, |$it| { $($name: $kind = $value),+ });

        impl Pack for $row {
            // a number is stored with eight bytes, however long it is
            const LONGEST: usize = 8 $(+ <$kind as Packable>::LONGEST)+;

            fn write(&self, writer: &mut Writer) {
                $(self.$name.write(writer);)+
            }

            fn read(reader: &mut Reader) -> Self {
                Self {
                    $($name: Packable::read(reader),)+
                    $(..$rest)?
                }
            }
        }
    };
}

/// A table of whose rows a flow may have any number.
macro_rules! stowable {
    ($row:ident, $columns:ident, |$it:ident| { $($name:ident: $kind:ty = $value:expr),+ $(,)? }) => {
        waiting!($row, $columns, |$it| { $($name: $kind = $value),+ });

        impl Gather for $columns {
            fn gather(stowed: &mut [Self], batches: &[Order]) -> Vec<Vec<ArrayRef>> {
                let mut gathered = vec![Vec::new(); batches.len()];
                $({
                    let mut taken = Vec::with_capacity(stowed.len());
                    for columns in stowed.iter_mut() {
                        taken.push(std::mem::replace(&mut columns.$name, Column::<$kind>::with_room(0)));
                    }
                    gather_column::<$kind>(&taken, batches, &mut gathered);
                })+
                gathered
            }
        }
    };
}

waiting!(FlowRow, FlowColumns, |row| {
    flow: u32 = row.flow,
    connection: u32 = row.connection,
    src: Address = row.src,
    src_port: u16 = row.src_port,
    dst: Address = row.dst,
    dst_port: u16 = row.dst_port,
    first_ns: i64 = row.first_ns,
    last_ns: i64 = row.last_ns,
    vantage: Vantage = row.vantage,
    vantage_confidence: f64 = row.vantage_confidence,
    vantage_fraction: f64 = row.vantage_fraction,
    handshake_rtt_s: f64 = row.handshake_rtt_s,
    mss_bytes: u32 = row.mss_bytes,
    smss_bytes: u32 = row.smss_bytes,
    window_scale: u8 = row.window_scale,
    window_scale_low: u8 = row.window_scale_low,
    window_scale_high: u8 = row.window_scale_high,
    sack_permitted: bool = row.sack_permitted,
    mptcp: bool = row.mptcp,
    timestamps: bool = row.timestamps,
    stamp_tick_s: f64 = row.stamp_tick_s,
    ecn: bool = row.ecn,
    ecn_feedback: Feedback = row.ecn_feedback,
    offload: bool = row.offload,
    acks_seen: bool = row.acks_seen,
    closed: bool = row.closed,
    ending: Ending = row.ending,
    reset_frame: u64 = row.reset_frame,
    completeness: u8 = row.completeness,
    data_segments: u64 = row.data_segments,
    sent_segments: u64 = row.sent_segments,
    data_bytes: u64 = row.data_bytes,
    unique_bytes: u64 = row.unique_bytes,
    acked_bytes: u64 = row.acked_bytes,
    retransmitted_segments: u64 = row.retransmitted_segments,
    retransmitted_bytes: u64 = row.retransmitted_bytes,
    lost_segments: u64 = row.lost_segments,
    lost_low: u64 = row.lost_low,
    lost_high: u64 = row.lost_high,
    lost_upstream: u64 = row.lost_upstream,
    spurious_retransmissions: u64 = row.spurious_retransmissions,
    loss_events: u64 = row.loss_events,
    fast_recoveries: u64 = row.fast_recoveries,
    timeouts: u64 = row.timeouts,
    tail_loss_probes: u64 = row.tail_loss_probes,
    reorder_events: u64 = row.reorder_events,
    reordered_segments: u64 = row.reordered_segments,
    reordered_low: u64 = row.reordered_low,
    reordered_high: u64 = row.reordered_high,
    duplicated_segments: u64 = row.duplicated_segments,
    zero_window_episodes: u64 = row.zero_window_episodes,
    ce_segments: u64 = row.ce_segments,
    ece_acks: u64 = row.ece_acks,
    ace_marks: u64 = row.ace_marks,
    mark_events: u64 = row.mark_events,
    cwr_segments: u64 = row.cwr_segments,
    missing_segments: u64 = row.missing_segments,
    acks: u64 = row.acks,
    duplicate_acks: u64 = row.duplicate_acks,
    rtt_samples: u64 = row.rtt_samples,
    rtt_mean_s: f64 = row.rtt_mean_s,
    rtt_sd_s: f64 = row.rtt_sd_s,
    rtt_min_s: f64 = row.rtt_min_s,
    rtt_p95_s: f64 = row.rtt_p95_s,
    rto_s: f64 = row.rto_s,
    flight_max: f64 = known(row.flight_max),
    rwnd_max: f64 = row.rwnd_max,
    rwnd_min: f64 = row.rwnd_min,
    limited_share: f64 = known(row.limited_share),
    busy_s: f64 = known(row.busy_s),
}, rest Self::default());

stowable!(EventRow, EventColumns, |row| {
    flow: u32 = row.flow,
    time_ns: i64 = row.time_ns,
    kind: Kind = row.kind,
    reason: Reason = row.reason,
    left: u64 = row.left,
    right: u64 = row.right,
    frame: u64 = row.frame,
    cause_frame: u64 = row.cause_frame,
    segments: u32 = row.segments,
    doublings: u32 = row.doublings,
    flight: f64 = known(row.flight),
    phase: Phase = row.phase,
    confidence: f64 = row.confidence,
    value: f64 = row.value,
    timeout_follows: bool = row.timeout_follows,
    replayed_s: f64 = row.replayed_s,
    replayed_rfc_s: f64 = row.replayed_rfc_s,
    order: u64 = row.order,
    arrival: u64 = row.arrival,
    end_ns: i64 = row.end_ns,
    flight_after: f64 = row.flight_after,
});

stowable!(RoundRow, RoundColumns, |row| {
    flow: u32 = row.flow,
    round: u32 = row.round,
    start_ns: i64 = row.start_ns,
    end_ns: i64 = row.end_ns,
    sent_segments: u32 = row.sent_segments,
    resent_segments: u32 = row.resent_segments,
    lost_segments: u32 = row.lost_segments,
    acked_bytes: u64 = row.acked_bytes,
    acks: u32 = row.acks,
    rtt_s: f64 = row.rtt_s,
    flight: f64 = row.flight,
    rwnd: f64 = row.rwnd,
    phase: Phase = row.phase,
    limited: bool = row.limited,
    idle_s: f64 = row.idle_s,
    window_full_s: f64 = row.window_full_s,
    estimated: bool = row.estimated,
    cwnd_low: f64 = row.cwnd_low,
    cwnd_high: f64 = row.cwnd_high,
});

table!(Segment, SegmentColumns, |row| {
    frame: u64 = row.frame,
    time_ns: i64 = row.time_ns,
    src: Address = row.src,
    dst: Address = row.dst,
    src_port: u16 = row.sport,
    dst_port: u16 = row.dport,
    seq: u32 = row.seq,
    ack: u32 = row.ack,
    flags: u16 = row.flags,
    window: u16 = row.window,
    payload: u32 = row.payload,
    wire_bytes: u32 = row.wire_bytes,
    ip_id: u16 = row.ip_id,
    ttl: u8 = row.ttl,
    ecn: u8 = row.ecn,
    checksum: u16 = row.checksum,
    direction: u8 = row.direction as u8,
    around: u32 = row.around,
    mss: u16 = row.options.mss,
    window_scale: u8 = row.options.window_scale,
    sack_permitted: bool = row.options.sack_permitted,
    mptcp: bool = row.options.mptcp,
    ce_bytes: u32 = row.options.ce_bytes,
    tsval: u32 = row.options.timestamps.map(|(tsval, _)| tsval),
    tsecr: u32 = row.options.timestamps.map(|(_, tsecr)| tsecr),
    options_incomplete: bool = row.options.incomplete,
}, lists { sack = &row.options });

impl Sorted for FlowRow {
    type Key = ();

    fn flow(&self) -> u32 {
        self.flow
    }

    fn place(&self) -> Place {
        (0, 0)
    }

    fn key(&self) -> Self::Key {}
}

impl Sorted for EventRow {
    type Key = (Option<u64>, Option<u64>, Option<u64>, Option<Reason>);

    fn flow(&self) -> u32 {
        self.flow
    }

    fn place(&self) -> Place {
        (self.time_ns, self.kind as u8)
    }

    fn key(&self) -> Self::Key {
        (self.frame.get(), Some(self.left), Some(self.right), Some(self.reason))
    }
}

impl Stowable for EventRow {
    fn flow_at(columns: &EventColumns, row: usize) -> u32 {
        columns.flow.get(row).unwrap_or_default()
    }

    fn place_at(columns: &EventColumns, row: usize) -> Place {
        let kind = columns.kind.get(row).map_or(0, |kind| kind as u8);
        (columns.time_ns.get(row).unwrap_or_default(), kind)
    }

    fn key_at(columns: &EventColumns, row: usize) -> Self::Key {
        (
            columns.frame.get(row),
            columns.left.get(row),
            columns.right.get(row),
            columns.reason.get(row),
        )
    }
}

impl Sorted for RoundRow {
    type Key = ();

    fn flow(&self) -> u32 {
        self.flow
    }

    fn place(&self) -> Place {
        (self.round.into(), 0)
    }

    fn key(&self) -> Self::Key {}
}

impl Stowable for RoundRow {
    fn flow_at(columns: &RoundColumns, row: usize) -> u32 {
        columns.flow.get(row).unwrap_or_default()
    }

    fn place_at(columns: &RoundColumns, row: usize) -> Place {
        (columns.round.get(row).map_or(0, i64::from), 0)
    }

    fn key_at(_: &RoundColumns, _: usize) -> Self::Key {}
}

/// What is not a number is not known.
fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}
