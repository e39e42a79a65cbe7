//! The comparison of all ways to run a program.

use super::{
    history::{self, History, Shapes, Traced, difference},
    program::Program,
    switches,
};
use ferroflow::tracer::{Error, Result};
use std::{
    cell::RefCell,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

/// What is wrong with a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Other results than those of the reference.
    Wrong,
    /// An error where the reference has results.
    Error,
    Panic,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Wrong => "wrong",
            Class::Error => "error",
            Class::Panic => "panic",
        })
    }
}

/// A fault: a way to run a program that differs from the reference.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) class: Class,
    /// The way.
    pub(crate) mode: String,
    pub(crate) detail: String,
}

impl Fault {
    /// Whether this is likely the same fault of another program.
    pub(crate) fn is_like(&self, other: &Fault) -> bool {
        self.class == other.class && self.signature() == other.signature()
    }

    /// What faults of one kind have in common.
    pub(crate) fn signature(&self) -> String {
        match self.class {
            Class::Wrong => String::new(),
            Class::Error | Class::Panic => signature(&self.detail),
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
    Failed(Fault),
}

/// Compares all ways to run a program. Loops whose variables change more than their invariants allow
/// get weaker ones.
pub(crate) fn check(program: &mut Program) -> Verdict {
    loop {
        match attempt(program) {
            Err(Loose) if program.loosen() => {}
            Err(Loose) => return Verdict::Dropped("the shape of a loop variable changes".into()),
            Ok(verdict) => return verdict,
        }
    }
}

/// The invariant of a loop does not hold.
struct Loose;

fn attempt(program: &Program) -> std::result::Result<Verdict, Loose> {
    let program = Arc::new(program.clone());
    let expected = match guarded(|| history::eager(&program)) {
        Ok(Ok(history)) => history,
        Ok(Err(error)) => return Ok(Verdict::Dropped(error.to_string())),
        Err(message) => {
            let mode = "eager".into();
            return Ok(Verdict::Failed(Fault { class: Class::Panic, mode, detail: message }));
        }
    };
    let settings = switches::all();
    let Ok(mut traced) = Traced::new(&program, &settings[0]) else {
        return Ok(Verdict::Dropped("its variables cannot be made".into()));
    };
    let all = [Shapes::Known, Shapes::Ranks, Shapes::Unknown];
    for shapes in all {
        let found = guarded(|| traced.run(shapes, &settings[0]));
        if let Some(fault) = judge(found, &expected, || shapes.to_string())? {
            return Ok(Verdict::Failed(fault));
        }
    }
    for (number, setting) in settings.iter().enumerate().skip(1) {
        let shapes = all[(number + program.len()) % all.len()];
        let found = guarded(|| traced.run_in(shapes, setting));
        if let Some(fault) = judge(found, &expected, || format!("{shapes}, {}", setting.name))? {
            return Ok(Verdict::Failed(fault));
        }
    }
    Ok(Verdict::Passed)
}

fn judge(
    found: std::result::Result<Result<History>, String>,
    expected: &History,
    mode: impl Fn() -> String,
) -> std::result::Result<Option<Fault>, Loose> {
    let (class, detail) = match found {
        Ok(Ok(found)) => match difference(&found, expected) {
            None => return Ok(None),
            Some(detail) => (Class::Wrong, detail),
        },
        Ok(Err(Error::LoopVariable { .. })) => return Err(Loose),
        Ok(Err(error)) => (Class::Error, error.to_string()),
        Err(message) => (Class::Panic, message),
    };
    Ok(Some(Fault { class, mode: mode(), detail }))
}

/// The settings in which a program that fails is right, by name.
pub(crate) fn right_settings(program: &Program) -> Vec<String> {
    let program = Arc::new(program.clone());
    let mut right = Vec::new();
    let Ok(Ok(expected)) = guarded(|| history::eager(&program)) else { return right };
    for setting in switches::all() {
        for shapes in [Shapes::Known, Shapes::Ranks, Shapes::Unknown] {
            let run = || Traced::new(&program, &switches::all()[0])?.run_in(shapes, setting);
            if let Ok(Ok(found)) = guarded(run)
                && difference(&found, &expected).is_none()
            {
                right.push(format!("{shapes}, {}", setting.name));
            }
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
