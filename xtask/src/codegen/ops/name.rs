//! Names of ops, arguments and attributes in Rust.

/// Ops whose functions do not go by the rule.
const EXCEPTIONS: &[(&str, &str)] = &[("AdjustContrastv2", "adjust_contrast_v2")];

/// Names that the rule would return, as people know them.
const RESPELLED: &[(&str, &str)] = &[("mat_mul", "matmul")];

/// The keywords that ops, arguments and attributes go by.
const KEYWORDS: &[&str] = &[
    "as", "box", "break", "const", "continue", "do", "else", "enum", "extern", "false", "final",
    "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "override",
    "priv", "pub", "ref", "return", "static", "struct", "super", "trait", "true", "try", "type",
    "use", "virtual", "where", "while", "yield",
];

/// The function of an op, as TensorFlow's `gen_*_ops` call it but for the version, which is a word
/// of its own.
pub(super) fn function(op: &str) -> String {
    not_keyword(words(op))
}

/// The static item of an op.
pub(super) fn item(op: &str) -> String {
    words(op).to_uppercase()
}

/// The first part of the names of types for an op.
pub(super) fn type_prefix(op: &str) -> String {
    op.replace('>', "")
}

/// An argument or attribute.
pub(super) fn parameter(name: &str) -> String {
    not_keyword(snake(name))
}

fn words(op: &str) -> String {
    if let Some((_, name)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == op) {
        return (*name).into();
    }
    let (base, version) = split_version(op);
    let name = RESPELLED.iter().fold(snake(base), |name, (from, to)| name.replace(from, to));
    version.map_or_else(|| name.clone(), |version| format!("{name}_v{version}"))
}

/// `MaxPoolV2` is version 2 of `MaxPool`.
fn split_version(op: &str) -> (&str, Option<&str>) {
    let base = op.trim_end_matches(|c: char| c.is_ascii_digit());
    match base.strip_suffix('V') {
        Some(name) if base.len() < op.len() && !name.is_empty() => (name, Some(&op[base.len()..])),
        _ => (op, None),
    }
}

/// A word begins at an upper-case letter that follows a lower-case letter or is followed by one,
/// and after the mark between a library and its op.
fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let is_lower =
        |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_lowercase);
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        let near_lower = is_lower(at.checked_sub(1)) || is_lower(Some(at + 1));
        if letter.is_ascii_uppercase() && near_lower && at > 0 && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(if *letter == '>' { '_' } else { letter.to_ascii_lowercase() });
    }
    snake
}

fn not_keyword(name: String) -> String {
    if KEYWORDS.contains(&name.as_str()) { name + "_" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_as_people_know_them() {
        for (op, name) in [
            ("AddV2", "add_v2"),
            ("MatMul", "matmul"),
            ("BatchMatMulV3", "batch_matmul_v3"),
            ("TridiagonalMatMul", "tridiagonal_matmul"),
            ("ReadVariableOp", "read_variable_op"),
            ("Conv2D", "conv2d"),
            ("Conv2DBackpropInput", "conv2d_backprop_input"),
            ("DepthwiseConv2dNative", "depthwise_conv2d_native"),
            ("MaxPool3DGradGrad", "max_pool3d_grad_grad"),
            ("BiasAdd", "bias_add"),
            ("FusedBatchNormV3", "fused_batch_norm_v3"),
            ("L2Loss", "l2_loss"),
            ("TensorListGetItem", "tensor_list_get_item"),
            ("LSTMBlockCell", "lstm_block_cell"),
            ("BlockLSTMV2", "block_lstm_v2"),
            ("FFT2D", "fft2d"),
            ("IFFT", "ifft"),
            ("RGBToHSV", "rgb_to_hsv"),
            ("TopKV2", "top_k_v2"),
            ("SplitV", "split_v"),
            ("BesselI0e", "bessel_i0e"),
            ("Log1p", "log1p"),
            ("BatchToSpaceND", "batch_to_space_nd"),
            ("AdjustContrastv2", "adjust_contrast_v2"),
            ("Where", "where_"),
            ("Mod", "mod_"),
            ("TFText>Utf8Binarize", "tf_text_utf8_binarize"),
            ("CaseFoldUTF8", "case_fold_utf8"),
        ] {
            assert_eq!(function(op), name);
        }
    }

    #[test]
    fn parameters_are_in_snake_case() {
        for (arg, name) in [
            ("DstT", "dst_t"),
            ("Tout", "tout"),
            ("N", "n"),
            ("OUTPUT_RAGGED_RANK", "output_ragged_rank"),
            ("transpose_a", "transpose_a"),
            ("type", "type_"),
        ] {
            assert_eq!(parameter(arg), name);
        }
        assert_eq!(item("Where"), "WHERE");
    }
}
