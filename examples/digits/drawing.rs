//! The loss as a curve, and the digits that were misread.

use crate::Misread;
use anyhow::Result;
use plotters::prelude::*;
use std::path::Path;

pub(crate) fn draw(path: &Path, losses: &[f32], misread: &[Misread]) -> Result<()> {
    let area = SVGBackend::new(path, (900, 520)).into_drawing_area();
    area.fill(&WHITE)?;
    let (above, below) = area.split_vertically(360);
    let highest = losses.iter().copied().fold(0.0f32, f32::max);
    let mut chart = ChartBuilder::on(&above)
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(40)
        .build_cartesian_2d(0..losses.len(), 0.0..highest)?;
    chart.configure_mesh().x_desc("step").y_desc("loss").draw()?;
    chart.draw_series(LineSeries::new(losses.iter().copied().enumerate(), &BLUE))?;
    for (cell, digit) in below.margin(8, 8, 8, 8).split_evenly((1, 8)).iter().zip(misread) {
        let grid = ChartBuilder::on(cell)
            .caption(format!("{} read as {}", digit.label, digit.read_as), ("sans-serif", 13))
            .margin(4)
            .build_cartesian_2d(0..8i32, 0..8i32)?;
        for (index, &pixel) in (0..).zip(&digit.pixels) {
            let (x, y) = (index % 8, 7 - index / 8);
            let shade = 255 - (pixel * 255.0) as u8;
            let colour = RGBColor(shade, shade, shade).filled();
            let corners = [(x, y), (x + 1, y + 1)].map(|corner| grid.backend_coord(&corner));
            let origin = cell.get_base_pixel();
            let corners = corners.map(|(x, y)| (x - origin.0, y - origin.1));
            cell.draw(&Rectangle::new(corners, colour))?;
        }
    }
    area.present()?;
    Ok(())
}
