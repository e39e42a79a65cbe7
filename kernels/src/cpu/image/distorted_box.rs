//! `_SampleDistortedBoundingBox`: random windows of an image that show enough of an object.
//!
//! The windows are those of TensorFlow for the same key and counter
//! (`sample_distorted_bounding_box_op.cc`), so the arithmetic is that of single precision there.

use crate::{
    cpu::{Build, random::generator},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    philox::Words,
};
use ferroflow_ir::{DType, Error, budget};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("_SampleDistortedBoundingBox", build)];

const OP: &str = "_SampleDistortedBoundingBox";

/// A window: its first row and column, and those behind the last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    top: i32,
    left: i32,
    bottom: i32,
    right: i32,
}

impl Window {
    fn area(&self) -> f32 {
        (self.right - self.left).wrapping_mul(self.bottom - self.top) as f32
    }

    fn intersection(&self, other: &Window) -> Window {
        let top = self.top.max(other.top);
        let left = self.left.max(other.left);
        let bottom = self.bottom.min(other.bottom);
        let right = self.right.min(other.right);
        match top <= bottom && left <= right {
            true => Window { top, left, bottom, right },
            false => Window { top: 0, left: 0, bottom: 0, right: 0 },
        }
    }

    /// Whether it shows this part of one of the objects that have pixels.
    fn shows(&self, objects: &[Window], part: f32) -> bool {
        let has_pixels = |window: &Window| window.area() >= 1.0;
        let enough = |object: &Window| self.intersection(object).area() / object.area() >= part;
        has_pixels(self) && objects.iter().filter(|object| has_pixels(object)).any(enough)
    }
}

/// The bounds of windows: their areas, aspect ratios and coverage.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Width by height.
    ratios: [f32; 2],
    /// Parts of the image.
    areas: [f32; 2],
    attempts: i64,
    whole_without_objects: bool,
}

impl Bounds {
    fn new(call: &OpCall<'_>) -> Result<Bounds> {
        let pair = |name: &'static str, most: f32| -> Result<[f32; 2]> {
            let list = call.attrs.floats(name)?;
            let fits = |pair: &[f32; 2]| pair.iter().all(|&x| x > 0.0 && x <= most);
            let pair = <[f32; 2]>::try_from(list).ok().filter(fits);
            pair.ok_or_else(|| {
                call.wrong(name, "two positive numbers in range", format!("{list:?}"))
            })
        };
        let attempts = call.attrs.int("max_attempts")?;
        if attempts <= 0 {
            return Err(call.wrong("max_attempts", "positive", attempts));
        }
        Ok(Bounds {
            ratios: pair("aspect_ratio_range", f32::INFINITY)?,
            areas: pair("area_range", 1.0)?,
            attempts,
            whole_without_objects: call.attrs.bool("use_image_if_no_bounding_boxes")?,
        })
    }

    /// A window of an image of this height and width; the image if none was found.
    fn draw(&self, words: &mut Words, image: [i32; 2], objects: &[Window], part: f32) -> Window {
        let [low, high] = self.ratios;
        for _ in 0..self.attempts {
            budget::tick();
            let ratio = words.next_f32() * (high - low) + low;
            let window = self.propose(words, image, ratio);
            if let Some(window) = window.filter(|window| window.shows(objects, part)) {
                return window;
            }
        }
        Window { top: 0, left: 0, bottom: image[0], right: image[1] }
    }

    /// A window of this ratio of width and height, if there is one.
    fn propose(&self, words: &mut Words, [rows, columns]: [i32; 2], ratio: f32) -> Option<Window> {
        let [low, high] = self.areas;
        if ratio <= 0.0 || rows <= 0 || columns <= 0 || low > high {
            return None;
        }
        let width_of = |height: i32| (height as f32 * ratio).round_ties_even() as i32;
        let least = low * columns as f32 * rows as f32;
        let most = high * columns as f32 * rows as f32;
        let height_of = |area: f32| (area / ratio).sqrt().round_ties_even() as i32;
        let mut tallest = height_of(most);
        if width_of(tallest) > columns {
            const MARGIN: f32 = 0.000_000_1;
            tallest = ((f64::from(columns) + 0.5 - f64::from(MARGIN)) / f64::from(ratio)) as i32;
            tallest -= i32::from(width_of(tallest) > columns);
        }
        let tallest = tallest.min(rows);
        let mut height = height_of(least).min(tallest);
        if height < tallest {
            height += words.below_u32((tallest - height + 1) as u32) as i32;
        }
        let area_of = |height: i32| width_of(height).wrapping_mul(height) as f32;
        height += i32::from(area_of(height) < least);
        height -= i32::from(area_of(height) > most);
        let (width, area) = (width_of(height), area_of(height));
        let fits = (least..=most).contains(&area) && width <= columns && height <= rows;
        if !fits || width <= 0 || height <= 0 {
            return None;
        }
        let mut offset = |size: i32, own: i32| match own < size {
            true => words.below_u32((size - own) as u32) as i32,
            false => 0,
        };
        let (top, left) = (offset(rows, height), offset(columns, width));
        Some(Window { top, left, bottom: top + height, right: left + width })
    }
}

fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (bounds, dtype) = (Bounds::new(call)?, call.dtype(0));
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let image = size(io, dtype)?;
        let part: f32 = io.scalar(2);
        if !(part >= 0.0) {
            let expected = "not negative";
            return Err(Error::argument(OP, "min_object_covered", expected, part).into());
        }
        let mut objects = objects(io.input(1), image)?;
        if objects.is_empty() {
            if !bounds.whole_without_objects {
                let expected = "of one box at least";
                return Err(Error::argument(OP, "bounding_boxes", expected, "none").into());
            }
            objects.push(Window { top: 0, left: 0, bottom: image[0], right: image[1] });
        }
        let mut words = Words::new(generator(io, OP, 3)?);
        let window = bounds.draw(&mut words, image, &objects, part);
        write(io, dtype, image, window);
        Ok(())
    })))
}

/// The height and the width of the image.
fn size(io: &Io<'_>, dtype: DType) -> Result<[i32; 2]> {
    let element = |index: usize| match dtype {
        DType::U8 => i64::from(io.input::<u8>(0)[index]),
        DType::I8 => io.input::<i8>(0)[index].into(),
        DType::I16 => io.input::<i16>(0)[index].into(),
        DType::I32 => io.input::<i32>(0)[index].into(),
        _ => io.input::<i64>(0)[index],
    };
    let mut found = [0; 2];
    for (index, found) in found.iter_mut().enumerate() {
        let size = i32::try_from(element(index)).ok().filter(|&size| (0..i32::MAX).contains(&size));
        let expected = format!("from 0 to {}", i32::MAX);
        *found = size.ok_or_else(|| Error::argument(OP, "image_size", expected, element(index)))?;
    }
    Ok(found)
}

/// The boxes, which are parts of the image, in pixels.
fn objects(boxes: &[f32], [rows, columns]: [i32; 2]) -> Result<Vec<Window>> {
    if let Some(edge) = boxes.iter().find(|edge| !(0.0..=1.0).contains(*edge)) {
        return Err(Error::argument(OP, "bounding_boxes", "within [0, 1]", edge).into());
    }
    let pixel = |part: f32, size: i32| (part * size as f32) as i32;
    let window = |edges: &[f32]| Window {
        top: pixel(edges[0], rows),
        left: pixel(edges[1], columns),
        bottom: pixel(edges[2], rows),
        right: pixel(edges[3], columns),
    };
    Ok(boxes.chunks_exact(4).map(window).collect())
}

/// Where the window begins and how large it is, as `Slice` takes it, and its box.
fn write(io: &mut Io<'_>, dtype: DType, [rows, columns]: [i32; 2], window: Window) {
    let begin = [window.top, window.left, 0];
    let size = [window.bottom - window.top, window.right - window.left, -1];
    for (output, values) in [begin, size].into_iter().enumerate() {
        match dtype {
            DType::U8 => io.output(output).copy_from_slice(&values.map(|x| x as u8)),
            DType::I8 => io.output(output).copy_from_slice(&values.map(|x| x as i8)),
            DType::I16 => io.output(output).copy_from_slice(&values.map(|x| x as i16)),
            DType::I32 => io.output(output).copy_from_slice(&values),
            _ => io.output(output).copy_from_slice(&values.map(i64::from)),
        }
    }
    let (height, width) = (rows as f32, columns as f32);
    io.output(2).copy_from_slice(&[
        window.top as f32 / height,
        window.left as f32 / width,
        window.bottom as f32 / height,
        window.right as f32 / width,
    ]);
}
