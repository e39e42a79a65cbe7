//! Pieces of tensors: how they are cut out, and put together again.

use super::Layout;
use crate::{
    error::{Error, Result},
    host_tensor::HostTensor,
    shape::Shape,
};
use std::ops::Range;

impl Layout {
    /// The part of each dimension of a tensor that a device has.
    fn part(&self, piece: &Shape, device: usize) -> Vec<Range<usize>> {
        let coordinates = self.mesh.coordinates(device);
        let range = |(&size, spec): (&usize, &Option<usize>)| {
            let at = spec.map_or(0, |dim| coordinates[dim]);
            at * size..(at + 1) * size
        };
        piece.iter().zip(&self.specs).map(range).collect()
    }

    /// The pieces of a tensor, one for each device.
    ///
    /// # Errors
    ///
    /// As [`piece_shape`](Layout::piece_shape); [`Error::DType`] for handles that would be split.
    pub fn split(&self, tensor: &HostTensor) -> Result<Vec<HostTensor>> {
        let n_devices = self.mesh.devices().len();
        let piece = self.piece_shape(tensor.shape())?;
        if self.is_replicated() {
            return Ok(vec![tensor.clone(); n_devices]);
        }
        let cut = |device| {
            let part = self.part(&piece, device);
            collect(tensor, &runs(tensor.shape(), &part), piece.clone())
        };
        (0..n_devices).map(cut).collect()
    }

    /// The whole of a tensor, of the pieces of all devices.
    ///
    /// # Errors
    ///
    /// [`Error::Layout`] when there are not as many pieces as devices or their shapes or dtypes differ;
    /// [`Error::DType`] for handles.
    pub fn join(&self, pieces: &[HostTensor]) -> Result<HostTensor> {
        let unfit = |problem: String| Error::Layout {
            what: "a tensor".into(),
            layout: self.to_string(),
            problem,
        };
        let n_devices = self.mesh.devices().len();
        let Some(first) = pieces.first().filter(|_| pieces.len() == n_devices) else {
            return Err(unfit(format!("{} pieces for {n_devices} devices", pieces.len())));
        };
        let alike =
            |piece: &&HostTensor| piece.dtype() != first.dtype() || piece.shape() != first.shape();
        if let Some(piece) = pieces.iter().find(alike) {
            let found = format!("{}{}", piece.dtype(), piece.shape());
            return Err(unfit(format!("pieces of {}{} and {found}", first.dtype(), first.shape())));
        }
        let shape = self.whole_shape(first.shape())?;
        if self.is_replicated() {
            return Ok(first.clone());
        }
        assemble(pieces, &shape, |device| runs(&shape, &self.part(first.shape(), device)))
    }
}

/// The contiguous ranges of elements that a box of a tensor consists of, in order.
fn runs(shape: &Shape, part: &[Range<usize>]) -> Vec<Range<usize>> {
    let Some((last, outer)) = part.split_last() else { return std::iter::once(0..1).collect() };
    let mut starts = vec![0usize];
    for (&size, range) in shape.iter().zip(outer) {
        let next = starts.iter().flat_map(|start| range.clone().map(move |at| start * size + at));
        starts = next.collect();
    }
    let size = shape.last().copied().unwrap_or(1);
    starts.iter().map(|start| start * size + last.start..start * size + last.end).collect()
}

/// The elements of these ranges.
fn collect(tensor: &HostTensor, runs: &[Range<usize>], shape: Shape) -> Result<HostTensor> {
    let size = tensor.dtype().size().filter(|_| tensor.is_plain());
    let Some(size) = size else {
        let strings = tensor.strings()?;
        let taken = runs.iter().flat_map(|run| strings[run.clone()].iter().cloned()).collect();
        return HostTensor::from_strings(shape, taken);
    };
    let mut bytes = Vec::with_capacity(shape.num_elements() * size);
    for run in runs {
        bytes.extend_from_slice(&tensor.bytes()[run.start * size..run.end * size]);
    }
    HostTensor::from_bytes(tensor.dtype(), shape, &bytes)
}

/// A tensor of pieces, each of whose elements go to the ranges of its device, in order.
fn assemble(
    pieces: &[HostTensor],
    shape: &Shape,
    runs: impl Fn(usize) -> Vec<Range<usize>>,
) -> Result<HostTensor> {
    let dtype = pieces[0].dtype();
    let Some(size) = dtype.size().filter(|_| pieces.iter().all(HostTensor::is_plain)) else {
        let mut strings = vec![Default::default(); shape.num_elements()];
        for (device, piece) in pieces.iter().enumerate() {
            let positions = runs(device).into_iter().flatten();
            positions.zip(piece.strings()?).for_each(|(at, text)| strings[at] = text.clone());
        }
        return HostTensor::from_strings(shape.clone(), strings);
    };
    let mut whole = HostTensor::zeros(dtype, shape.clone())?;
    for (device, piece) in pieces.iter().enumerate() {
        let mut from = piece.bytes();
        for run in runs(device) {
            let (head, rest) = from.split_at(run.len() * size);
            whole.bytes_mut()[run.start * size..run.end * size].copy_from_slice(head);
            from = rest;
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::mesh::tests::mesh;

    #[test]
    fn pieces_join_to_the_whole() {
        let mesh = mesh(&[("x", 2), ("y", 3)]);
        let shape = Shape::new([4, 2, 6]).unwrap();
        let numbers: Vec<i32> = (0..48).collect();
        let tensor = HostTensor::from_slice(shape.clone(), &numbers).unwrap();
        let texts = numbers.iter().map(|n| n.to_string().into()).collect();
        let strings = HostTensor::from_strings(shape, texts).unwrap();
        for specs in [["unsharded"; 3], ["x", "unsharded", "y"], ["unsharded", "x", "y"]] {
            let layout = Layout::new(&mesh, specs).unwrap();
            let pieces = layout.split(&tensor).unwrap();
            assert_eq!(pieces.len(), 6);
            assert_eq!(layout.join(&pieces).unwrap().bytes(), tensor.bytes());
            let pieces = layout.split(&strings).unwrap();
            assert_eq!(
                layout.join(&pieces).unwrap().strings().unwrap(),
                strings.strings().unwrap()
            );
        }
    }

    #[test]
    fn uneven_and_unknown_splits_are_errors() {
        let mesh = mesh(&[("x", 2)]);
        let rows = Layout::new(&mesh, ["x"]).unwrap();
        let odd = HostTensor::vector(&[1.0f32, 2.0, 3.0]).unwrap();
        assert!(matches!(rows.split(&odd), Err(Error::Layout { .. })));
        assert!(matches!(rows.split(&HostTensor::scalar(1.0f32)), Err(Error::Layout { .. })));
        assert!(Layout::new(&mesh, ["y"]).is_err());
        assert!(Layout::new(&mesh, ["x", "x"]).is_err());
        assert!(rows.join(std::slice::from_ref(&odd)).is_err());
        assert!(rows.join(&[odd, HostTensor::scalar(1.0f32)]).is_err());
        let none = HostTensor::zeros(crate::DType::F32, Shape::new([0]).unwrap()).unwrap();
        assert_eq!(rows.join(&rows.split(&none).unwrap()).unwrap().len(), 0);
    }
}
