//! Finding where numbers go wrong, and looking at values while functions run.

use crate::{
    context,
    error::{Error, Result},
    func_graph::Outputs,
    ops::{NamedOp, call, none, one},
    tensor::Tensor,
};
use ferroflow_ir::{AttrValue, Attrs, OpDef, error::SourceLocation, ops::names};
use std::sync::atomic::{AtomicBool, Ordering};

static CHECKS_NUMERICS: AtomicBool = AtomicBool::new(false);

/// Checks every float result for NaN and infinities: of eager calls at once, of functions that are
/// traced from now on whenever they run. The error names the op, the function and the line of the
/// user's code.
pub fn enable_check_numerics() {
    CHECKS_NUMERICS.store(true, Ordering::Relaxed);
}

/// Checks results no longer; functions traced before keep their checks.
pub fn disable_check_numerics() {
    CHECKS_NUMERICS.store(false, Ordering::Relaxed);
}

/// Whether results are checked.
pub(crate) fn checks_numerics() -> bool {
    CHECKS_NUMERICS.load(Ordering::Relaxed)
}

/// Checks the results of a call, if that was asked for: their users get what was checked.
pub(crate) fn check(op: &OpDef, outputs: &mut Outputs, location: SourceLocation) -> Result<()> {
    if !checks_numerics() || op.name == names::CHECK_NUMERICS_V2 {
        return Ok(());
    }
    static CHECK: NamedOp = NamedOp::new(names::CHECK_NUMERICS_V2);
    let floats = outputs.iter_mut().enumerate().filter(|(_, output)| output.dtype().is_float());
    for (index, output) in floats {
        let trace = context::current_trace();
        let function = trace.as_ref().map_or_else(
            || "called eagerly".to_string(),
            |trace| format!("in function `{}`", trace.name()),
        );
        let message = format!("result {index} of op {} {function}, at {location}", op.name);
        let attrs = Attrs::new().with("message", AttrValue::string(message));
        *output = call(CHECK.record(), attrs, &[output], "", location)?.remove(0);
        if let Some(trace) = trace {
            trace.require(output);
        }
    }
    Ok(())
}

/// Piece that [`print!`](crate::print) prints: a text, or a tensor.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A text, printed as it is.
    Text(&'a str),
    /// A tensor, printed as its value.
    Tensor(Tensor),
}

/// Position of a tensor in a template.
const PLACEHOLDER: &str = "{}";

/// Prints texts and tensors whenever the program comes here: in a function not while it is traced but
/// each time it runs, in the order of its effects. To the standard error output, unless the context
/// prints elsewhere.
///
/// A first text with `{}` in it is a template, which has one for each piece after it; otherwise there are
/// spaces between the pieces.
///
/// # Errors
///
/// [`Error::Conversion`] when a template has more or fewer `{}` than there are pieces after it, or another
/// text has some; in eager calls, when a tensor is in the memory of another device.
#[track_caller]
pub fn print(pieces: &[Piece<'_>]) -> Result<()> {
    static FORMAT: NamedOp = NamedOp::new(names::STRING_FORMAT);
    static PRINT: NamedOp = NamedOp::new(names::PRINT_V2);
    let (template, tensors) = template(pieces)?;
    let attrs =
        Attrs::new().with("template", AttrValue::string(template)).with("placeholder", PLACEHOLDER);
    let text = one(&FORMAT, attrs, &tensors)?;
    none(&PRINT, Attrs::new(), &[&text])
}

/// The template of all pieces, and the tensors in it.
fn template<'p>(pieces: &'p [Piece<'_>]) -> Result<(String, Vec<&'p Tensor>)> {
    let mut tensors = Vec::new();
    let mut texts = Vec::with_capacity(pieces.len());
    let (first, rest) = match pieces {
        [Piece::Text(first), rest @ ..] if first.contains(PLACEHOLDER) => (Some(*first), rest),
        all => (None, all),
    };
    for piece in rest {
        match piece {
            Piece::Text(text) if text.contains(PLACEHOLDER) => {
                return Err(Error::Conversion {
                    expected: format!("`{PLACEHOLDER}` in the first text alone"),
                    found: format!("{text:?}"),
                });
            }
            Piece::Text(text) => texts.push(*text),
            Piece::Tensor(tensor) => {
                texts.push(PLACEHOLDER);
                tensors.push(tensor);
            }
        }
    }
    let Some(first) = first else { return Ok((texts.join(" "), tensors)) };
    let parts: Vec<&str> = first.split(PLACEHOLDER).collect();
    if parts.len() != texts.len() + 1 {
        return Err(Error::Conversion {
            expected: format!("`{PLACEHOLDER}` for each of {} values", texts.len()),
            found: format!("{first:?}"),
        });
    }
    let filled = parts.iter().zip(texts.iter().copied().chain([""]));
    Ok((filled.flat_map(|(&part, text)| [part, text]).collect(), tensors))
}

/// Something [`print!`](crate::print) can print.
pub trait Print {
    /// Piece to print for it.
    fn piece(&self) -> Piece<'_>;
}

impl Print for str {
    fn piece(&self) -> Piece<'_> {
        Piece::Text(self)
    }
}

impl Print for String {
    fn piece(&self) -> Piece<'_> {
        Piece::Text(self)
    }
}

impl Print for Tensor {
    fn piece(&self) -> Piece<'_> {
        Piece::Tensor(self.clone())
    }
}

macro_rules! print_numbers {
    ($($number:ty)*) => {$(
        impl Print for $number {
            fn piece(&self) -> Piece<'_> {
                Piece::Tensor(Tensor::from(*self))
            }
        }
    )*};
}

print_numbers!(bool i32 i64 u32 u64 f32 f64);

impl<T: Print + ?Sized> Print for &T {
    fn piece(&self) -> Piece<'_> {
        T::piece(self)
    }
}

/// Prints texts and tensors whenever the program comes here; in functions, each time they run.
///
/// ```
/// use ferroflow_tracer::{Tensor, function, print};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let f = function(|x: Tensor| {
///     print!("the value is", x)?; // the value is [1 2 3]
///     print!("{} has the shape {}", x, x.shape_tensor()?)?; // [1 2 3] has the shape [3]
///     x.square()
/// });
/// f(Tensor::from([1i32, 2, 3]))?;
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! print {
    ($($piece:expr),* $(,)?) => {
        $crate::debugging::print(&[$($crate::debugging::Print::piece(&$piece)),*])
    };
}
