//! Encodings of text, under the names that ICU has for them.
//!
//! The characters of all tables are TensorFlow's, for every byte and every two bytes: `tests.rs`
//! compares sums of all of them.

#[cfg(feature = "text")]
mod iso_2022;
#[cfg(feature = "text")]
mod listing;
mod names;
mod output;
#[cfg(feature = "text")]
mod table;
#[cfg(all(test, feature = "text"))]
mod tests;
mod unicode;

#[cfg(feature = "text")]
use iso_2022::Iso2022;
pub(in crate::cpu) use output::OutputEncoding;
#[cfg(feature = "text")]
use {std::sync::Arc, table::Table};

/// Encoding of characters as bytes.
#[derive(Debug, Clone)]
pub(in crate::cpu) enum Encoding {
    Ascii,
    Latin1,
    Utf8,
    /// Two bytes, the first of which is the high one unless a mark says otherwise.
    Utf16 {
        little: bool,
        marked: bool,
    },
    /// Four bytes, likewise.
    Utf32 {
        little: bool,
        marked: bool,
    },
    #[cfg(feature = "text")]
    Table(Arc<Table>),
    #[cfg(feature = "text")]
    Iso2022(Iso2022),
}

impl Encoding {
    /// The encoding of a name; case, hyphens and the like do not matter, as in ICU.
    pub(in crate::cpu) fn find(name: &str) -> Option<Encoding> {
        let wide = |little, marked| (little, marked);
        let (bits, (little, marked)) = match names::canonical(name)? {
            "UTF-8" => return Some(Encoding::Utf8),
            "ISO-8859-1" => return Some(Encoding::Latin1),
            "US-ASCII" => return Some(Encoding::Ascii),
            "UTF-16" => (16, wide(false, true)),
            "UTF-16BE" | "UTF16_OppositeEndian" => (16, wide(false, false)),
            "UTF-16LE" | "UTF16_PlatformEndian" => (16, wide(true, false)),
            "UTF-32" => (32, wide(false, true)),
            "UTF-32BE" | "UTF32_OppositeEndian" => (32, wide(false, false)),
            "UTF-32LE" | "UTF32_PlatformEndian" => (32, wide(true, false)),
            name => return Encoding::of_table(name),
        };
        Some(match bits {
            16 => Encoding::Utf16 { little, marked },
            _ => Encoding::Utf32 { little, marked },
        })
    }

    #[cfg(feature = "text")]
    fn of_table(name: &'static str) -> Option<Encoding> {
        match name.strip_prefix("ISO_2022,locale=ja,version=") {
            Some(version) => Some(Encoding::Iso2022(Iso2022::new(version.parse().ok()?)?)),
            None => Table::find(name).map(Encoding::Table),
        }
    }

    #[cfg(not(feature = "text"))]
    fn of_table(_: &str) -> Option<Encoding> {
        None
    }

    /// The characters of a text and the bytes they begin at; `None` for what is none.
    pub(in crate::cpu) fn decode(&self, text: &[u8]) -> Vec<(usize, Option<char>)> {
        match self {
            Encoding::Ascii => unicode::ascii(text),
            Encoding::Latin1 => unicode::latin1(text),
            Encoding::Utf8 => unicode::utf8(text),
            Encoding::Utf16 { little, marked } => unicode::utf16(text, *little, *marked),
            Encoding::Utf32 { little, marked } => unicode::utf32(text, *little, *marked),
            #[cfg(feature = "text")]
            Encoding::Table(table) => table.decode(text),
            #[cfg(feature = "text")]
            Encoding::Iso2022(encoding) => encoding.decode(text),
        }
    }
}
