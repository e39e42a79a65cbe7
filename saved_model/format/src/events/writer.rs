//! Writing event files.

use crate::{
    error::{Error, Result},
    proto::{Event, SourceMetadata, event::What},
    record_file::write_record,
};
use ferroflow_ir::clock::{Instant, SystemTime, UNIX_EPOCH};
use prost::Message;
use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A file that events are added to. What is added is kept back until there are `max_queue` events,
/// or the oldest is `flush_after` old and another comes, or somebody asks for it: TensorFlow's
/// rules. Dropping it writes the rest.
#[derive(Debug)]
pub struct EventsWriter {
    path: PathBuf,
    file: BufWriter<File>,
    max_queue: usize,
    flush_after: Duration,
    n_waiting: usize,
    flushed: Instant,
}

impl EventsWriter {
    /// Begins a file in `folder`, which is made if it is missing. It is named as TensorFlow names
    /// them: `events.out.tfevents.<seconds>.<host>.<process>.<number><suffix>`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn create(
        folder: &Path,
        suffix: &str,
        max_queue: usize,
        flush_after: Duration,
    ) -> Result<EventsWriter> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = host_name();
        let (seconds, process) = (wall_time().floor(), process::id());
        let name = format!("events.out.tfevents.{seconds}.{host}.{process}.{number}{suffix}");
        let path = folder.join(name);
        let open = || {
            fs::create_dir_all(folder)?;
            OpenOptions::new().write(true).create_new(true).open(&path)
        };
        let file = open().map_err(|source| Error::Io { path: path.clone(), source })?;
        let file = BufWriter::new(file);
        let flushed = Instant::now();
        let mut writer = EventsWriter { path, file, max_queue, flush_after, n_waiting: 0, flushed };
        writer.write(&first_event())?;
        writer.flush()?;
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds what happened now, at a step.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn add(&mut self, step: i64, what: What) -> Result<()> {
        self.add_event(&Event {
            wall_time: wall_time(),
            step,
            what: Some(what),
            ..Event::default()
        })
    }

    /// Adds an event.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn add_event(&mut self, event: &Event) -> Result<()> {
        self.write(event)?;
        self.n_waiting += 1;
        if self.n_waiting > self.max_queue || self.flushed.elapsed() >= self.flush_after {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands all that was added to the system.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn flush(&mut self) -> Result<()> {
        (self.n_waiting, self.flushed) = (0, Instant::now());
        self.file.flush().map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    fn write(&mut self, event: &Event) -> Result<()> {
        write_record(&mut self.file, &event.encode_to_vec())
            .map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

#[cfg(not(target_family = "wasm"))]
fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// A page has no name of its own.
#[cfg(target_family = "wasm")]
fn host_name() -> String {
    "localhost".into()
}

fn first_event() -> Event {
    let writer = "tensorflow.core.util.events_writer".into();
    Event {
        wall_time: wall_time().floor(),
        what: Some(What::FileVersion("brain.Event:2".into())),
        source_metadata: Some(SourceMetadata { writer }),
        ..Event::default()
    }
}

/// Seconds since 1970.
fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events;
    use ferroflow_ir::Limits;

    fn n_events(writer: &EventsWriter) -> usize {
        let events: Result<Vec<Event>> =
            events::read(writer.path(), &Limits::default()).unwrap().collect();
        events.unwrap().len()
    }

    #[test]
    fn events_wait_until_there_are_enough_or_flush_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3600);
        let mut writer = EventsWriter::create(folder.path(), ".v2", 1, hour).unwrap();
        let add = |writer: &mut EventsWriter, step| {
            writer.add(step, What::GraphDef(b"".as_slice().into())).unwrap();
        };
        assert_eq!(n_events(&writer), 1, "the version of the format");
        add(&mut writer, 0);
        assert_eq!(n_events(&writer), 1);
        add(&mut writer, 1);
        assert_eq!(n_events(&writer), 3);
        add(&mut writer, 2);
        writer.flush().unwrap();
        assert_eq!(n_events(&writer), 4);
        writer.flush_after = Duration::ZERO;
        writer.max_queue = 10;
        add(&mut writer, 3);
        assert_eq!(n_events(&writer), 5);
    }
}
