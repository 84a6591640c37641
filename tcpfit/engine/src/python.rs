//! The Python door (`_engine.pyi`): the only file that knows PyO3.
#![allow(unsafe_code)] // Arrow streams cross as pointers in capsules

use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::RecordBatchIterator;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::analysis::{Analysis, Selection};
use crate::capture::{link_type, Capture, CaptureError, Info, Interrupt};
use crate::decode::{Decoder, SkipCounts};
use crate::filter::Filter;
use crate::flow::{Settings, MAX_FLOWS};
use crate::memory;
use crate::rows::Vantage;
use crate::tables::{read_segments, Table, Tables};

mod exceptions {
    pyo3::import_exception!(tcpfit.exceptions, CaptureError);
    pyo3::import_exception!(tcpfit.exceptions, InvalidParameter);
    pyo3::import_exception!(tcpfit.exceptions, TcpfitError);
}

/// Packets between looks at the clock: under a tenth of a millisecond.
const PACKETS_A_LOOK: u64 = 1024;

/// Packets between looks at the memory, each of which is a system call.
const PACKETS_A_WEIGHING: u64 = 16 * PACKETS_A_LOOK;

/// Time between looks at signals and calls of `progress`.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// One table; `polars.DataFrame(table)` takes it.
#[pyclass(frozen, module = "tcpfit.engine._engine")]
struct ArrowStream(Table);

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // the protocol allows to leave the request aside
        drop(requested_schema);
        let reader = RecordBatchIterator::new(self.0.batches().map(Ok), self.0.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }
}

/// One capture analysed.
#[pyclass(frozen, name = "Result", module = "tcpfit.engine._engine")]
struct Outcome {
    #[pyo3(get)]
    capture: Py<PyDict>,
    #[pyo3(get)]
    flows: Py<ArrowStream>,
    #[pyo3(get)]
    events: Py<ArrowStream>,
    #[pyo3(get)]
    rounds: Py<ArrowStream>,
    #[pyo3(get)]
    segments: Option<Py<ArrowStream>>,
}

impl Outcome {
    fn new(py: Python<'_>, capture: Bound<'_, PyDict>, tables: Tables) -> PyResult<Self> {
        Ok(Self {
            capture: capture.unbind(),
            flows: Py::new(py, ArrowStream(tables.flows))?,
            events: Py::new(py, ArrowStream(tables.events))?,
            rounds: Py::new(py, ArrowStream(tables.rounds))?,
            segments: tables
                .segments
                .map(|table| Py::new(py, ArrowStream(table)))
                .transpose()?,
        })
    }
}

/// Analyse a capture ('-' is standard input).
#[pyfunction]
#[pyo3(signature = (
    path, *, vantage=None, filter=None, from_s=None, to_s=None, segments=false, progress=None, max_flows=None,
    max_memory=None, pieces=None
))]
#[allow(clippy::too_many_arguments)] // they are the keywords of the Python function
fn analyze(
    py: Python<'_>,
    path: PathBuf,
    vantage: Option<&str>,
    filter: Option<&str>,
    from_s: Option<f64>,
    to_s: Option<f64>,
    segments: bool,
    progress: Option<Py<PyAny>>,
    max_flows: Option<i64>,
    max_memory: Option<i64>,
    pieces: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let analysis = new_analysis(vantage, filter, from_s, to_s, segments, max_flows)?;
    let max_memory = max_memory.map(|bytes| at_least_1("max_memory", bytes)).transpose()?;
    let run = || guarded(|| read_capture(&path, analysis, progress.as_ref(), pieces.as_ref(), max_memory));
    let read = py.detach(run)?;
    let capture = describe(py, &path.to_string_lossy(), &read)?;
    Outcome::new(py, capture, read.tables)
}

/// A capture read to its end.
struct Read {
    info: Info,
    skipped: SkipCounts,
    tcp_segments: u64,
    /// Bounds that were reached.
    warnings: Vec<String>,
    tables: Tables,
}

/// Runs without the interpreter's lock, which it takes only to look at signals and to tell progress.
fn read_capture(
    path: &Path,
    mut analysis: Analysis,
    progress: Option<&Py<PyAny>>,
    pieces: Option<&Py<PyAny>>,
    max_memory: Option<u64>,
) -> PyResult<Read> {
    let raised = Arc::new(Mutex::new(None));
    let failed = |error: CaptureError| match raised.lock().ok().and_then(|mut raised| raised.take()) {
        Some(exception) => exception,
        None => exceptions::CaptureError::new_err(error.to_string()),
    };
    let mut capture = Capture::open_interruptible(path, interrupt(raised.clone())).map_err(failed)?;
    let (mut decoder, mut skipped) = (Decoder::default(), SkipCounts::default());
    let mut looked = Instant::now();
    let mut warnings = Vec::new();
    while analysis
        .read(&mut capture, &mut decoder, &mut skipped, PACKETS_A_LOOK)
        .map_err(failed)?
    {
        let frame = capture.info().packets;
        if let Some(pieces) = pieces {
            hand_out(&mut analysis, pieces)?;
        }
        if let Some(most) = max_memory.filter(|_| frame % PACKETS_A_WEIGHING == 0) {
            let held = memory::resident();
            if held > most {
                let megabytes = held / 1_000_000;
                warnings.push(format!(
                    "frame {frame}: the analysis has come to {megabytes} MB (--max-memory) and ends here; what came \
                     before is whole"
                ));
                break;
            }
        }
        if looked.elapsed() >= PROGRESS_EVERY {
            look(&capture, progress)?;
            looked = Instant::now();
        }
    }
    look(&capture, progress)?;
    let tcp_segments = analysis.tcp_segments();
    Ok(Read {
        info: capture.info().clone(),
        skipped,
        tcp_segments,
        warnings,
        tables: analysis.finish(),
    })
}

/// Gives the piece of the segments that is there, if any, to whoever asked for them as they come.
fn hand_out(analysis: &mut Analysis, pieces: &Py<PyAny>) -> PyResult<()> {
    match analysis.take_piece() {
        Some(piece) => Python::attach(|py| pieces.call1(py, (ArrowStream(piece),)).map(drop)),
        None => Ok(()),
    }
}

fn look(capture: &Capture, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        match progress {
            Some(progress) => progress.call1(py, (capture.position(), capture.size())).map(drop),
            None => Ok(()),
        }
    })
}

/// Lets Python handle its signals while a read waits; keeps what their handler raised.
fn interrupt(raised: Arc<Mutex<Option<PyErr>>>) -> Interrupt {
    Box::new(move || match Python::attach(|py| py.check_signals()) {
        Ok(()) => false,
        Err(exception) => {
            if let Ok(mut raised) = raised.lock() {
                *raised = Some(exception);
            }
            true
        }
    })
}

/// What is known of the capture itself.
fn describe<'py>(py: Python<'py>, path: &str, read: &Read) -> PyResult<Bound<'py, PyDict>> {
    let info = &read.info;
    let link_types: Vec<String> = info.link_types.iter().map(|number| link_type::name(*number)).collect();
    let skipped = PyDict::new(py);
    for (reason, count) in read.skipped.sorted() {
        skipped.set_item(reason, count)?;
    }
    let capture = PyDict::new(py);
    capture.set_item("path", path)?;
    capture.set_item("format", info.format)?;
    capture.set_item("compression", info.compression.name())?;
    capture.set_item("link_types", link_types)?;
    capture.set_item("packets", info.packets)?;
    capture.set_item("tcp_segments", read.tcp_segments)?;
    capture.set_item("bytes", info.wire_bytes)?;
    capture.set_item("start_ns", info.times_ns.map(|(start_ns, _)| start_ns))?;
    capture.set_item("end_ns", info.times_ns.map(|(_, end_ns)| end_ns))?;
    capture.set_item("skipped", skipped)?;
    capture.set_item("interface_drops", info.interface_drops)?;
    capture.set_item("without_data", without_data(py, &read.tables)?)?;
    let warnings: Vec<String> = [
        info.warnings.sentences(),
        read.warnings.clone(),
        read.tables.warnings.clone(),
    ]
    .concat();
    capture.set_item("warnings", warnings)?;
    Ok(capture)
}

/// Connections that carried no data, by what became of them.
fn without_data<'py>(py: Python<'py>, tables: &Tables) -> PyResult<Bound<'py, PyDict>> {
    let attempts = tables.attempts;
    let counts = PyDict::new(py);
    for (what, count) in [
        ("refused", attempts.refused),
        ("unanswered", attempts.unanswered),
        ("opened", attempts.opened),
    ] {
        counts.set_item(what, count)?;
    }
    Ok(counts)
}

/// The tracker behind `analyze`, for readers that decode packets themselves.
#[pyclass(module = "tcpfit.engine._engine")]
struct Tracker(Option<Analysis>);

#[pymethods]
impl Tracker {
    #[new]
    #[pyo3(signature = (*, vantage=None, filter=None, from_s=None, to_s=None, segments=false, max_flows=None))]
    fn new(
        vantage: Option<&str>,
        filter: Option<&str>,
        from_s: Option<f64>,
        to_s: Option<f64>,
        segments: bool,
        max_flows: Option<i64>,
    ) -> PyResult<Self> {
        new_analysis(vantage, filter, from_s, to_s, segments, max_flows).map(|analysis| Self(Some(analysis)))
    }

    /// Take segments: columns of `tcpfit.schema.SEGMENTS`, in the capture's order.
    fn push(&mut self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let analysis = self.0.as_mut().ok_or_else(finished)?;
        let reader = import(batch)?;
        let run = || {
            guarded(|| {
                for batch in reader {
                    let batch = batch.map_err(|error| exceptions::InvalidParameter::new_err(error.to_string()))?;
                    read_segments(&batch, |segment| analysis.push(segment))
                        .map_err(exceptions::InvalidParameter::new_err)?;
                }
                Ok(())
            })
        };
        py.detach(run)
    }

    /// The next piece of the table of segments, once it is there; it is not kept.
    fn take_piece(&mut self) -> PyResult<Option<ArrowStream>> {
        let analysis = self.0.as_mut().ok_or_else(finished)?;
        Ok(analysis.take_piece().map(ArrowStream))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<Outcome> {
        let analysis = self.0.take().ok_or_else(finished)?;
        let capture = PyDict::new(py);
        capture.set_item("tcp_segments", analysis.tcp_segments())?;
        let tables = py.detach(|| guarded(|| Ok(analysis.finish())))?;
        capture.set_item("without_data", without_data(py, &tables)?)?;
        capture.set_item("warnings", tables.warnings.clone())?;
        Outcome::new(py, capture, tables)
    }
}

fn finished() -> PyErr {
    exceptions::InvalidParameter::new_err("this Tracker is finished; make a new one for the next capture")
}

/// Takes over the stream of an object that speaks Arrow's capsule protocol.
fn import(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let not_arrow = |_| {
        let message = "segments must be an Arrow stream such as a polars.DataFrame (an object with __arrow_c_stream__)";
        exceptions::InvalidParameter::new_err(message)
    };
    let capsule = batch.call_method0("__arrow_c_stream__").map_err(not_arrow)?;
    let capsule = capsule
        .cast_into::<PyCapsule>()
        .map_err(|error| not_arrow(error.into()))?;
    let stream = capsule.pointer_checked(Some(STREAM)).map_err(not_arrow)?;
    // SAFETY: a capsule of this name holds an ArrowArrayStream; from_raw moves it out and leaves it released
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.cast::<FFI_ArrowArrayStream>().as_ptr()) };
    reader.map_err(|error| exceptions::InvalidParameter::new_err(error.to_string()))
}

fn new_analysis(
    vantage: Option<&str>,
    filter: Option<&str>,
    from_s: Option<f64>,
    to_s: Option<f64>,
    segments: bool,
    max_flows: Option<i64>,
) -> PyResult<Analysis> {
    let vantage = vantage.map(parse_vantage).transpose()?;
    let filter = filter.map(Filter::parse).transpose();
    let selection = Selection {
        filter: filter.map_err(|error| exceptions::InvalidParameter::new_err(error.to_string()))?,
        from_ns: from_s.map(|seconds| nanoseconds("from_s", seconds)).transpose()?,
        to_ns: to_s.map(|seconds| nanoseconds("to_s", seconds)).transpose()?,
    };
    let max_flows = max_flows.map(|most| at_least_1("max_flows", most)).transpose()?;
    let settings = Settings {
        vantage,
        max_flows: max_flows.map_or(MAX_FLOWS, |most| most as usize),
        ..Settings::default()
    };
    Ok(Analysis::new(selection, settings, segments))
}

fn at_least_1(name: &str, value: i64) -> PyResult<u64> {
    match u64::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(exceptions::InvalidParameter::new_err(format!(
            "{name} must be at least 1, got {value}"
        ))),
    }
}

fn parse_vantage(word: &str) -> PyResult<Vantage> {
    match word {
        "sender" => Ok(Vantage::Sender),
        "receiver" => Ok(Vantage::Receiver),
        "middle" => Ok(Vantage::Middle),
        _ => {
            let message = format!("vantage must be 'sender', 'receiver' or 'middle', got {word:?}");
            Err(exceptions::InvalidParameter::new_err(message))
        }
    }
}

fn nanoseconds(name: &str, seconds: f64) -> PyResult<i64> {
    if seconds.is_nan() {
        return Err(exceptions::InvalidParameter::new_err(format!(
            "{name} must be a number of seconds, got nan"
        )));
    }
    // a float beyond the range becomes its end, which is what it means here
    Ok((seconds * 1e9).round() as i64)
}

thread_local! {
    /// Where the last panic of this thread was.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Turns a panic, which is an error of the engine, into an exception that says so.
fn guarded<T>(run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let place = PANICKED_AT.with_borrow(String::clone);
        let message = format!("the engine failed at {place}, an error in tcpfit; please report it with the capture");
        Err(exceptions::TcpfitError::new_err(message))
    })
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // panics become exceptions (`guarded`); nothing is to be printed beside them
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        PANICKED_AT.with_borrow_mut(|at| *at = place);
    }));
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_class::<Tracker>()?;
    module.add_class::<Outcome>()?;
    module.add_class::<ArrowStream>()
}
