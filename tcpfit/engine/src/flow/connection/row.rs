//! The row of a flow, when its connection ends.

use super::{Connection, End};
use crate::flow::attempts::Attempts;
use crate::flow::direction::Flow;
use crate::flow::listing::Listing;
use crate::flow::vantage::Position;
use crate::rows::{Ending, Feedback, FlowRow, Vantage};

/// Wireshark's `tcp.completeness`.
const SYN: u8 = 1;
const SYN_ACK: u8 = 2;
const ACK: u8 = 4;
const DATA: u8 = 8;
const FIN: u8 = 16;
const RST: u8 = 32;

impl Connection {
    /// What the connection knows of a flow whose data are not in the capture.
    pub(super) fn trail_row(&self, listing: &Listing, end: usize, known: FlowRow, completeness: u8) -> FlowRow {
        let peer = &self.ends[1 - end];
        let (src, dst) = (listing.ends.names[end], listing.ends.names[1 - end]);
        let scales = self.offered_scales(1 - end);
        let segments = |w: u16| {
            scales
                .exact()
                .map(|k| (u64::from(w) << k) as f64 / f64::from(known.smss_bytes))
        };
        FlowRow {
            connection: listing.number,
            window_scale: scales.exact(),
            window_scale_low: scales.low,
            window_scale_high: scales.high,
            rwnd_max: peer.windows.range().and_then(|(_, most)| segments(most)).into(),
            rwnd_min: peer.windows.range().and_then(|(least, _)| segments(least)).into(),
            src: src.0,
            src_port: src.1,
            dst: dst.0,
            dst_port: dst.1,
            closed: self.closed(),
            ending: self.ending(end),
            reset_frame: self.first_reset.map(|(_, frame)| frame).into(),
            completeness,
            ..known
        }
    }

    /// What of the connection is in the capture, in Wireshark's bits.
    pub(super) fn completeness(&self) -> u8 {
        let any = |has: fn(&End) -> bool| self.ends.iter().any(has);
        let seen = [
            (SYN, self.client.is_some()),
            (SYN_ACK, any(|end| end.acknowledged.is_some())),
            (ACK, any(|end| end.windows.range().is_some())),
            (
                DATA,
                any(|end| end.direction.as_ref().is_some_and(|flow| flow.arrivals.segments > 0)),
            ),
            (FIN, any(|end| end.fin.is_some())),
            (RST, self.reset),
        ];
        seen.iter().map(|&(bit, there)| bit * u8::from(there)).sum()
    }

    /// It is one of Multipath TCP: both SYNs have an option of that (RFC 8684, 3.1 and 3.2).
    pub(super) fn is_subflow(&self) -> Option<bool> {
        let (a, b) = self.ends[0].syn.zip(self.ends[1].syn)?;
        match (a.mptcp, b.mptcp, a.incomplete || b.incomplete) {
            (true, true, _) => Some(true),
            (_, _, true) => None,
            _ => Some(false),
        }
    }

    /// Counts it among those without data, if its SYN was seen.
    pub(super) fn count_attempt(&self, completeness: u8, attempts: &mut Attempts) {
        let flow_of_acks = |end: &End| end.trail.as_ref().is_some_and(|trail| trail.flow.is_some());
        let acknowledged = self.ends.iter().any(flow_of_acks);
        let Some(client) = self.client.filter(|_| completeness & DATA == 0 && !acknowledged) else {
            return;
        };
        let refused = self.first_reset.is_some_and(|(by, _)| by != client);
        *match completeness & (SYN_ACK | ACK) {
            0 if refused => &mut attempts.refused,
            0 => &mut attempts.unanswered,
            _ => &mut attempts.opened,
        } += 1;
    }

    /// How it ended for the flow of `end`. What both ends have closed, a reset only clears away.
    fn ending(&self, end: usize) -> Ending {
        match self.first_reset.filter(|_| !self.both_finished()) {
            Some((by, _)) if by == end => Ending::ResetBySender,
            Some(_) => Ending::ResetByReceiver,
            None if self.both_finished() => Ending::Closed,
            None if self.ends.iter().any(|end| end.fin.is_some()) => Ending::HalfClosed,
            None => Ending::Open,
        }
    }

    pub(super) fn row(&self, listing: &Listing, end: usize, flow: &Flow, completeness: u8) -> FlowRow {
        let (own, peer) = (&self.ends[end], &self.ends[1 - end]);
        let (src, dst) = (listing.ends.names[end], listing.ends.names[1 - end]);
        let position = self.position.unwrap_or(Position::UNKNOWN);
        let syns = own.syn.zip(peer.syn);
        let offered = self.offered_scales(1 - end);
        let scales = flow.scale.as_ref().map_or(offered, |scale| scale.range());
        let scale = scales.exact();
        let sender = &flow.sender;
        let scaled = |w: u16| scale.map(|k| (u64::from(w) << k) as f64 / f64::from(sender.smss));
        let (arrivals, fates, totals, rtt) = (&flow.arrivals, &sender.fates, &sender.totals, &sender.rtt);
        let (lost, marks) = (fates.lost, &sender.marks);
        let (data_segments, data_bytes) = arrivals.passed();
        FlowRow {
            flow: sender.flow,
            connection: listing.number,
            src: src.0,
            src_port: src.1,
            dst: dst.0,
            dst_port: dst.1,
            first_ns: if flow.first_ns == 0 {
                flow.last_ns
            } else {
                flow.first_ns
            },
            last_ns: flow.last_ns.max(flow.first_ns),
            vantage: position.place(end, sender.vantage, || flow.acks.is_late() || flow.acks.place_given),
            vantage_confidence: position.confidence,
            vantage_fraction: position.fraction(end).into(),
            handshake_rtt_s: position.round_trip_s().filter(|_| syns.is_some()).into(),
            mss_bytes: syns.and_then(|_| flow.smss_known.then_some(sender.smss)).into(),
            smss_bytes: sender.smss,
            window_scale: offered.exact(),
            window_scale_low: scales.low,
            window_scale_high: scales.high,
            sack_permitted: match syns {
                Some((a, b)) if !a.incomplete && !b.incomplete => Some(a.sack_permitted && b.sack_permitted),
                _ => sender.sack.then_some(true),
            },
            mptcp: self.is_subflow(),
            timestamps: flow.timestamps,
            ecn: marks.feedback.map(|feedback| feedback != Feedback::None),
            ecn_feedback: marks.feedback,
            offload: flow.offload,
            stamp_tick_s: (own.stamps.tick_ns > 0)
                .then_some(own.stamps.tick_ns as f64 / 1e9)
                .into(),
            acks_seen: flow.acks_seen,
            one_way: !peer.seen,
            options_cut: flow.sack_cut || syns.is_some_and(|(a, b)| a.incomplete || b.incomplete),
            early_acks: (flow.early().segments, flow.early().longest_ns),
            closed: self.closed(),
            ending: self.ending(end),
            reset_frame: self.first_reset.map(|(_, frame)| frame).into(),
            completeness,
            data_segments,
            sent_segments: arrivals.segments - arrivals.counts().network_copies + fates.lost_upstream,
            data_bytes,
            unique_bytes: arrivals.unique_bytes(),
            acked_bytes: totals.acked_bytes,
            retransmitted_segments: arrivals.counts().resent_segments,
            retransmitted_bytes: arrivals.counts().resent_bytes,
            lost_segments: lost,
            lost_low: lost.saturating_sub(fates.doubtful + fates.unproven),
            lost_high: lost + sender.reordering.doubtful_losses + arrivals.counts().unplaced,
            lost_upstream: fates.lost_upstream,
            spurious_retransmissions: fates.spurious,
            loss_events: fates.loss_events.count,
            fast_recoveries: sender.episodes.recoveries,
            timeouts: sender.episodes.timeouts,
            tail_loss_probes: sender.episodes.probes,
            reorder_events: sender.reordering.events,
            reordered_segments: sender.reordering.segments,
            reordered_low: sender.reordering.segments - sender.reordering.doubtful,
            reordered_high: sender.reordering.segments + sender.reordering.unnamed + fates.doubtful,
            duplicated_segments: arrivals.counts().copies,
            zero_window_episodes: flow.windows.zero_count,
            ce_segments: marks.seen().ce_segments,
            ece_acks: marks.feedback.map(|_| marks.seen().ece_acks).into(),
            ace_marks: marks.feedback.map(|_| marks.seen().ace_marks).into(),
            mark_events: match marks.feedback {
                Some(Feedback::None) => 0.into(),
                Some(_) if flow.acks_seen => marks.seen().echoed_events.into(),
                _ => (sender.vantage != Vantage::Sender)
                    .then_some(marks.seen().arrived_events)
                    .into(),
            },
            cwr_segments: marks.feedback.map(|_| marks.seen().cwr_segments).into(),
            missing_segments: fates.missing,
            acks: totals.acks,
            duplicate_acks: sender.duplicates.count,
            rtt_samples: rtt.samples,
            rtt_mean_s: rtt
                .mean_s()
                .map(|mean| {
                    if totals.measured_s > 0.0 {
                        (totals.srtt_integral + sender.drift.lag_integral) / totals.measured_s
                    } else {
                        mean
                    }
                })
                .into(),
            rtt_sd_s: rtt.sd_s().into(),
            rtt_min_s: rtt.min_s.is_finite().then_some(rtt.min_s).into(),
            rtt_p95_s: rtt.quantile_s(0.95).into(),
            rto_s: (totals.measured_s > 0.0)
                .then(|| (totals.rto_integral + sender.drift.lag_integral) / totals.measured_s)
                .into(),
            flight_max: if sender.one_way { f64::NAN } else { sender.flight_max },
            rwnd_max: peer.windows.range().and_then(|(_, most)| scaled(most)).into(),
            rwnd_min: peer.windows.range().and_then(|(least, _)| scaled(least)).into(),
            limited_share: if sender.one_way {
                f64::NAN
            } else {
                f64::from(sender.rounds.limited) / f64::from(sender.rounds.count.max(1))
            },
            busy_s: if sender.one_way { f64::NAN } else { totals.busy_s },
        }
    }
}
