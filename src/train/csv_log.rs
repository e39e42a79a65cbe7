//! Figures of trainings as a table.

use ferroflow_nn::train::{Callback, CallbackResult, Logs, Training};
use std::{
    fs::{File, OpenOptions},
    io,
    ops::ControlFlow,
    path::Path,
};

/// Writes a line of comma-separated values for each epoch: its number, and all figures. The first line
/// has their names.
#[derive(Debug)]
pub struct CsvLog {
    writer: csv::Writer<File>,
    has_heading: bool,
}

impl CsvLog {
    /// A new file, in place of one that is there.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn new(path: impl AsRef<Path>) -> io::Result<CsvLog> {
        Ok(CsvLog { writer: csv::Writer::from_writer(File::create(path)?), has_heading: false })
    }

    /// The file of an earlier training, which goes on; a new one if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn append(path: impl AsRef<Path>) -> io::Result<CsvLog> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let has_heading = file.metadata()?.len() > 0;
        Ok(CsvLog { writer: csv::Writer::from_writer(file), has_heading })
    }
}

impl Callback for CsvLog {
    fn epoch_end(&mut self, _: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        if !self.has_heading {
            let names = logs.iter().map(|(name, _)| name);
            self.writer.write_record(std::iter::once("epoch").chain(names))?;
            self.has_heading = true;
        }
        let figures = logs.iter().map(|(_, figure)| figure.to_string());
        self.writer.write_record(std::iter::once(epoch.to_string()).chain(figures))?;
        self.writer.flush()?;
        Ok(ControlFlow::Continue(()))
    }
}
