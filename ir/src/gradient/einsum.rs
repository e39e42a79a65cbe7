//! The gradient of `Einsum`: equations of the same kind, whatever is known of shapes.
//!
//! For an operand, the gradient of the result is multiplied with the other operand and summed over
//! what the operand does not have. Three things are not in that product: axes that `...` repeated
//! are summed back; a label that only the operand has was summed, so its gradient is repeated; a
//! label that occurs twice took a diagonal, so its gradient makes one.

use super::{Backprop, Grads, shapes};
use crate::{
    attr::Attrs,
    emit::{Value, calls_with},
    error::Error,
    ops::einsum::{Equation, Term},
};

/// The axes of a value: whether there are some that `...` stands for, before others with labels.
#[derive(Clone, PartialEq, Eq)]
struct Axes {
    dots: bool,
    labels: Vec<u8>,
}

impl Axes {
    fn text(&self, names: &Names) -> String {
        let dots = if self.dots { "..." } else { "" };
        format!("{dots}{}", names.of(self.labels.iter().copied()))
    }

    fn is(&self, term: &Term<'_>) -> bool {
        let labels: Vec<u8> = term.labels().collect();
        let dots = match term.after {
            Some(_) => self.dots && term.before.is_empty(),
            None => !self.dots,
        };
        dots && labels == self.labels
    }
}

/// Letters in place of the labels, which may be any bytes.
struct Names(Vec<u8>);

impl Names {
    const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    /// The letters of an equation; none where it has more labels than there are letters.
    fn new(equation: &Equation<'_>) -> Option<Names> {
        let mut known = Vec::new();
        let terms = equation.inputs.iter().chain([&equation.output]);
        for label in terms.flat_map(Term::labels) {
            if !known.contains(&label) {
                known.push(label);
            }
        }
        (known.len() <= Names::LETTERS.len()).then_some(Names(known))
    }

    fn of(&self, labels: impl Iterator<Item = u8>) -> String {
        let position = |label: u8| self.0.iter().position(|&known| known == label);
        labels.filter_map(position).map(|index| char::from(Names::LETTERS[index])).collect()
    }

    fn term(&self, term: &Term<'_>) -> String {
        let before = self.of(term.before.iter().copied());
        match term.after {
            None => before,
            Some(after) => format!("{before}...{}", self.of(after.iter().copied())),
        }
    }
}

pub(crate) fn einsum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let text = b.string("equation");
    let parsed = Equation::parse(text).filter(|equation| equation.inputs.len() == b.xs().len());
    let Some(equation) = parsed else {
        let expected = "one term for each operand";
        return vec![Some(
            b.emitter.fail(Error::argument("Einsum", "equation", expected, text)).into(),
        )];
    };
    let Some(names) = Names::new(&equation) else {
        return b.unsupported("its gradient for an equation of more than 52 labels");
    };
    let of = |index: usize| b.needs(index).then(|| operand(b, &equation, &names, index).into());
    (0..b.xs().len()).map(of).collect()
}

/// The gradient of one operand.
fn operand<'e>(
    b: &Backprop<'e>,
    equation: &Equation<'_>,
    names: &Names,
    index: usize,
) -> Value<'e> {
    let (x, term, output) = (b.x(index), equation.inputs[index], equation.output);
    let other = (equation.inputs.len() == 2).then(|| (b.x(1 - index), equation.inputs[1 - index]));
    let is_known = |label: u8| {
        let in_other = other.as_ref().is_some_and(|(_, term)| term.labels().any(|l| l == label));
        in_other || output.labels().any(|l| l == label)
    };
    let mut labels = Vec::new();
    for label in term.labels().filter(|&label| is_known(label)) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let is_summed = term.labels().any(|label| !is_known(label));
    let has_dots =
        output.after.is_some() || other.as_ref().is_some_and(|(_, term)| term.after.is_some());
    let mut axes = Axes { dots: has_dots, labels };
    let (mut terms, mut values) = (vec![names.term(&output)], vec![b.dy(0)]);
    if let Some((other, term)) = &other {
        terms.push(names.term(term));
        values.push(other.adjoint());
    }
    let mut gradient = contraction(&terms, &axes.text(names), &values);
    if axes.dots {
        let own = Axes { dots: term.after.is_some(), labels: axes.labels.clone() };
        let like = if own.is(&term) {
            x
        } else {
            contraction(&[names.term(&term)], &own.text(names), &[x])
        };
        gradient = shapes::sum_to_shape_of(gradient, like);
        axes = own;
    }
    let whole = names.term(&term);
    if is_summed {
        let terms = [axes.text(names), whole.clone()];
        return contraction(&terms, &whole, &[gradient, x.ones_like()]);
    }
    if axes.is(&term) {
        return gradient;
    }
    contraction(&[axes.text(names)], &whole, &[gradient])
}

fn contraction<'e>(terms: &[String], result: &str, values: &[Value<'e>]) -> Value<'e> {
    let equation = format!("{}->{result}", terms.join(","));
    calls_with("Einsum", Attrs::new().with("equation", &*equation), values).at(0)
}
