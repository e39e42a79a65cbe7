//! `DecodeJSONExample`: examples as JSON become messages.
//!
//! Lists are not packed and fields come in the order of the text, as TensorFlow writes them.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use ferroflow_ir::{Error as IrError, HostTensor};
use ferroflow_runtime::{
    Context, Result, Results,
    ops::{RuntimeCall, one},
};
use std::collections::HashSet;

/// Makes the op known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("DecodeJSONExample", decode);
}

fn decode(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let input = call.host(0)?;
    let mut found = Vec::with_capacity(input.len());
    for text in input.strings()? {
        let json = JsonReader { text, at: 0 }.whole();
        let message = json.and_then(|json| example(&json)).map_err(|why| {
            IrError::argument(call.op.name, "json_examples", "examples as JSON", why)
        })?;
        found.push(Bytes::from(message));
    }
    one(HostTensor::from_strings(input.shape().clone(), found)?)
}

/// A value of JSON; the members of an object are in the order of the text.
#[derive(Debug)]
enum Json {
    Null,
    Bool,
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Values in values nest no deeper.
const MAX_DEPTH: usize = 100;

/// A text of JSON that is being read. As in TensorFlow's parser, texts may be between single quotes,
/// and names of members without any.
struct JsonReader<'a> {
    text: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, String>;

impl JsonReader<'_> {
    fn wrong<T>(&self, expected: &str) -> Read<T> {
        Err(format!("{expected} expected at byte {}", self.at))
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        match self.accept(byte) {
            true => Ok(()),
            false => self.wrong(&format!("`{}`", char::from(byte))),
        }
    }

    fn whole(mut self) -> Read<Json> {
        let value = self.value(0)?;
        match self.peek() {
            None => Ok(value),
            Some(_) => self.wrong("the end"),
        }
    }

    fn value(&mut self, depth: usize) -> Read<Json> {
        if depth > MAX_DEPTH {
            return self.wrong("no deeper nesting");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"' | b'\'') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => match &*self.word() {
                "null" => Ok(Json::Null),
                "true" | "false" => Ok(Json::Bool),
                _ => self.wrong("a value"),
            },
            None => self.wrong("a value"),
        }
    }

    fn object(&mut self, depth: usize) -> Read<Json> {
        self.expect(b'{')?;
        let mut members = Vec::new();
        while !self.accept(b'}') {
            if !members.is_empty() {
                self.expect(b',')?;
            }
            let name = match self.peek() {
                Some(b'"' | b'\'') => self.string()?,
                _ => self.word(),
            };
            if name.is_empty() && !matches!(self.text.get(self.at - 1), Some(b'"' | b'\'')) {
                return self.wrong("a name");
            }
            self.expect(b':')?;
            members.push((name, self.value(depth + 1)?));
        }
        Ok(Json::Object(members))
    }

    fn list(&mut self, depth: usize) -> Read<Json> {
        self.expect(b'[')?;
        let mut values = Vec::new();
        while !self.accept(b']') {
            if !values.is_empty() {
                self.expect(b',')?;
            }
            values.push(self.value(depth + 1)?);
        }
        Ok(Json::List(values))
    }

    /// Letters, digits and underscores.
    fn word(&mut self) -> String {
        self.peek();
        self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> String {
        let rest = &self.text[self.at..];
        let n = rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len());
        self.at += n;
        String::from_utf8_lossy(&rest[..n]).into_owned()
    }

    fn number(&mut self) -> Read<Json> {
        let text = self.take(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let has_zeros = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1] != b'.';
        let is_cut = digits.ends_with('.') || digits.contains(".e") || digits.contains(".E");
        if has_zeros && digits.as_bytes()[1].is_ascii_digit() || is_cut {
            return self.wrong("a number");
        }
        if let Ok(value) = text.parse() {
            return Ok(Json::Int(value));
        }
        match text.parse() {
            Ok(value) => Ok(Json::Float(value)),
            Err(_) => self.wrong("a number"),
        }
    }

    fn string(&mut self) -> Read<String> {
        let quote = self.text[self.at];
        self.at += 1;
        let mut found = String::new();
        loop {
            let rest = &self.text[self.at..];
            let is_plain = |&byte: &u8| byte != quote && byte != b'\\' && byte >= b' ';
            let n = rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
            match std::str::from_utf8(&rest[..n]) {
                Ok(text) => found.push_str(text),
                Err(_) => return self.wrong("UTF-8"),
            }
            self.at += n + 1;
            match rest.get(n) {
                Some(&end) if end == quote => return Ok(found),
                Some(b'\\') => found.push(self.escaped()?),
                _ => return self.wrong("the end of a text"),
            }
        }
    }

    fn escaped(&mut self) -> Read<char> {
        self.at += 1;
        Ok(match self.text.get(self.at - 1) {
            Some(&byte @ (b'"' | b'\'' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit()?;
                let is_first_half = (0xd800..0xdc00).contains(&first);
                let point = if is_first_half && self.text[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    match self.unit()? {
                        second @ 0xdc00..0xe000 => {
                            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                        }
                        _ => return self.wrong("the second half of a character"),
                    }
                } else {
                    first
                };
                return char::from_u32(point).map_or_else(|| self.wrong("a character"), Ok);
            }
            _ => return self.wrong("an escape"),
        })
    }

    /// Four digits of base 16.
    fn unit(&mut self) -> Read<u32> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let Some(digits) = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())) else {
            return self.wrong("four digits");
        };
        self.at += 4;
        Ok(u32::from_str_radix(digits, 16).unwrap_or_default())
    }
}

/// The encoding of a message, or why there is none.
type Encoded = Result<Vec<u8>, String>;

/// Writes an element of a list.
type PutElement = fn(&mut Vec<u8>, &Json) -> Result<(), String>;

fn object<'a>(value: &'a Json, what: &str) -> Result<&'a [(String, Json)], String> {
    match value {
        Json::Object(members) => Ok(members),
        other => Err(format!("{other:?} where {what} belongs")),
    }
}

fn unknown(name: &str, what: &str) -> String {
    format!("no member `{name}` of {what}")
}

fn example(json: &Json) -> Encoded {
    let mut message = Vec::new();
    for (name, value) in object(json, "an example")? {
        match (name.as_str(), value) {
            ("features", Json::Null) => {}
            ("features", value) => put_bytes(&mut message, 1, &features(value)?),
            (other, _) => return Err(unknown(other, "an example")),
        }
    }
    Ok(message)
}

fn features(json: &Json) -> Encoded {
    let mut message = Vec::new();
    let mut seen = HashSet::new();
    for (name, value) in object(json, "features")? {
        let entries = match (name.as_str(), value) {
            ("feature", Json::Null) => continue,
            ("feature", value) => object(value, "a map of features")?,
            (other, _) => return Err(unknown(other, "features")),
        };
        for (key, value) in entries {
            if !seen.insert(key) {
                return Err(format!("the feature `{key}` is there twice"));
            }
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, key.as_bytes());
            if !matches!(value, Json::Null) {
                put_bytes(&mut entry, 2, &feature(value)?);
            }
            put_bytes(&mut message, 1, &entry);
        }
    }
    Ok(message)
}

fn feature(json: &Json) -> Encoded {
    let mut message = Vec::new();
    for (name, value) in object(json, "a feature")? {
        if matches!(value, Json::Null) {
            continue;
        }
        if !message.is_empty() {
            return Err("a feature has one list".into());
        }
        let (number, put): (u64, PutElement) = match name.as_str() {
            "bytesList" | "bytes_list" => (1, put_text),
            "floatList" | "float_list" => (2, put_float),
            "int64List" | "int64_list" => (3, put_int),
            other => return Err(unknown(other, "a feature")),
        };
        put_bytes(&mut message, number, &list(value, put)?);
    }
    Ok(message)
}

fn list(json: &Json, put: PutElement) -> Encoded {
    let mut message = Vec::new();
    for (name, value) in object(json, "a list")? {
        match (name.as_str(), value) {
            ("value", Json::Null) => {}
            ("value", Json::List(values)) => {
                values.iter().try_for_each(|value| put(&mut message, value))?;
            }
            ("value", value) => put(&mut message, value)?,
            (other, _) => return Err(unknown(other, "a list")),
        }
    }
    Ok(message)
}

fn put_int(message: &mut Vec<u8>, json: &Json) -> Result<(), String> {
    let whole = |value: f64| {
        // The least number of 64 bits is exact as a float; the first beyond the largest is, too.
        let is_whole =
            value.trunc() == value && (i64::MIN as f64..-(i64::MIN as f64)).contains(&value);
        is_whole.then_some(value as i64)
    };
    let found = match json {
        Json::Int(value) => Some(*value),
        Json::Float(value) => whole(*value),
        Json::Text(text) => text.parse().ok().or_else(|| text.parse::<f64>().ok().and_then(whole)),
        _ => None,
    };
    let value = found.ok_or_else(|| format!("{json:?} is no integer of 64 bits"))?;
    message.push(8);
    put_varint(message, value as u64);
    Ok(())
}

fn put_float(message: &mut Vec<u8>, json: &Json) -> Result<(), String> {
    let found = match json {
        Json::Int(value) => Some(*value as f64),
        Json::Float(value) => Some(*value),
        Json::Text(text) => text.parse().ok(),
        _ => None,
    };
    let value = found.ok_or_else(|| format!("{json:?} is no number"))?;
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        return Err(format!("{value} is out of range"));
    }
    message.push(13);
    message.extend_from_slice(&single.to_le_bytes());
    Ok(())
}

fn put_text(message: &mut Vec<u8>, json: &Json) -> Result<(), String> {
    let Json::Text(text) = json else { return Err(format!("{json:?} is no text")) };
    let bytes = base64(text).ok_or_else(|| format!("`{text}` is not in base 64"))?;
    put_bytes(message, 1, &bytes);
    Ok(())
}

/// Bytes in base 64, with either alphabet, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    const NO_PADDING: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true);
    let digits = text.trim_end_matches('=');
    let n_padding = text.len() - digits.len();
    if n_padding > 2 || (n_padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let digits = digits.replace('-', "+").replace('_', "/");
    GeneralPurpose::new(&STANDARD, NO_PADDING).decode(digits).ok()
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

fn put_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(message, field << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Encoded {
        JsonReader { text: text.as_bytes(), at: 0 }.whole().and_then(|json| example(&json))
    }

    #[test]
    fn texts_have_escapes() {
        let found = read(r#"{"features":{"feature":{"\u00e9\ud83d\ude00\n":{}}}}"#).unwrap();
        assert!(found.windows(7).any(|part| part == "é😀\n".as_bytes()));
        assert!(read(r#"{"features":{"feature":{"\ud83d":{}}}}"#).is_err());
        assert!(read(r#"{"features":{"feature":{"\u12":{}}}}"#).is_err());
        assert!(read("{\"a").is_err());
        assert!(read("{\"\\").is_err());
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = format!("{{\"x\":{}", "[".repeat(100_000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn base_64_may_have_padding() {
        assert_eq!(base64("YWI="), Some(b"ab".to_vec()));
        assert_eq!(base64("_-8"), Some(vec![0xff, 0xef]));
        assert_eq!(base64("A"), None);
        assert_eq!(base64("A==="), None);
        assert_eq!(base64("Y W"), None);
    }
}
