//! The text of the dialect `stablehlo`: operations in MLIR's generic form.

use super::{
    super::module::{Attr, HloElement, HloModule, HloOp, HloRegion, TensorType, Type, ValueNumber},
    artifact::CALL_ATTRIBUTES,
};
use ferroflow_ir::DType;
use std::{collections::HashMap, fmt::Write};

/// Constants of more elements are written as their bytes.
const MOST_ELEMENTS: usize = 16;

/// The text of a module.
pub(super) fn module(module: &HloModule) -> String {
    let mut names: Vec<_> = module.functions.keys().collect();
    names.sort();
    let mut printer = Printer { out: String::from("module {\n"), types: HashMap::new() };
    for name in names {
        let function = &module.functions[name];
        let args = printer.args(&function.body);
        let results = list(&function.results, type_text);
        printer.line(1, &format!("func.func public @{name}({args}) -> ({results}) {{"));
        printer.ops(&function.body, "func.return", 2);
        printer.line(1, "}");
    }
    printer.out + "}\n"
}

fn list<T>(things: &[T], one: impl Fn(&T) -> String) -> String {
    things.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn value(number: &ValueNumber) -> String {
    format!("%{}", number.0)
}

struct Printer {
    out: String,
    types: HashMap<ValueNumber, Type>,
}

impl Printer {
    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&"  ".repeat(depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn args(&mut self, region: &HloRegion) -> String {
        self.types.extend(region.args.iter().cloned());
        list(&region.args, |(number, ty)| format!("{}: {}", value(number), type_text(ty)))
    }

    /// The operations of a region; the last of them is called `end`.
    fn ops(&mut self, region: &HloRegion, end: &str, depth: usize) {
        for op in &region.ops {
            let mut text = match &op.results[..] {
                [] => String::new(),
                results => list(results, |(number, _)| value(number)) + " = ",
            };
            let operands = list(&op.operands, value);
            let _ = match &*op.name {
                "return" => write!(text, "\"{end}\"({operands})"),
                name => write!(text, "\"stablehlo.{name}\"({operands})"),
            };
            for (index, region) in op.regions.iter().enumerate() {
                let opening = if index == 0 { format!("{text} ({{") } else { "}, {".into() };
                self.line(depth, &opening);
                let args = self.args(region);
                if !args.is_empty() {
                    self.line(depth, &format!("^bb0({args}):"));
                }
                self.ops(region, "stablehlo.return", depth + 1);
                text = "})".into();
            }
            let attrs = attributes(op);
            if !attrs.is_empty() {
                let _ = write!(text, " {{{}}}", attrs.join(", "));
            }
            let operands = list(&op.operands, |operand| type_text(&self.types[operand]));
            let results = list(&op.results, |(_, ty)| type_text(ty));
            let _ = write!(text, " : ({operands}) -> ({results})");
            self.line(depth, &text);
            self.types.extend(op.results.iter().cloned());
        }
    }
}

/// The attributes as the dialect has them, which joins some of `vhlo`.
fn attributes(op: &HloOp) -> Vec<String> {
    let ints = |name: &str| op.ints(name).unwrap_or_default();
    let int = |name: &str| ints(name).first().copied().unwrap_or_default();
    let array = |name: &str| format!("[{}]", list(&ints(name), i64::to_string));
    let case = |name: &str, names: &[&'static str]| -> &'static str {
        names[op.case(name).unwrap_or_default() as usize % names.len()]
    };
    match &*op.name {
        "compare" => {
            let kinds = ["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"];
            let directions = ["EQ", "NE", "GE", "GT", "LE", "LT"];
            let (kind, direction) =
                (case("compare_type", &kinds), case("comparison_direction", &directions));
            vec![
                format!("compare_type = #stablehlo<comparison_type {kind}>"),
                format!("comparison_direction = #stablehlo<comparison_direction {direction}>"),
            ]
        }
        "custom_call" => {
            let target = op.text("call_target_name").unwrap_or_default();
            let [attributes, version] = CALL_ATTRIBUTES;
            vec![
                format!("call_target_name = \"{target}\""),
                format!("{attributes} = {{}}, {version} = 1 : i64"),
            ]
        }
        "dot_general" => {
            let names = [
                "lhs_batching_dimensions",
                "rhs_batching_dimensions",
                "lhs_contracting_dimensions",
                "rhs_contracting_dimensions",
            ];
            let parts = list(&names, |name| format!("{name} = {}", array(name)));
            vec![format!("dot_dimension_numbers = #stablehlo.dot<{parts}>")]
        }
        "gather" => vec![
            format!(
                "dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, \
                 start_index_map = {}, index_vector_dim = {}>",
                array("offset_dims"),
                array("collapsed_slice_dims"),
                array("start_index_map"),
                int("index_vector_dim"),
            ),
            format!("slice_sizes = array<i64: {}>", list(&ints("slice_sizes"), i64::to_string)),
        ],
        "scatter" => {
            let names =
                ["update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"];
            let parts = list(&names, |name| format!("{name} = {}", array(name)));
            let vector = int("index_vector_dim");
            vec![
                format!(
                    "scatter_dimension_numbers = #stablehlo.scatter<{parts}, index_vector_dim = {vector}>"
                ),
                "indices_are_sorted = false, unique_indices = false".into(),
            ]
        }
        "convolution" => {
            let side = |names: [(&str, char); 2], spatial: &str| {
                let mut parts = vec![String::new(); ints(spatial).len() + 2];
                names.iter().for_each(|(name, text)| parts[int(name) as usize] = text.to_string());
                for (index, at) in ints(spatial).into_iter().enumerate() {
                    parts[at as usize] = index.to_string();
                }
                parts.join(", ")
            };
            let input = side(
                [("input_batch_dimension", 'b'), ("input_feature_dimension", 'f')],
                "input_spatial_dimensions",
            );
            let kernel = side(
                [("kernel_input_feature_dimension", 'i'), ("kernel_output_feature_dimension", 'o')],
                "kernel_spatial_dimensions",
            );
            let output = side(
                [("output_batch_dimension", 'b'), ("output_feature_dimension", 'f')],
                "output_spatial_dimensions",
            );
            let flags = list(&op.flags("window_reversal").unwrap_or_default(), bool::to_string);
            let plain = [
                "batch_group_count",
                "feature_group_count",
                "lhs_dilation",
                "padding",
                "rhs_dilation",
                "window_strides",
            ];
            let plain = plain.iter().filter_map(|name| Some(plain_attribute(name, op.attr(name)?)));
            let numbers = format!("#stablehlo.conv<[{input}]x[{kernel}]->[{output}]>");
            let own = [
                format!("dimension_numbers = {numbers}"),
                format!("window_reversal = array<i1: {flags}>"),
            ];
            own.into_iter().chain(plain).collect()
        }
        "constant" => match op.attr("value") {
            Some(Attr::Tensor(ty, data)) => vec![format!("value = {}", dense(ty, data))],
            _ => Vec::new(),
        },
        _ => op.attrs.iter().map(|(name, attr)| plain_attribute(name, attr)).collect(),
    }
}

fn plain_attribute(name: &str, attr: &Attr) -> String {
    match attr {
        Attr::Int(value) => format!("{name} = {value} : i64"),
        Attr::Bool(value) => format!("{name} = {value}"),
        Attr::Tensor(ty, data) if ty.dims.len() == 1 => {
            let values = data.chunks_exact(8).map(|bytes| text_of(DType::I64, bytes));
            let values: Vec<String> = values.collect();
            match values.is_empty() {
                true => format!("{name} = array<i64>"),
                false => format!("{name} = array<i64: {}>", values.join(", ")),
            }
        }
        Attr::Tensor(ty, data) => format!("{name} = {}", dense(ty, data)),
        _ => format!("{name} = unit"),
    }
}

/// The elements of a tensor.
fn dense(ty: &TensorType, data: &[u8]) -> String {
    let ty_text = tensor_text(ty);
    let HloElement::Of(dtype) = ty.element else { return format!("dense<> : {ty_text}") };
    let width = dtype.size().unwrap_or(1);
    let dims: Vec<usize> = ty.dims.iter().map(|dim| dim.unwrap_or(0)).collect();
    let n: usize = dims.iter().product();
    let text = match data.len() / width {
        _ if n == 0 => String::new(),
        1 => text_of(dtype, data),
        found if found <= MOST_ELEMENTS || dtype == DType::Bool => nested(dtype, &dims, data),
        _ => {
            let mut hex = String::with_capacity(data.len() * 2 + 4);
            hex.push_str("\"0x");
            for byte in data {
                let _ = write!(hex, "{byte:02X}");
            }
            hex + "\""
        }
    };
    format!("dense<{text}> : {ty_text}")
}

fn nested(dtype: DType, dims: &[usize], data: &[u8]) -> String {
    let [first, rest @ ..] = dims else { return text_of(dtype, data) };
    let part = data.len() / first.max(&1);
    let parts: Vec<String> =
        data.chunks_exact(part.max(1)).map(|part| nested(dtype, rest, part)).collect();
    format!("[{}]", parts.join(", "))
}

/// An element. Floats that are no numbers, or infinite, are told by their bits.
fn text_of(dtype: DType, bytes: &[u8]) -> String {
    let mut all = [0; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    let bits = u128::from_le_bytes(all);
    let float = |value: f64| match value.is_finite() {
        true => {
            let text = format!("{value:e}");
            match text.split_once('e') {
                Some((digits, exponent)) if !digits.contains('.') => {
                    format!("{digits}.0e{exponent}")
                }
                _ => text,
            }
        }
        false => format!("0x{bits:0width$X}", width = bytes.len() * 2),
    };
    match dtype {
        DType::Bool => (bits != 0).to_string(),
        DType::F64 => float(f64::from_bits(bits as u64)),
        DType::F32 => float(f64::from(f32::from_bits(bits as u32))),
        DType::BF16 => float(half::bf16::from_bits(bits as u16).to_f64()),
        DType::F16 => float(half::f16::from_bits(bits as u16).to_f64()),
        DType::C64 | DType::C128 => {
            let part = dtype.real_type();
            let (real, imag) = bytes.split_at(bytes.len() / 2);
            format!("({}, {})", text_of(part, real), text_of(part, imag))
        }
        _ if dtype.is_signed_integer() => {
            let shift = 128 - bytes.len() as u32 * 8;
            ((bits << shift) as i128 >> shift).to_string()
        }
        _ if dtype.is_integer() => bits.to_string(),
        _ => format!("0x{bits:0width$X}", width = bytes.len() * 2),
    }
}

fn type_text(ty: &Type) -> String {
    match ty {
        Type::Tensor(ty) => tensor_text(ty),
        Type::Element(element) => element_text(*element),
        Type::Token => "!stablehlo.token".into(),
        Type::Tuple(types) => format!("tuple<{}>", list(types, type_text)),
        Type::Function(args, results) => {
            format!("({}) -> ({})", list(args, type_text), list(results, type_text))
        }
        Type::Other(name) => (*name).into(),
    }
}

fn tensor_text(ty: &TensorType) -> String {
    let mut text = String::from("tensor<");
    for dim in &ty.dims {
        text.push_str(&dim.map_or("?".into(), |dim| dim.to_string()));
        text.push('x');
    }
    text + &element_text(ty.element) + ">"
}

fn element_text(element: HloElement) -> String {
    let HloElement::Of(dtype) = element else { return "none".into() };
    let bits = dtype.size().unwrap_or(1) * 8;
    match dtype {
        DType::Bool => "i1".into(),
        DType::BF16 => "bf16".into(),
        DType::F16 | DType::F32 | DType::F64 => format!("f{bits}"),
        DType::C64 => "complex<f32>".into(),
        DType::C128 => "complex<f64>".into(),
        DType::F8E4M3FN => "f8E4M3FN".into(),
        DType::F8E5M2 => "f8E5M2".into(),
        _ if dtype.is_signed_integer() => format!("i{bits}"),
        _ => format!("ui{bits}"),
    }
}
