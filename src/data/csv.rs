//! Tables as text.

use super::{Error, Result};
use ferroflow_ir::{DType, HostTensor, Shape};
use std::path::Path;

/// Reads columns of a file of comma-separated values with a heading: by name, as the dtypes asked
/// for, in this order. `float32`, `float64`, `int32`, `int64` and `string` there are; an empty
/// number is 0.
///
/// # Errors
///
/// [`Error::Format`] when a column is missing or a value is no number, with its line.
///
/// ```
/// use ferroflow::{data::read_csv, ir::DType};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("iris.csv");
/// std::fs::write(&path, "length,kind\n5.1,setosa\n7.0,\"versi,color\"\n")?;
/// let columns = read_csv(&path, &[("kind", DType::String), ("length", DType::F32)])?;
/// assert_eq!(columns[0].strings()?[1], "versi,color");
/// assert_eq!(columns[1].as_slice::<f32>()?, [5.1, 7.0]);
/// # Ok(())
/// # }
/// ```
pub fn read_csv(path: impl AsRef<Path>, columns: &[(&str, DType)]) -> Result<Vec<HostTensor>> {
    let path = path.as_ref();
    let wrong = |what: String| Error::Format { path: path.into(), what };
    let mut reader = ::csv::Reader::from_path(path).map_err(|error| wrong(error.to_string()))?;
    let headings = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    let mut chosen = Vec::with_capacity(columns.len());
    for &(name, dtype) in columns {
        let index = headings.iter().position(|heading| heading.trim() == name);
        let index = index.ok_or_else(|| {
            let there: Vec<&str> = headings.iter().collect();
            wrong(format!("there is no column `{name}`; there are {there:?}"))
        })?;
        let column = Column::new(dtype);
        chosen.push((index, column.ok_or_else(|| wrong(format!("no column can be {dtype}")))?));
    }
    for record in reader.records() {
        let record = record.map_err(|error| wrong(error.to_string()))?;
        let line = record.position().map_or(0, ::csv::Position::line);
        for (index, column) in &mut chosen {
            let value = record.get(*index).unwrap_or_default();
            if !column.push(value) {
                let name = &headings[*index];
                return Err(wrong(format!("line {line}: `{value}` in column `{name}`")));
            }
        }
    }
    chosen.into_iter().map(|(_, column)| Ok(column.into_tensor()?)).collect()
}

enum Column {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Text(Vec<bytes::Bytes>),
}

impl Column {
    fn new(dtype: DType) -> Option<Column> {
        Some(match dtype {
            DType::F32 => Column::F32(Vec::new()),
            DType::F64 => Column::F64(Vec::new()),
            DType::I32 => Column::I32(Vec::new()),
            DType::I64 => Column::I64(Vec::new()),
            DType::String => Column::Text(Vec::new()),
            _ => return None,
        })
    }

    /// Adds a value; `false` if it is none of the column's.
    fn push(&mut self, text: &str) -> bool {
        fn number<T: std::str::FromStr + Default>(text: &str, list: &mut Vec<T>) -> bool {
            let number = match text.trim() {
                "" => Some(T::default()),
                text => text.parse().ok(),
            };
            number.map(|number| list.push(number)).is_some()
        }
        match self {
            Column::F32(list) => number(text, list),
            Column::F64(list) => number(text, list),
            Column::I32(list) => number(text, list),
            Column::I64(list) => number(text, list),
            Column::Text(list) => {
                list.push(text.to_string().into());
                true
            }
        }
    }

    fn into_tensor(self) -> ferroflow_ir::Result<HostTensor> {
        match self {
            Column::F32(list) => HostTensor::vector(&list),
            Column::F64(list) => HostTensor::vector(&list),
            Column::I32(list) => HostTensor::vector(&list),
            Column::I64(list) => HostTensor::vector(&list),
            Column::Text(list) => HostTensor::from_strings(Shape::new([list.len()])?, list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "a,b\n1,2\n3,x\n").unwrap();
        let error = |columns| read_csv(&path, columns).unwrap_err().to_string();
        assert!(error(&[("b", DType::I32)]).ends_with("t.csv: line 3: `x` in column `b`"));
        assert!(error(&[("c", DType::I32)]).contains("there is no column `c`"));
        assert!(error(&[("a", DType::Variant)]).contains("no column can be variant"));
        let a = read_csv(&path, &[("a", DType::I64)]).unwrap().remove(0);
        assert_eq!(a.as_slice::<i64>().unwrap(), [1, 3]);
    }
}
