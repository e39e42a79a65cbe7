//! Text in columns: `DecodeCSV` (RFC 4180, as `decode_csv_op.cc` reads it).

use crate::{
    cpu::{
        Build,
        cell::Cell,
        string::to_number::{float, integer},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("DecodeCSV", decode)];

/// Syntax of the records.
#[derive(Debug, Clone)]
struct Layout {
    delimiter: u8,
    quotes: bool,
    /// Text that means absence, besides an empty field.
    absent: Bytes,
    /// The columns wanted; all if there are none.
    columns: Vec<usize>,
}

fn wrong(expected: impl Into<std::borrow::Cow<'static, str>>, found: &[u8]) -> crate::Error {
    let found = String::from_utf8_lossy(found);
    Error::argument("DecodeCSV", "records", expected, found).into()
}

impl Layout {
    /// The fields of a record in the columns wanted.
    fn fields(&self, record: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut fields = Vec::new();
        let mut rest = record;
        let mut column = 0;
        let mut put = |field: Vec<u8>| {
            if self.columns.is_empty() || self.columns.binary_search(&column).is_ok() {
                fields.push(field);
            }
            column += 1;
        };
        loop {
            let breaks = rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            rest = &rest[breaks..];
            match rest {
                [] => break,
                [b'"', inside @ ..] if self.quotes => {
                    let (field, after) = self.quoted(inside).ok_or_else(|| {
                        wrong("with quotes only around fields, or doubled", record)
                    })?;
                    put(field);
                    rest = after.split_first().map_or(after, |(_, after)| after);
                }
                _ => {
                    let end = rest.iter().position(|&byte| byte == self.delimiter);
                    let (field, after) = rest.split_at(end.unwrap_or(rest.len()));
                    let bad =
                        |byte: &u8| matches!(byte, b'\n' | b'\r') || self.quotes && *byte == b'"';
                    if field.iter().any(bad) {
                        return Err(wrong("without quotes and line breaks in fields", record));
                    }
                    put(field.to_vec());
                    rest = after.split_first().map_or(after, |(_, after)| after);
                }
            }
        }
        if record.last() == Some(&self.delimiter) {
            put(Vec::new());
        }
        Ok(fields)
    }

    /// A field up to its closing quote, and what comes after that: nothing, or a delimiter.
    fn quoted<'a>(&self, mut rest: &'a [u8]) -> Option<(Vec<u8>, &'a [u8])> {
        let mut field = Vec::new();
        loop {
            match rest {
                [b'"'] => return Some((field, &[])),
                [b'"', after @ ..] if after[0] == self.delimiter => return Some((field, after)),
                [b'"', b'"', after @ ..] => {
                    field.push(b'"');
                    rest = after;
                }
                [b'"', ..] | [] => return None,
                [byte, after @ ..] => {
                    field.push(*byte);
                    rest = after;
                }
            }
        }
    }
}

fn decode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let column = |&column: &i64| usize::try_from(column).unwrap_or(usize::MAX);
    let layout = Layout {
        delimiter: call.attrs.bytes("field_delim")?.first().copied().unwrap_or(b','),
        quotes: call.attrs.bool("use_quote_delim")?,
        absent: call.attrs.bytes("na_value")?.clone(),
        columns: call.attrs.ints("select_cols")?.iter().map(column).collect(),
    };
    let types = call.attrs.types("OUT_TYPE")?.to_vec();
    let defaults: Vec<bool> =
        (0..types.len()).map(|n| call.shape(n + 1).num_elements() == 1).collect();
    let shape = call.shape(0).clone();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let mut columns: Vec<Vec<Option<Bytes>>> = vec![Vec::new(); types.len()];
        for record in io.strings(0)? {
            let fields = layout.fields(record)?;
            if fields.len() != types.len() {
                return Err(wrong(format!("of {} fields", types.len()), record));
            }
            for ((column, field), &has_default) in columns.iter_mut().zip(fields).zip(&defaults) {
                let is_present = !field.is_empty() && field != layout.absent;
                if !is_present && !has_default {
                    return Err(wrong("with all fields that are required", record));
                }
                column.push(is_present.then(|| field.into()));
            }
        }
        for (n, (column, &dtype)) in columns.iter().zip(&types).enumerate() {
            match dtype {
                DType::F32 => put(io, n, dtype, &shape, column, |text| float::<f32>(text))?,
                DType::F64 => put(io, n, dtype, &shape, column, |text| float::<f64>(text))?,
                DType::I32 => put(io, n, dtype, &shape, column, |text| integer::<i32>(text))?,
                DType::I64 => put(io, n, dtype, &shape, column, |text| integer::<i64>(text))?,
                _ => put(io, n, dtype, &shape, column, |text| Some(text.clone()))?,
            }
        }
        Ok(())
    })))
}

/// Writes one column; the default stands for what is absent.
fn put<T: Cell>(
    io: &mut Io<'_>,
    output: usize,
    dtype: DType,
    shape: &Shape,
    column: &[Option<Bytes>],
    read: impl Fn(&Bytes) -> Option<T>,
) -> Result<()> {
    let default = T::read(io, output + 1)?.first().cloned().unwrap_or_else(T::blank);
    T::write(io, output, dtype, shape, |out| {
        for (out, field) in out.iter_mut().zip(column) {
            *out = match field {
                None => default.clone(),
                Some(text) => read(text).ok_or_else(|| wrong(dtype.name(), text))?,
            };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let layout =
            Layout { delimiter: b',', quotes: true, absent: Bytes::new(), columns: Vec::new() };
        let check = |record: &str, expected: Option<&[&str]>| {
            let fields = layout.fields(record.as_bytes()).ok();
            let expected: Option<Vec<Vec<u8>>> = expected
                .map(|fields| fields.iter().map(|field| field.as_bytes().to_vec()).collect());
            assert_eq!(fields, expected, "{record}");
        };
        check("a,b", Some(&["a", "b"]));
        check("a,", Some(&["a", ""]));
        check("\"a\"\"b\",c", Some(&["a\"b", "c"]));
        check("\"a\nb\",c", Some(&["a\nb", "c"]));
        check("\"\"", Some(&[""]));
        check("", Some(&[]));
        check("\"a\"b,c", None);
        check("a\"b,c", None);
        check("\"a,c", None);
        check("a\nb,c", None);
        check("\"a\" ,b", None);
        let second = Layout { columns: vec![1], ..layout.clone() };
        assert_eq!(second.fields(b"1,2,3").unwrap(), [b"2"]);
    }
}
