//! Arrow -> segments, for readers that decode packets themselves. Text and lists come in any of Arrow's forms.

use std::net::IpAddr;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::DataType;

use crate::segment::{Address, Direction, Options, Segment};

/// Gives each row of `batch` to `take`; `Err` names the column that is not as the schema says.
pub fn read_segments(batch: &RecordBatch, mut take: impl FnMut(&Segment)) -> Result<(), String> {
    let frame = required::<UInt64Type>(batch, "frame")?;
    let time_ns = required::<Int64Type>(batch, "time_ns")?;
    let src = addresses(batch, "src")?;
    let dst = addresses(batch, "dst")?;
    let sport = required::<UInt16Type>(batch, "src_port")?;
    let dport = required::<UInt16Type>(batch, "dst_port")?;
    let seq = required::<UInt32Type>(batch, "seq")?;
    let ack = required::<UInt32Type>(batch, "ack")?;
    let flags = required::<UInt16Type>(batch, "flags")?;
    let window = required::<UInt16Type>(batch, "window")?;
    let payload = required::<UInt32Type>(batch, "payload")?;
    let wire_bytes = required::<UInt32Type>(batch, "wire_bytes")?;
    let ip_id = numbers::<UInt16Type>(batch, "ip_id")?;
    let ttl = required::<UInt8Type>(batch, "ttl")?;
    let ecn = required::<UInt8Type>(batch, "ecn")?;
    let checksum = required::<UInt16Type>(batch, "checksum")?;
    let direction = required::<UInt8Type>(batch, "direction")?;
    let around = required::<UInt32Type>(batch, "around")?;
    let mss = numbers::<UInt16Type>(batch, "mss")?;
    let window_scale = numbers::<UInt8Type>(batch, "window_scale")?;
    let sack_permitted = booleans(batch, "sack_permitted")?;
    let mptcp = booleans(batch, "mptcp")?;
    let ce_bytes = numbers::<UInt32Type>(batch, "ce_bytes")?;
    let tsval = numbers::<UInt32Type>(batch, "tsval")?;
    let tsecr = numbers::<UInt32Type>(batch, "tsecr")?;
    let sack = column(batch, "sack")?;
    let incomplete = booleans(batch, "options_incomplete")?;

    for row in 0..batch.num_rows() {
        let mut options = Options {
            mss: optional(mss, row),
            window_scale: optional(window_scale, row),
            sack_permitted: sack_permitted.is_valid(row) && sack_permitted.value(row),
            mptcp: mptcp.is_valid(row) && mptcp.value(row),
            ce_bytes: optional(ce_bytes, row).into(),
            timestamps: optional(tsval, row).zip(optional(tsecr, row)),
            incomplete: incomplete.is_valid(row) && incomplete.value(row),
            ..Options::default()
        };
        edges(sack, row, &mut options)?;
        take(&Segment {
            frame: frame.value(row),
            time_ns: time_ns.value(row),
            src: address(&src, row, "src")?,
            dst: address(&dst, row, "dst")?,
            sport: sport.value(row),
            dport: dport.value(row),
            seq: seq.value(row),
            ack: ack.value(row),
            flags: flags.value(row),
            window: window.value(row),
            payload: payload.value(row),
            wire_bytes: wire_bytes.value(row),
            ip_id: optional(ip_id, row),
            ttl: ttl.value(row),
            ecn: ecn.value(row),
            checksum: checksum.value(row),
            direction: match direction.value(row) {
                1 => Direction::Inbound,
                2 => Direction::Outbound,
                _ => Direction::Unknown,
            },
            around: around.value(row),
            options,
        });
    }
    Ok(())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, String> {
    batch
        .column_by_name(name)
        .ok_or_else(|| format!("segments have no column {name:?}"))
}

fn numbers<'a, T: ArrowPrimitiveType>(batch: &'a RecordBatch, name: &str) -> Result<&'a PrimitiveArray<T>, String> {
    let found = column(batch, name)?;
    found
        .as_primitive_opt()
        .ok_or_else(|| mismatch(name, &T::DATA_TYPE.to_string(), found))
}

fn required<'a, T: ArrowPrimitiveType>(batch: &'a RecordBatch, name: &str) -> Result<&'a PrimitiveArray<T>, String> {
    let values = numbers(batch, name)?;
    match values.null_count() {
        0 => Ok(values),
        nulls => Err(format!(
            "column {name:?} of segments has {nulls} nulls, and none is allowed in it"
        )),
    }
}

fn booleans<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, String> {
    let found = column(batch, name)?;
    found.as_boolean_opt().ok_or_else(|| mismatch(name, "Boolean", found))
}

#[cold]
fn mismatch(name: &str, expected: &str, found: &ArrayRef) -> String {
    format!(
        "column {name:?} of segments must be {expected}, got {}",
        found.data_type()
    )
}

fn optional<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    values.is_valid(row).then(|| values.value(row))
}

/// Reads the text of a row.
type Texts<'a> = Box<dyn Fn(usize) -> Option<&'a str> + 'a>;

fn addresses<'a>(batch: &'a RecordBatch, name: &str) -> Result<Texts<'a>, String> {
    let found = column(batch, name)?;
    Ok(match found.data_type() {
        DataType::Utf8 => texts(found.as_string::<i32>()),
        DataType::LargeUtf8 => texts(found.as_string::<i64>()),
        DataType::Utf8View => texts(found.as_string_view()),
        _ => return Err(mismatch(name, "String", found)),
    })
}

fn texts<'a>(array: impl arrow_array::ArrayAccessor<Item = &'a str> + 'a) -> Texts<'a> {
    Box::new(move |row| array.is_valid(row).then(|| array.value(row)))
}

fn address(texts: &Texts<'_>, row: usize, name: &str) -> Result<Address, String> {
    let text = texts(row).unwrap_or_default();
    match text.parse() {
        Ok(IpAddr::V4(v4)) => Ok(v4.to_ipv6_mapped().octets()),
        Ok(IpAddr::V6(v6)) => Ok(v6.octets()),
        Err(_) => Err(format!(
            "column {name:?} of segments must hold IP addresses, got {text:?}"
        )),
    }
}

fn edges(sack: &ArrayRef, row: usize, options: &mut Options) -> Result<(), String> {
    if sack.is_null(row) {
        return Ok(());
    }
    let list = match sack.data_type() {
        DataType::List(_) => sack.as_list::<i32>().value(row),
        DataType::LargeList(_) => sack.as_list::<i64>().value(row),
        DataType::Null => return Ok(()),
        _ => return Err(mismatch("sack", "List(UInt32)", sack)),
    };
    let Some(edges) = list.as_primitive_opt::<UInt32Type>() else {
        return Err(mismatch("sack", "List(UInt32)", sack));
    };
    for (slot, block) in options.sack.iter_mut().zip(edges.values().chunks_exact(2)) {
        *slot = (block[0], block[1]);
        options.sack_len += 1;
    }
    Ok(())
}
