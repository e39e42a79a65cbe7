use super::{Encoding, OutputEncoding};
use flate2::Crc;

/// Each line is an encoding, and the sums of what TensorFlow makes of all bytes, all two bytes and a
/// sample (`tests/ops/encodings.py`).
const SUMS: &str = include_str!("sums.txt");

#[test]
fn written_text_is_read() {
    let text = "a\u{e9}\u{65e5}\u{1f600}";
    for (output, name) in [("UTF-8", "UTF-8"), ("UTF-16-BE", "utf16be"), ("UTF-32-BE", "utf_32")] {
        let mut bytes = Vec::new();
        let output = OutputEncoding::find(output).unwrap();
        text.chars().for_each(|character| output.encode(character, &mut bytes));
        let read = Encoding::find(name).unwrap().decode(&bytes);
        let read: Option<String> = read.into_iter().map(|(_, character)| character).collect();
        assert_eq!(read.as_deref(), Some(text), "{name}");
    }
}

#[test]
fn all_characters_are_those_of_tensorflow() {
    let singles: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let pairs: Vec<Vec<u8>> = (0..=u16::MAX).map(|pair| pair.to_be_bytes().to_vec()).collect();
    let sample = sample();
    let mut n = 0;
    for line in SUMS.lines() {
        let (name, sums) = line.split_once(' ').unwrap();
        let encoding = Encoding::find(name).unwrap_or_else(|| panic!("{name} is not known"));
        // Where bytes are characters, two bytes are two of them.
        for (texts, wanted) in [&singles, &sample, &pairs].into_iter().zip(sums.split(' ')) {
            let found = format!("{:08x}", sum(&encoding, texts));
            assert_eq!(found, wanted, "{name}, {} texts", texts.len());
        }
        n += 1;
    }
    assert!(n > 180, "{n} encodings");
}

/// A sum of the characters of texts, and where they begin.
fn sum(encoding: &Encoding, texts: &[Vec<u8>]) -> u32 {
    let mut sum = Crc::new();
    for text in texts {
        for (start, character) in encoding.decode(text) {
            // TensorFlow was asked to replace what is malformed by this one.
            let code = u32::from(character.unwrap_or(char::MAX));
            sum.update(&[code.to_le_bytes(), (start as u32).to_le_bytes()].concat());
        }
        sum.update(&u32::MAX.to_le_bytes());
    }
    sum.sum()
}

/// Texts of a few bytes: any, upper, lower, and those that mean something to somebody.
fn sample() -> Vec<Vec<u8>> {
    const SPECIAL: &[u8] = b"\x1b$B(JI\x0e\x0fN.AF09\x81\xfe\xa1\x8e\x8f\n\xa0\xff@D\x7f";
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize
    };
    let texts = (0..4096).map(|n| {
        let len = next() % 12;
        let byte = |_| match n % 4 {
            0 => next() as u8,
            1 => (next() % 128) as u8 | 0x80,
            2 => SPECIAL[next() % SPECIAL.len()],
            _ => b"\xb0\xa1A\x8f1"[next() % 5],
        };
        (0..len).map(byte).collect()
    });
    texts.collect()
}
