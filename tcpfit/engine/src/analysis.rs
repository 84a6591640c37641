//! One run: selected segments go through the tracker into the tables. The same for every reader.

use crate::capture::{Capture, CaptureError};
use crate::decode::{Decoder, SkipCounts};
use crate::filter::Filter;
use crate::flow::{Settings, Tracker};
use crate::segment::Segment;
use crate::tables::{Collector, SegmentTable, Table, Tables};

/// Packets that are decoded before the first of them is followed, where many connections are open.
const AHEAD: usize = 32;

/// Which segments are analysed.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub filter: Option<Filter>,
    /// Nanoseconds after the capture's first packet, both ends included.
    pub from_ns: Option<i64>,
    pub to_ns: Option<i64>,
}

impl Selection {
    fn admits(&self, segment: &Segment, since_start: i64) -> bool {
        self.from_ns.is_none_or(|from| since_start >= from)
            && self.to_ns.is_none_or(|to| since_start <= to)
            && self.filter.as_ref().is_none_or(|filter| filter.matches(segment))
    }

    fn is_everything(&self) -> bool {
        self.filter.is_none() && self.from_ns.is_none() && self.to_ns.is_none()
    }
}

pub struct Analysis {
    selection: Selection,
    /// Segments are followed as they come: none is left out, and none kept.
    plain: bool,
    start_ns: Option<i64>,
    tracker: Tracker,
    rows: Collector,
    segments: Option<SegmentTable>,
    tcp_segments: u64,
}

impl Analysis {
    /// `keep_segments` asks for the table of segments.
    pub fn new(selection: Selection, settings: Settings, keep_segments: bool) -> Self {
        Self {
            plain: selection.is_everything() && !keep_segments,
            selection,
            start_ns: None,
            tracker: Tracker::new(settings),
            rows: Collector::default(),
            segments: keep_segments.then(SegmentTable::default),
            tcp_segments: 0,
        }
    }

    /// Time of the capture's first packet; without it the first segment's counts.
    pub fn starts_at(&mut self, time_ns: i64) {
        self.start_ns.get_or_insert(time_ns);
    }

    /// Reads the capture's next packets, `most` at most; false at its end. All of a packet's way begins here: reading,
    /// decoding and following it are compiled into one loop.
    #[inline(never)]
    pub fn read(
        &mut self,
        capture: &mut Capture,
        decoder: &mut Decoder,
        skipped: &mut SkipCounts,
        most: u64,
    ) -> Result<bool, CaptureError> {
        if self.tracker.is_crowded() {
            return self.read_ahead(capture, decoder, skipped, most);
        }
        let mut segment = Segment::default();
        for _ in 0..most {
            let Some(packet) = capture.next()? else {
                return Ok(false);
            };
            if packet.frame == 1 {
                self.starts_at(packet.time_ns);
            }
            match decoder.decode_into(&packet, &mut segment) {
                Ok(()) => self.take(&segment, None),
                Err(skip) => skipped.add(skip),
            }
        }
        Ok(true)
    }

    /// As `read`, some packets decoded before the first of them is followed: what is known of their connections comes from
    /// far memory.
    #[inline(never)]
    fn read_ahead(
        &mut self,
        capture: &mut Capture,
        decoder: &mut Decoder,
        skipped: &mut SkipCounts,
        most: u64,
    ) -> Result<bool, CaptureError> {
        let mut segments = [Segment::default(); AHEAD];
        let mut left = most;
        while left > 0 {
            let mut count = 0;
            while count < AHEAD && left > 0 {
                let Some(packet) = capture.next()? else {
                    self.push_all(&segments[..count]);
                    return Ok(false);
                };
                left -= 1;
                match decoder.decode_into(&packet, &mut segments[count]) {
                    Ok(()) => count += 1,
                    Err(skip) => skipped.add(skip),
                }
            }
            self.push_all(&segments[..count]);
        }
        Ok(true)
    }

    /// Takes the capture's next segments.
    pub fn push_all(&mut self, segments: &[Segment]) {
        let mut places = [0; AHEAD];
        for segments in segments.chunks(AHEAD) {
            let places = &mut places[..segments.len()];
            self.tracker.look_ahead(segments, places);
            for (segment, &mut place) in segments.iter().zip(places) {
                self.take(segment, Some(place));
            }
        }
    }

    /// Takes the capture's next segment.
    pub fn push(&mut self, segment: &Segment) {
        self.take(segment, None);
    }

    /// `near`: where its connection seems to be.
    #[inline(always)]
    fn take(&mut self, segment: &Segment, near: Option<u32>) {
        if !self.plain && !self.admits(segment) {
            return;
        }
        self.tcp_segments += 1;
        self.tracker.push(segment, near, &mut self.rows);
    }

    /// Whether the segment is selected; if so, and segments are kept, it is.
    #[inline(never)]
    fn admits(&mut self, segment: &Segment) -> bool {
        let start = *self.start_ns.get_or_insert(segment.time_ns);
        let admitted = self.selection.admits(segment, segment.time_ns.saturating_sub(start));
        if let (Some(segments), true) = (&mut self.segments, admitted) {
            segments.push(segment);
        }
        admitted
    }

    /// The next piece of the table of segments, once it is there; the table at the end is what was not taken.
    pub fn take_piece(&mut self) -> Option<Table> {
        self.segments.as_mut().and_then(SegmentTable::take_piece)
    }

    /// Segments that were selected so far.
    pub fn tcp_segments(&self) -> u64 {
        self.tcp_segments
    }

    pub fn finish(mut self) -> Tables {
        self.tracker.finish(&mut self.rows);
        let (warnings, attempts) = (self.tracker.warnings(), self.tracker.attempts());
        // the tables can have the memory that it took
        drop(self.tracker);
        Tables {
            attempts,
            ..self.rows.finish(self.segments, warnings)
        }
    }
}
