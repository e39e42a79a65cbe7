//! Common parts of the tests of the specification: a place where programs print, and an example of records.

use ferroflow::{
    Tensor,
    ir::{DType, PartialShape},
    ops,
    runtime::Context,
    tracer::{Result, with_context},
};
use std::{
    fmt::Display,
    sync::mpsc::{Sender, channel},
};

/// Where Rust code prints while it is traced, beside what programs print when they run.
#[derive(Clone)]
pub(crate) struct Out(Sender<String>);

impl Out {
    /// Prints a line.
    pub(crate) fn line(&self, text: impl Display) {
        self.text(format!("{text}\n"));
    }

    fn text(&self, text: String) {
        self.0.send(text).expect("whoever prints runs before the receiver goes");
    }
}

/// All that `program` prints, by `print!` and through [`Out`], in order.
pub(crate) fn printed(program: impl FnOnce(&Out) -> Result<()>) -> Result<String> {
    let (sender, receiver) = channel();
    let out = Out(sender);
    let context = Context::new();
    let printer = out.clone();
    context.set_printer(move |text| printer.text(text.into()));
    with_context(&context, || program(&out))?;
    Ok(receiver.try_iter().collect())
}

/// A record with labels and two lists of floats, as `tf.train.Example` has them.
pub(crate) fn example_record() -> Vec<u8> {
    let field = |tag: u8, bytes: Vec<u8>| [vec![tag << 3 | 2, bytes.len() as u8], bytes].concat();
    let entry = |name: &str, feature: Vec<u8>| {
        field(1, [field(1, name.as_bytes().to_vec()), field(2, feature)].concat())
    };
    let floats = [1.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let labels = field(3, field(1, vec![7]));
    let x1 = field(2, field(1, floats));
    let x2 = field(2, field(1, 0.5f32.to_le_bytes().to_vec()));
    field(1, [entry("labels", labels), entry("x1", x1), entry("x2", x2)].concat())
}

/// Labels, `x1` and `x2` of serialized examples, as `tf.io.parse_example` reads them.
pub(crate) fn parsed_examples(serialized: &Tensor) -> Result<Vec<Tensor>> {
    let none = Tensor::from([""; 0]);
    let empty = |dtype: DType| ops::cast(&Tensor::from(Vec::<f32>::new()), dtype);
    let parsed = ops::parse_example_v2(
        serialized,
        &none,
        &none,
        &Tensor::from(["labels", "x1", "x2"]),
        &none,
        &[&empty(DType::I64)?, &empty(DType::F32)?, &empty(DType::F32)?],
        0,
        &[],
        &[],
        &[],
        &[
            PartialShape::ranked([Some(1)]),
            PartialShape::ranked([Some(1), Some(3)]),
            PartialShape::ranked([Some(1)]),
        ],
    )?;
    Ok(parsed.into_vec())
}
