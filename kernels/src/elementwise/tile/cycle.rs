//! Inputs that begin again and again, as a row that is added to each row of a matrix: they are
//! gathered once, and tiles read on from where the last one ended.

use crate::{elementwise::gather, scratch::Scratch};
use ferroflow_ir::{Error, StridedView};

/// Elements of a window that begins again, more than once around by a tile.
pub(super) struct Cycle {
    pub(super) elements: Scratch<u8>,
    /// Bytes after which they begin again.
    pub(super) period: usize,
    /// Where the first tile begins, less than the period.
    pub(super) at: usize,
}

impl Cycle {
    /// Elements of a window that `n_tiles` tiles of `N` elements from `start` on read; `None` if it
    /// does not begin again often enough.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when there is no memory.
    pub(super) fn of<const N: usize>(
        view: &StridedView,
        source: &[u8],
        width: usize,
        start: usize,
        n_tiles: usize,
    ) -> Result<Option<Cycle>, Error> {
        let Some(period) = view.period() else { return Ok(None) };
        if 2 * (period + N) > n_tiles * N {
            return Ok(None);
        }
        let mut elements = Scratch::new((period + N) * width)?;
        gather(view, source, 0, &mut elements, width);
        let (period, at) = (period * width, start % period * width);
        Ok(Some(Cycle { elements, period, at }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::view::ViewDim;

    #[test]
    fn tiles_are_whole_wherever_they_begin() {
        const N: usize = 16;
        let dim = |size, stride| ViewDim { size, stride };
        let view = |dims: [ViewDim; 2]| StridedView { offset: 0, dims: dims.as_slice().into() };
        let source: Vec<u16> = (0..7).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&source);
        let rows = view([dim(20, 0), dim(7, 1)]);
        let cycle = Cycle::of::<N>(&rows, bytes, 2, 3, 6).unwrap().expect("it begins again");
        assert_eq!((cycle.period, cycle.at), (7 * 2, 3 * 2));
        for at in 0..7 {
            let expected: Vec<u16> = (at..at + N).map(|n| (n % 7) as u16).collect();
            let tile = &cycle.elements[at * 2..][..N * 2];
            assert_eq!(bytemuck::cast_slice::<u8, u16>(tile), expected);
        }
        assert!(Cycle::of::<N>(&rows, bytes, 2, 3, 2).unwrap().is_none(), "not often enough");
        let columns = view([dim(7, 1), dim(20, 0)]);
        assert!(Cycle::of::<N>(&columns, bytes, 2, 0, 6).unwrap().is_none(), "not at all");
    }
}
