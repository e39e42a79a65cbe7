//! 16-bit floats in WGSL, where devices have such storage: bodies compute in `f32`, so that what is
//! read is widened and what is written is narrowed, in the text.

/// A body that reads and writes some of its buffers as 16-bit floats. Rounding has happened before:
/// what is written is such a number already.
pub(in crate::shader) fn narrowed(body: &str, buffers: &[String]) -> String {
    let mut text = String::with_capacity(body.len() * 2);
    let mut rest = body;
    while let Some((before, name, inside, after)) = next(rest, buffers) {
        text.push_str(before);
        let element = format!("{name}[{}]", narrowed(inside, buffers));
        let assigned = after.strip_prefix(" = ").and_then(|value| value.split_once(';'));
        rest = match assigned {
            Some((value, after)) => {
                text.push_str(&format!("{element} = f16({});", narrowed(value, buffers)));
                after
            }
            None => {
                text.push_str(&format!("f32({element})"));
                after
            }
        };
    }
    text.push_str(rest);
    text
}

/// The first position of one of the buffers: what is before it, the buffer, the index, what is
/// after.
fn next<'a>(text: &'a str, buffers: &'a [String]) -> Option<(&'a str, &'a str, &'a str, &'a str)> {
    let found = buffers.iter().filter_map(|name| Some((find(text, name)?, name)));
    let (start, name) = found.min()?;
    let index = start + name.len() + 1;
    let mut depth = 1;
    let end = text[index..].find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0
    })?;
    Some((&text[..start], name, &text[index..index + end], &text[index + end + 1..]))
}

/// Where a buffer is first indexed.
fn find(text: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find(name).map(|at| from + at) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let whole = !text[..at].ends_with(is_part);
        if whole && text[at + name.len()..].starts_with('[') {
            return Some(at);
        }
        from = at + name.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::narrowed;

    #[test]
    fn reads_are_widened_and_writes_narrowed() {
        let buffers = ["in0".to_string(), "out0".to_string()];
        let check = |body, expected| assert_eq!(narrowed(body, &buffers), expected);
        check("out0[n] = in0[n] + 1.0f;\n", "out0[n] = f16(f32(in0[n]) + 1.0f);\n");
        check("let x = in0[u32(in1[n])];", "let x = f32(in0[u32(in1[n])]);");
        check("out0[u32(in0[a[0]])] = in1[2];", "out0[u32(f32(in0[a[0]]))] = f16(in1[2]);");
        check("if (in0[0] == out0[1]) { x = 0; }", "if (f32(in0[0]) == f32(out0[1])) { x = 0; }");
        check("in00[0] = win0[1] + in0_;", "in00[0] = win0[1] + in0_;");
    }
}
