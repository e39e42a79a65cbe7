//! The comparison of all ways to run a program.

use super::{
    history::{self, History, Shapes, TracedProgram, difference},
    program::FuzzProgram,
    switches,
};
use ferroflow::{
    ir::Code,
    tracer::{Error, Result},
};
use std::{
    cell::RefCell,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

/// Fault of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Other results than those of the reference.
    Wrong,
    /// An error where the reference has results.
    Error,
    /// An error that says that something is not supported.
    Unsupported,
    Panic,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Wrong => "wrong",
            Class::Error => "error",
            Class::Unsupported => "unsupported",
            Class::Panic => "panic",
        })
    }
}

/// A fault: a way to run a program that differs from the reference.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) class: Class,
    /// The way; none if the reference itself fails.
    way: Option<Way>,
    pub(crate) detail: String,
}

impl Divergence {
    /// Whether this is likely the same fault of another program.
    pub(crate) fn is_like(&self, other: &Divergence) -> bool {
        self.class == other.class && self.signature() == other.signature()
    }

    /// The way to run the program, in words.
    pub(crate) fn mode(&self) -> String {
        self.way.map_or_else(|| "eager".into(), |way| way.to_string())
    }

    /// Common signature of faults of one kind.
    pub(crate) fn signature(&self) -> String {
        match self.class {
            Class::Wrong => String::new(),
            Class::Error | Class::Unsupported | Class::Panic => signature(&self.detail),
        }
    }
}

/// A message without names, numbers and lists.
fn signature(message: &str) -> String {
    let (mut text, mut depth, mut is_quoted) = (String::new(), 0usize, false);
    for letter in message.chars() {
        match letter {
            '`' => is_quoted = !is_quoted,
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            _ if is_quoted || depth > 0 || letter.is_ascii_digit() => {}
            _ => text.push(letter),
        }
    }
    text.chars().take(120).collect()
}

/// The outcome of a comparison.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Passed,
    /// The program cannot be compared: it has no results of its own.
    Dropped(String),
    /// The same where it runs, but something says that it is not supported.
    Unsupported(Divergence),
    Failed(Divergence),
}

/// A way to run a program: what traces know of shapes, and the setting by index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    shapes: Shapes,
    setting: usize,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = &switches::all()[self.setting].name;
        write!(f, "{}, {setting}", self.shapes)
    }
}

const SHAPES: [Shapes; 3] = [Shapes::Known, Shapes::Ranks, Shapes::Unknown];

/// The settings besides the plain one that a program runs in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunSettings {
    All,
    /// So many, by turns.
    Some {
        n: usize,
        turn: usize,
    },
}

impl RunSettings {
    /// The ways to run a program, the plain ones first.
    fn ways(self) -> Vec<Way> {
        let n_settings = switches::all().len();
        let plain = SHAPES.iter().map(|&shapes| Way { shapes, setting: 0 });
        let way = |turn: usize| {
            let setting = 1 + turn % (n_settings - 1);
            Way { shapes: SHAPES[(turn / (n_settings - 1)) % SHAPES.len()], setting }
        };
        match self {
            RunSettings::All => plain.chain((0..n_settings - 1).map(way)).collect(),
            RunSettings::Some { n, turn } => {
                plain.chain((n * turn..n * (turn + 1)).map(way)).collect()
            }
        }
    }
}

/// Compares the ways to run a program. Loops whose variables change more than their invariants allow
/// get weaker ones.
pub(crate) fn check(program: &mut FuzzProgram, settings: RunSettings) -> Verdict {
    check_ways(program, &settings.ways())
}

/// Runs a program in the way in which another failed.
pub(crate) fn check_again(program: &mut FuzzProgram, fault: &Divergence) -> Verdict {
    match fault.way {
        Some(way) => check_ways(program, &[way]),
        None => check_ways(program, &[]),
    }
}

fn check_ways(program: &mut FuzzProgram, ways: &[Way]) -> Verdict {
    loop {
        match attempt(program, ways) {
            Err(Loose) if program.loosen() => {}
            Err(Loose) => return Verdict::Dropped("the shape of a loop variable changes".into()),
            Ok(verdict) => return verdict,
        }
    }
}

/// The invariant of a loop does not hold.
struct Loose;

fn attempt(program: &FuzzProgram, ways: &[Way]) -> std::result::Result<Verdict, Loose> {
    let program = Arc::new(program.clone());
    let eager = match guarded(|| history::eager(&program)) {
        Ok(Ok(eager)) => eager,
        Ok(Err(error)) => return Ok(Verdict::Dropped(error.to_string())),
        Err(message) => {
            let fault = Divergence { class: Class::Panic, way: None, detail: message };
            return Ok(Verdict::Failed(fault));
        }
    };
    let settings = switches::all();
    let Ok(mut traced) = TracedProgram::new(&program, &settings[0]) else {
        return Ok(Verdict::Dropped("its variables cannot be made".into()));
    };
    let (mut unsupported, mut refused) = (None, None);
    for &way in ways {
        let found = guarded(|| match way.setting {
            0 => traced.run(way.shapes, &settings[0]),
            setting => traced.run_in(way.shapes, &settings[setting]),
        });
        match judge(found, &eager.history, way)? {
            None => {}
            Some(fault) if fault.class == Class::Error && traced.failed_beside(&eager) => {
                refused = Some("a trace refuses a statement that never runs".into());
            }
            Some(fault) if fault.class == Class::Unsupported => unsupported = Some(fault),
            Some(fault) => return Ok(Verdict::Failed(fault)),
        }
    }
    Ok(match (refused, unsupported) {
        (Some(why), _) => Verdict::Dropped(why),
        (None, Some(fault)) => Verdict::Unsupported(fault),
        (None, None) => Verdict::Passed,
    })
}

fn judge(
    found: std::result::Result<Result<History>, String>,
    expected: &History,
    way: Way,
) -> std::result::Result<Option<Divergence>, Loose> {
    let (class, detail) = match found {
        Ok(Ok(found)) => match difference(&found, expected) {
            None => return Ok(None),
            Some(detail) => (Class::Wrong, detail),
        },
        Ok(Err(Error::LoopVariable { .. })) => return Err(Loose),
        Ok(Err(error)) => (class_of(&error), error.to_string()),
        Err(message) => (Class::Panic, message),
    };
    Ok(Some(Divergence { class, way: Some(way), detail }))
}

/// The class of an error. Shapes that are not known leave some programs without a meaning: the rows
/// of an empty list, and gradients that need ranks.
fn class_of(error: &Error) -> Class {
    let is_of_empty_list = error.to_string().contains("element_shape must be known");
    match error.code() {
        Code::Unimplemented => Class::Unsupported,
        _ if is_of_empty_list => Class::Unsupported,
        _ => Class::Error,
    }
}

/// The ways in which a program that fails is right, in words.
pub(crate) fn right_ways(program: &FuzzProgram) -> Vec<String> {
    let program = Arc::new(program.clone());
    let Ok(Ok(eager)) = guarded(|| history::eager(&program)) else { return Vec::new() };
    let is_right = |way: Way| {
        let setting = &switches::all()[way.setting];
        let run = || TracedProgram::new(&program, &switches::all()[0])?.run_in(way.shapes, setting);
        matches!(guarded(run), Ok(Ok(found)) if difference(&found, &eager.history).is_none())
    };
    let mut right = Vec::new();
    for shapes in SHAPES {
        let n = switches::all().len();
        let all: Vec<Way> = (0..n).map(|setting| Way { shapes, setting }).collect();
        let found: Vec<String> =
            all.into_iter().filter(|&way| is_right(way)).map(|way| way.to_string()).collect();
        match found.len() == n {
            true => right.push(shapes.to_string()),
            false => right.extend(found),
        }
    }
    right
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the messages of panics in place of printing them.
#[allow(dead_code, reason = "tests leave panics to the test runner")]
pub(crate) fn keep_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let message = format!("{}: {text}", place.unwrap_or_default());
        PANIC.with(|kept| *kept.borrow_mut() = message);
    }));
}

/// Runs `body`; the message if it panics.
pub(super) fn guarded<R>(body: impl FnOnce() -> R) -> std::result::Result<R, String> {
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    result.map_err(|_| PANIC.with(|kept| std::mem::take(&mut *kept.borrow_mut())))
}
