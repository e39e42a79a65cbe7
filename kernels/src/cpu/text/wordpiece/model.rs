//! The model of a word piece tokenizer, a FlatBuffer (`FastWordpieceTokenizerConfig`).

use super::super::{
    flatbuffer::{DamagedBuffer, FlatTable},
    model::{Recent, TensorModel},
    trie::Trie,
};

/// The link of a node that has none.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A piece as the model names it: bit 30 tells a suffix, bits 8 to 29 are the number, the lower
/// ones its bytes less one, without the suffix indicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct VocabularyPiece(pub(super) u32);

impl VocabularyPiece {
    pub(super) fn id(self) -> i64 {
        i64::from((self.0 & 0x3fff_ffff) >> 8)
    }

    pub(super) fn length(self) -> usize {
        (self.0 & 0xff) as usize + 1
    }

    pub(super) fn is_suffix(self) -> bool {
        self.0 >> 30 != 0
    }
}

/// A vocabulary with what is needed to split words in one pass.
#[derive(Debug)]
pub(super) struct WordpieceModel {
    pub(super) trie: Trie,
    /// For each node the one to go on from, and the pieces to emit then, as a position and a count
    /// less one in one number.
    links: Vec<(u32, u32)>,
    pools: Vec<u32>,
    pub(super) suffix_root: u32,
    pub(super) punctuation_link: u32,
    pub(super) max_bytes: usize,
    pub(super) suffix_indicator: Vec<u8>,
    pub(super) unknown: Vec<u8>,
    pub(super) unknown_id: i64,
    /// The pieces of the suffix indicator itself.
    pub(super) indicator_pieces: Vec<VocabularyPiece>,
    /// Whether texts are split into words first.
    pub(super) takes_texts: bool,
    /// All pieces, without the suffix indicator, and whether they had it.
    pub(super) vocabulary: Option<Vec<(Vec<u8>, bool)>>,
}

impl WordpieceModel {
    /// The link of a node.
    pub(super) fn link(&self, node: u32) -> Result<(u32, u32), DamagedBuffer> {
        self.links.get(node as usize).copied().ok_or(DamagedBuffer)
    }

    /// The pieces to emit when a link is taken.
    pub(super) fn pops(&self, encoded: u32) -> Result<&[u32], DamagedBuffer> {
        let (first, n) = (encoded as usize >> 8, (encoded as usize & 0xff) + 1);
        self.pools.get(first..first + n).ok_or(DamagedBuffer)
    }
}

impl TensorModel for WordpieceModel {
    const INPUT: &'static str = "wp_model";

    fn read(bytes: &[u8]) -> Result<WordpieceModel, DamagedBuffer> {
        let table = FlatTable::root(bytes)?;
        let trie = Trie::new(table.vector::<4>(0)?.ok_or(DamagedBuffer)?);
        let links = table.vector::<8>(1)?.ok_or(DamagedBuffer)?.iter().map(|link| {
            let [a, b, c, d, e, f, g, h] = *link;
            (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
        });
        let numbers = |field| -> Result<Vec<u32>, DamagedBuffer> {
            let numbers = table.vector::<4>(field)?.unwrap_or_default();
            Ok(numbers.iter().map(|number| u32::from_le_bytes(*number)).collect())
        };
        let text = |field| Ok(table.bytes(field)?.unwrap_or_default().to_vec());
        trie.root().ok_or(DamagedBuffer)?;
        Ok(WordpieceModel {
            links: links.collect(),
            pools: numbers(2)?,
            suffix_root: table.uint(3)?,
            // A negative size is one that every word has.
            max_bytes: usize::try_from(table.int(4, 0)?).unwrap_or(0),
            suffix_indicator: text(5)?,
            unknown: text(6)?,
            unknown_id: table.int(7, 0)?.into(),
            indicator_pieces: numbers(8)?.into_iter().map(VocabularyPiece).collect(),
            punctuation_link: table.uint(9)?,
            takes_texts: table.flag(10)?,
            vocabulary: vocabulary(&table)?,
            trie,
        })
    }

    fn recent() -> &'static Recent<WordpieceModel> {
        static RECENT: Recent<WordpieceModel> = Recent::new();
        &RECENT
    }
}

type Vocabulary = Vec<(Vec<u8>, bool)>;

/// The pieces, if the model is made for joining them again.
fn vocabulary(table: &FlatTable<'_>) -> Result<Option<Vocabulary>, DamagedBuffer> {
    if !table.flag(11)? {
        return Ok(None);
    }
    let pieces = table.strings(12)?.ok_or(DamagedBuffer)?;
    let suffixes = table.bytes(13)?.ok_or(DamagedBuffer)?;
    let both = pieces.into_iter().zip(suffixes);
    Ok(Some(both.map(|(piece, is_suffix)| (piece.to_vec(), *is_suffix != 0)).collect()))
}
