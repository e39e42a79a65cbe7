//! Convolutions and their gradients as products by tiles, one matrix of which is nowhere: its
//! elements are read where they lie in the images.

use super::{
    Shader,
    tiles::{self, Operand, Sizes},
    window::{apart, inputs, outputs, together},
    word::Word,
};
use crate::plan::window::Sweep;
use ferroflow_ir::{DType, window::Slide};
use std::fmt::Write;

/// Groups that a gradient of filters must have: it sums over all windows, so that few groups would
/// be longer at it than many single invocations.
const FEWEST_TILES: usize = 16;

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

    /// The statements that take `tap` apart.
    fn tap(&self) -> String {
        let [_, b, c] = self.sweep.slides.map(|slide| slide.size);
        format!("let tz = tap % {c}u;\nlet ty = tap / {c}u % {b}u;\nlet tx = tap / {}u;\n", b * c)
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
    pub(super) fn forward(&self, bound: Vec<(usize, Word)>, dtype: DType) -> Option<Shader> {
        let (width, filters) = (self.sweep.channels, self.filters);
        let (m, k) = (self.sweep.n_windows(), self.taps() * width);
        if !tiles::fits(m, k, filters) {
            return None;
        }
        let (positions, inside) = self.covered();
        let read = format!(
            "let tap = deep / {width}u;\n{}{}{positions}\
             if ({inside}) {{ x = in0[{} * {width}u + deep % {width}u]; }}\n",
            self.tap(),
            apart("along", "w", outputs(self.sweep)),
            together("p", inputs(self.sweep)),
        );
        let windows = Operand { read, is_deep: true };
        let read = format!("x = in1[deep * {filters}u + along];");
        let weights = Operand { read, is_deep: false };
        let sizes = Sizes { m, k, n: filters, batch: 1 };
        Some(tiles::tiled(bound, dtype, &sizes, "", [&windows, &weights]))
    }

    /// Places by channels, summed over taps and filters; `in0` are the filters, `in1` the gradient.
    pub(super) fn of_images(&self, bound: Vec<(usize, Word)>, dtype: DType) -> Option<Shader> {
        let (width, filters) = (self.sweep.channels, self.filters);
        let (m, k) = (self.places(), self.taps() * filters);
        if !tiles::fits(m, k, width) {
            return None;
        }
        let (windows, inside) = self.covering();
        let read = format!(
            "let tap = deep / {filters}u;\n{}{}{windows}\
             if ({inside}) {{ x = in1[{} * {filters}u + deep % {filters}u]; }}\n",
            self.tap(),
            apart("along", "p", inputs(self.sweep)),
            together("w", outputs(self.sweep)),
        );
        let gradient = Operand { read, is_deep: true };
        let read = format!(
            "x = in0[(deep / {filters}u * {width}u + along) * {filters}u + deep % {filters}u];"
        );
        let weights = Operand { read, is_deep: true };
        let sizes = Sizes { m, k, n: width, batch: 1 };
        Some(tiles::tiled(bound, dtype, &sizes, "", [&gradient, &weights]))
    }

    /// Taps and channels by filters, summed over windows; `in0` are the images, `in1` the gradient.
    pub(super) fn of_filters(&self, bound: Vec<(usize, Word)>, dtype: DType) -> Option<Shader> {
        let (width, filters) = (self.sweep.channels, self.filters);
        let (m, k) = (self.taps() * width, self.sweep.n_windows());
        if !tiles::fits(m, k, filters) || tiles::count(m, filters) < FEWEST_TILES {
            return None;
        }
        let (positions, inside) = self.covered();
        let read = format!(
            "let tap = along / {width}u;\n{}{}{positions}\
             if ({inside}) {{ x = in0[{} * {width}u + along % {width}u]; }}\n",
            self.tap(),
            apart("deep", "w", outputs(self.sweep)),
            together("p", inputs(self.sweep)),
        );
        let images = Operand { read, is_deep: false };
        let read = format!("x = in1[deep * {filters}u + along];");
        let gradient = Operand { read, is_deep: false };
        let sizes = Sizes { m, k, n: filters, batch: 1 };
        Some(tiles::tiled(bound, dtype, &sizes, "", [&images, &gradient]))
    }
}
