//! Tables of encoding_rs for `tests/ops/encodings.py`: for each encoding a file of the codes of all bytes, all
//! two bytes, and all two after 0x8f. A code is a character, two of them (bit 31), or 0x110001 for neither.

use encoding_rs::Encoding;
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args().nth(1).ok_or("encoding_tables FOLDER")?);
    for name in ["Shift_JIS", "EUC-JP", "GBK", "gb18030", "Big5", "EUC-KR"] {
        let encoding = Encoding::for_label(name.as_bytes()).ok_or(name)?;
        let bytes = (0..=255).map(|byte| vec![byte]);
        let pairs = (0..=u16::MAX).map(|pair| pair.to_be_bytes().to_vec());
        let triples = (0..=u16::MAX).map(|pair| [&[0x8f][..], &pair.to_be_bytes()].concat());
        let codes = bytes.chain(pairs).chain(triples).map(|bytes| code(encoding, &bytes));
        let codes: Vec<u8> = codes.flat_map(u32::to_le_bytes).collect();
        fs::write(folder.join(name), codes)?;
    }
    Ok(())
}

fn code(encoding: &'static Encoding, bytes: &[u8]) -> u32 {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    let characters: Vec<u32> = text.iter().flat_map(|text| text.chars()).map(u32::from).collect();
    match characters[..] {
        [only] => only,
        [first, second] => 1 << 31 | first << 16 | second,
        _ => 0x11_0001,
    }
}
