//! Convolutions and their gradients as products by tiles, one matrix of which is nowhere: its
//! elements are read where they lie in the images.

use super::{
    Shader,
    finish::EpilogueWriter,
    tiles::{self, TileOperand, TileSizes},
    window::{apart, inputs, outputs, together},
    word::Word,
};
use crate::plan::window::Sweep;
use ferroflow_ir::window::Slide;
use std::fmt::Write;

/// Groups that a gradient of filters must have: it sums over all windows, so that few groups would
/// be longer at it than many single invocations.
const FEWEST_TILES: usize = 16;

/// Operands that kernel offsets meet.
enum Met {
    /// Positions of the images, from windows.
    Positions,
    /// Windows, from positions of the images.
    Windows,
}

/// A convolution of one group.
pub(super) struct Convolution<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) filters: usize,
}

impl Convolution<'_> {
    fn taps(&self) -> usize {
        self.sweep.slides.iter().map(|slide| slide.size).product()
    }

    /// Elements of all images, but for channels.
    fn places(&self) -> usize {
        self.sweep.batch * inputs(self.sweep).iter().product::<usize>()
    }

    /// Reads what taps of places meet, a `width` of elements each; the number of tap and element
    /// goes down the product where this `is_deep`, and that of places the other way.
    fn met(&self, met: Met, width: usize, is_deep: bool) -> TileOperand {
        let [tap, place] = if is_deep { ["deep", "along"] } else { ["along", "deep"] };
        let windows = ("w", outputs(self.sweep));
        let positions = ("p", inputs(self.sweep));
        let (buffer, from, to, (find, inside)) = match met {
            Met::Positions => ("in0", windows, positions, self.covered()),
            Met::Windows => ("in1", positions, windows, self.covering()),
        };
        let [_, b, c] = self.sweep.slides.map(|slide| slide.size);
        let read = format!(
            "let tap = {tap} / {width}u;\n\
             let tz = tap % {c}u;\nlet ty = tap / {c}u % {b}u;\nlet tx = tap / {}u;\n\
             {}{find}if ({inside}) {{ x = {buffer}[{} * {width}u + {tap} % {width}u]; }}\n",
            b * c,
            apart(place, from.0, from.1),
            together(to.0, to.1),
        );
        TileOperand { read, is_deep }
    }

    /// The statements that find the position of a tap of a window, and when that is inside.
    fn covered(&self) -> (String, String) {
        let (mut text, mut inside) = (String::new(), Vec::new());
        for (axis, slide) in ["x", "y", "z"].iter().zip(&self.sweep.slides) {
            let Slide { input, stride, dilation, before, .. } = slide;
            let _ = writeln!(
                text,
                "let p{axis} = w{axis} * {stride}u + t{axis} * {dilation}u - u32(i32({before}));"
            );
            inside.push(format!("p{axis} < {input}u"));
        }
        (text, inside.join(" && "))
    }

    /// The statements that find the window of which a tap lies at a position, and when there is one.
    fn covering(&self) -> (String, String) {
        let (mut text, mut inside) = (String::new(), Vec::new());
        for (axis, slide) in ["x", "y", "z"].iter().zip(&self.sweep.slides) {
            let Slide { output, stride, dilation, before, .. } = slide;
            let _ = writeln!(
                text,
                "let f{axis} = p{axis} + u32(i32({before})) - t{axis} * {dilation}u;\n\
                 let w{axis} = f{axis} / {stride}u;"
            );
            inside.push(format!("f{axis} < {}u && f{axis} % {stride}u == 0u", output * stride));
        }
        (text, inside.join(" && "))
    }

    /// Windows by filters; `in0` are the images, `in1` the filters.
    pub(super) fn forward(
        &self,
        bound: Vec<(usize, Word)>,
        finish: &EpilogueWriter,
    ) -> Option<Shader> {
        let (width, filters) = (self.sweep.channels, self.filters);
        let (m, k) = (self.sweep.n_windows(), self.taps() * width);
        if !tiles::fits(m, k, filters) {
            return None;
        }
        let windows = self.met(Met::Positions, width, true);
        let read = format!("x = in1[deep * {filters}u + along];");
        let weights = TileOperand { read, is_deep: false };
        let sizes = TileSizes { m, k, n: filters, batch: 1 };
        Some(tiles::tiled(bound, finish, &sizes, "", [&windows, &weights]))
    }

    /// Places by channels, summed over taps and filters; `in0` are the filters, `in1` the gradient.
    pub(super) fn of_images(
        &self,
        bound: Vec<(usize, Word)>,
        finish: &EpilogueWriter,
    ) -> Option<Shader> {
        let (width, filters) = (self.sweep.channels, self.filters);
        let (m, k) = (self.places(), self.taps() * filters);
        if !tiles::fits(m, k, width) {
            return None;
        }
        let gradient = self.met(Met::Windows, filters, true);
        let read = format!(
            "x = in0[(deep / {filters}u * {width}u + along) * {filters}u + deep % {filters}u];"
        );
        let weights = TileOperand { read, is_deep: true };
        let sizes = TileSizes { m, k, n: width, batch: 1 };
        Some(tiles::tiled(bound, finish, &sizes, "", [&gradient, &weights]))
    }

    /// Taps and channels by filters, summed over windows; `in0` are the images, `in1` the gradient.
    pub(super) fn of_filters(
        &self,
        bound: Vec<(usize, Word)>,
        finish: &EpilogueWriter,
    ) -> Option<Shader> {
        let (width, filters) = (self.sweep.channels, self.filters);
        let (m, k) = (self.taps() * width, self.sweep.n_windows());
        if !tiles::fits(m, k, filters) || tiles::count(m, filters) < FEWEST_TILES {
            return None;
        }
        let images = self.met(Met::Positions, width, false);
        let read = format!("x = in1[deep * {filters}u + along];");
        let gradient = TileOperand { read, is_deep: false };
        let sizes = TileSizes { m, k, n: filters, batch: 1 };
        Some(tiles::tiled(bound, finish, &sizes, "", [&images, &gradient]))
    }
}
