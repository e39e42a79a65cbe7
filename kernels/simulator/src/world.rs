//! Streams, events and graphs: what is to be done, and in which order it is.

use crate::memory::SimulatedMemory;
use cudarc::driver::sys::CUresult;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, LazyLock},
    time::Instant,
};

pub(crate) type CudaResult<T = ()> = Result<T, CUresult>;

/// Something to be done, once or, in graphs, any number of times.
pub(crate) type Job = Arc<dyn Fn(&mut SimulatedMemory) -> CudaResult + Send + Sync>;

/// Work of a stream.
#[derive(Clone)]
pub(crate) enum StreamWork {
    Job(Job),
    Graph(Arc<Vec<Node>>),
    /// An event has happened, for the time of this number.
    Record(usize, u64),
    /// Nothing goes on before an event has happened this often.
    Wait(usize, u64),
}

/// A job of a graph, after others.
pub(crate) struct Node {
    pub(crate) job: Job,
    pub(crate) after: Vec<usize>,
}

#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) queue: VecDeque<StreamWork>,
    /// The capture it takes part in, and the jobs there that its next one comes after.
    pub(crate) captured: Option<(usize, Vec<usize>)>,
}

#[derive(Default)]
pub(crate) struct Event {
    /// Number of requests and of events.
    recorded: u64,
    happened: u64,
    /// Where it was asked for last.
    stream: usize,
    /// While that is captured: the capture, and the jobs it comes after.
    pub(crate) captured: Option<(usize, Vec<usize>)>,
    pub(crate) at: Option<Instant>,
    /// Nobody may ask for it again; who waits for it still does.
    pub(crate) is_destroyed: bool,
}

/// A stream that is captured, and what was so far.
pub(crate) struct StreamCapture {
    pub(crate) origin: usize,
    pub(crate) nodes: Vec<Node>,
    /// Why nothing can come of it any more.
    pub(crate) broken: Option<CUresult>,
}

/// Everything there is.
pub(crate) struct SimulatedWorld {
    pub(crate) memory: SimulatedMemory,
    pub(crate) streams: HashMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) captures: HashMap<usize, StreamCapture>,
    pub(crate) graphs: HashMap<usize, Arc<Vec<Node>>>,
    /// After an error of a program nothing else is done.
    lost: Option<CUresult>,
    last_handle: usize,
    chance: u64,
}

/// The one there is, to oneself.
pub(crate) fn world() -> MutexGuard<'static, SimulatedWorld> {
    static WORLD: LazyLock<Mutex<SimulatedWorld>> = LazyLock::new(|| {
        Mutex::new(SimulatedWorld {
            memory: SimulatedMemory::default(),
            streams: HashMap::new(),
            events: HashMap::new(),
            captures: HashMap::new(),
            graphs: HashMap::new(),
            lost: None,
            last_handle: 0,
            chance: 1,
        })
    });
    WORLD.lock()
}

impl SimulatedWorld {
    pub(crate) fn handle(&mut self) -> usize {
        self.last_handle += 16;
        self.last_handle
    }

    pub(crate) fn alive(&self) -> CudaResult {
        self.lost.map_or(Ok(()), Err)
    }

    pub(crate) fn stream(&mut self, stream: usize) -> CudaResult<&mut Stream> {
        self.streams.get_mut(&stream).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    pub(crate) fn event(&mut self, event: usize) -> CudaResult<&mut Event> {
        let event = self.events.get_mut(&event).filter(|event| !event.is_destroyed);
        event.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    /// Puts a job at the end of a stream, or of what is captured of it.
    pub(crate) fn push(&mut self, stream: usize, job: Job) -> CudaResult {
        self.alive()?;
        match self.stream(stream)?.captured.clone() {
            None => self.stream(stream)?.queue.push_back(StreamWork::Job(job)),
            Some((capture, after)) => {
                let node = self.node(capture, Node { job, after })?;
                self.stream(stream)?.captured = Some((capture, vec![node]));
            }
        }
        Ok(())
    }

    pub(crate) fn push_graph(&mut self, stream: usize, nodes: Arc<Vec<Node>>) -> CudaResult {
        self.alive()?;
        self.not_captured(stream)?;
        self.stream(stream)?.queue.push_back(StreamWork::Graph(nodes));
        Ok(())
    }

    pub(crate) fn record(&mut self, event: usize, stream: usize) -> CudaResult {
        self.alive()?;
        let captured = self.stream(stream)?.captured.clone();
        let state = self.event(event)?;
        state.captured = captured;
        if state.captured.is_none() {
            (state.recorded, state.stream) = (state.recorded + 1, stream);
            let work = StreamWork::Record(event, state.recorded);
            self.stream(stream)?.queue.push_back(work);
        }
        Ok(())
    }

    pub(crate) fn wait(&mut self, event: usize, stream: usize) -> CudaResult {
        self.alive()?;
        let state = self.event(event)?;
        let (captured, times) = (state.captured.clone(), state.recorded);
        let waiting = self.stream(stream)?;
        match (captured, &mut waiting.captured) {
            (None, None) => waiting.queue.push_back(StreamWork::Wait(event, times)),
            // Waiting for work that is captured makes a stream part of it.
            (Some(captured), None) => waiting.captured = Some(captured),
            (Some((from, after)), Some((to, own))) if from == *to => own.extend(after),
            (_, Some((to, _))) => {
                let broken = *to;
                return Err(self.broken(broken, CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
            }
        }
        Ok(())
    }

    /// Does a stream's work, all of it.
    pub(crate) fn finish(&mut self, stream: usize) -> CudaResult {
        self.alive()?;
        self.not_captured(stream)?;
        while let Some(work) = self.stream(stream)?.queue.pop_front() {
            self.do_one(work)?;
        }
        self.alive()
    }

    /// Does the work of all streams.
    pub(crate) fn finish_all(&mut self) -> CudaResult {
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        streams.into_iter().try_for_each(|stream| self.finish(stream))
    }

    /// Does what must be done before an event has happened as often as it was asked for.
    pub(crate) fn finish_event(&mut self, event: usize) -> CudaResult {
        let times = self.event(event)?.recorded;
        self.until(event, times)
    }

    /// Whether an event has happened, without doing anything for it.
    pub(crate) fn has_happened(&mut self, event: usize) -> CudaResult<bool> {
        let state = self.event(event)?;
        Ok(state.happened >= state.recorded)
    }

    fn until(&mut self, event: usize, times: u64) -> CudaResult {
        loop {
            let state = self.events.get(&event).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
            if state.happened >= times {
                return Ok(());
            }
            let stream = state.stream;
            let Some(work) = self.stream(stream)?.queue.pop_front() else { return Ok(()) };
            self.do_one(work)?;
        }
    }

    fn do_one(&mut self, work: StreamWork) -> CudaResult {
        let done = match work {
            StreamWork::Job(job) => job(&mut self.memory),
            StreamWork::Graph(nodes) => self.run_graph(&nodes),
            StreamWork::Record(event, times) => {
                if let Some(event) = self.events.get_mut(&event) {
                    (event.happened, event.at) = (times, Some(Instant::now()));
                }
                Ok(())
            }
            StreamWork::Wait(event, times) => self.until(event, times),
        };
        if let Err(error) = done {
            self.lost.get_or_insert(error);
        }
        done
    }

    /// Runs a graph's jobs, each time in another of the orders that are allowed.
    fn run_graph(&mut self, nodes: &[Node]) -> CudaResult {
        let mut done = vec![false; nodes.len()];
        for _ in nodes {
            let ready = |&at: &usize| !done[at] && nodes[at].after.iter().all(|&first| done[first]);
            let ready: Vec<usize> = (0..nodes.len()).filter(ready).collect();
            if ready.is_empty() {
                break;
            }
            // A generator of Marsaglia's: Xorshift RNGs, 2003.
            self.chance ^= self.chance << 13;
            self.chance ^= self.chance >> 7;
            self.chance ^= self.chance << 17;
            let next = ready[(self.chance % ready.len() as u64) as usize];
            (nodes[next].job)(&mut self.memory)?;
            done[next] = true;
        }
        Ok(())
    }
}
