//! Messages as text: the form of `.pbtxt` files.
//!
//! Text names the fields of messages, so reading it takes their declarations; they are part of the
//! program, as `proto/descriptors.binpb`.

use crate::error::{Error, Result};
use prost::{Message, Name};
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, text_format::FormatOptions,
};
use std::{path::Path, sync::OnceLock};

/// Greatest depth of messages: what decoders of the binary form allow.
const DEPTH: usize = 100;

/// The message in the text of a file.
pub(crate) fn parse<M: Message + Name + Default>(path: &Path, text: &[u8]) -> Result<M> {
    let wrong = |what: String| Error::TextMessage {
        path: path.into(),
        message: M::NAME,
        what: what.into(),
    };
    let text = std::str::from_utf8(text).map_err(|error| wrong(error.to_string()))?;
    if is_too_deep(text) {
        return Err(wrong(format!("messages nest deeper than {DEPTH}")));
    }
    let dynamic = DynamicMessage::parse_text_format(descriptor::<M>(), text)
        .map_err(|error| wrong(error.to_string()))?;
    dynamic.transcode_to().map_err(|error| wrong(error.to_string()))
}

/// The content of the text file of a message.
pub(crate) fn encode<M: Message + Name>(_: &Path, message: &M) -> Result<Vec<u8>> {
    Ok(print(message).into_bytes())
}

/// The text of a message.
pub fn print<M: Message + Name>(message: &M) -> String {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic.transcode_from(message).expect("the declarations are those of the message");
    let options = FormatOptions::new().pretty(true).skip_unknown_fields(true);
    let mut text = dynamic.to_text_format_with_options(&options);
    text.push('\n');
    text
}

/// The declarations of TensorFlow's messages.
pub fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        DescriptorPool::decode(&include_bytes!("proto/descriptors.binpb")[..])
            .expect("the declarations were compiled")
    })
}

/// Whether messages in a text nest deeper than decoders of the binary form allow.
pub fn is_too_deep(text: &str) -> bool {
    depth(text) > DEPTH
}

fn descriptor<M: Name>() -> MessageDescriptor {
    let pool = pool();
    pool.get_message_by_name(&M::full_name()).expect("every message has a declaration")
}

/// Depth of brackets, outside of strings and comments.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'<' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            b'#' => _ = bytes.by_ref().find(|&byte| byte == b'\n'),
            quote @ (b'"' | b'\'') => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => _ = bytes.next(),
                        b'\n' => break,
                        byte if byte == quote => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttrValue, NodeDef, attr_value};

    fn node() -> NodeDef {
        let text = Some(attr_value::Value::S(b"a\"\xff\n".as_slice().into()));
        let attr = [("text".to_string(), AttrValue { value: text })].into();
        NodeDef {
            name: "n".into(),
            op: "Op".into(),
            input: vec!["x".into()],
            attr,
            ..NodeDef::default()
        }
    }

    fn read(text: &str) -> Result<NodeDef> {
        parse(Path::new("graph.pbtxt"), text.as_bytes())
    }

    #[test]
    fn messages_come_back() {
        assert_eq!(read(&print(&node())).unwrap(), node());
    }

    #[test]
    fn fields_have_names_and_types() {
        let node =
            read("name: 'n' # a comment {\n op: \"Op\" attr { key: 'T' value { type: DT_INT32 } }");
        let node = node.unwrap();
        assert_eq!((node.name.as_str(), node.op.as_str()), ("n", "Op"));
        assert_eq!(node.attr["T"].value, Some(attr_value::Value::Type(3)));
        let message = read("nome: 'n'").unwrap_err().to_string();
        assert!(message.contains("graph.pbtxt") && message.contains("nome"), "{message}");
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let text = "attr { value { list { ".repeat(100_000);
        assert!(read(&text).unwrap_err().to_string().contains("nest deeper"));
        assert_eq!(depth("a { b: '{{{' # {{\n }"), 1);
    }
}
