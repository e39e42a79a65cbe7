//! Encodings that text is written in.

/// Encoding that TensorFlow writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) enum OutputEncoding {
    Utf8,
    /// Two bytes, the high one first.
    Utf16,
    /// Four bytes, likewise.
    Utf32,
}

impl OutputEncoding {
    pub(in crate::cpu) fn find(name: &str) -> Option<OutputEncoding> {
        match name {
            "UTF-8" => Some(OutputEncoding::Utf8),
            "UTF-16-BE" => Some(OutputEncoding::Utf16),
            "UTF-32-BE" => Some(OutputEncoding::Utf32),
            _ => None,
        }
    }

    /// Appends a character.
    pub(in crate::cpu::string) fn encode(self, character: char, out: &mut Vec<u8>) {
        match self {
            OutputEncoding::Utf8 => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            OutputEncoding::Utf16 => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.extend(unit.to_be_bytes());
                }
            }
            OutputEncoding::Utf32 => out.extend(u32::from(character).to_be_bytes()),
        }
    }
}
