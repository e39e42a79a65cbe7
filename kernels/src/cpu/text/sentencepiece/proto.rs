//! The message that holds a model (`sentencepiece_model.proto`).

use bytes::Bytes;
use ferroflow_ir::wire::{DamagedMessage, WireValue, fields};

/// Role of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Normal,
    Unknown,
    /// It stands for no text.
    Control,
    /// It is never split, whatever its score.
    UserDefined,
    /// It stands for one byte of a character that has no piece.
    Byte,
    /// It is only used on the way to longer pieces.
    Unused,
}

#[derive(Debug, Clone)]
pub(super) struct PieceProto {
    pub(super) text: Bytes,
    pub(super) score: f32,
    pub(super) kind: PieceKind,
}

/// Algorithm that splits text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelType {
    Unigram,
    BytePairs,
    Words,
    Characters,
}

/// Normalization of text before it is split.
#[derive(Debug, Clone)]
pub(super) struct NormalizerSpec {
    pub(super) characters: Bytes,
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
    pub(super) whitespace_as_suffix: bool,
}

/// A model as it is stored.
#[derive(Debug, Clone)]
pub(super) struct ModelProto {
    pub(super) pieces: Vec<PieceProto>,
    pub(super) algorithm: ModelType,
    pub(super) byte_fallback: bool,
    pub(super) bos: Bytes,
    pub(super) eos: Bytes,
    /// Text for pieces that are not known.
    pub(super) unknown_surface: Bytes,
    pub(super) normalizer: NormalizerSpec,
    pub(super) denormalizer: Option<NormalizerSpec>,
}

fn string(field: WireValue<'_>) -> Result<Bytes, DamagedMessage> {
    Ok(Bytes::copy_from_slice(field.bytes()?))
}

fn flag(field: WireValue<'_>) -> Result<bool, DamagedMessage> {
    Ok(field.varint()? != 0)
}

impl ModelProto {
    pub(super) fn read(message: &[u8]) -> Result<ModelProto, DamagedMessage> {
        let mut proto = ModelProto {
            pieces: Vec::new(),
            algorithm: ModelType::Unigram,
            byte_fallback: false,
            bos: Bytes::from_static(b"<s>"),
            eos: Bytes::from_static(b"</s>"),
            unknown_surface: Bytes::from_static(" \u{2047} ".as_bytes()),
            normalizer: NormalizerSpec::new(),
            denormalizer: None,
        };
        for field in fields(message) {
            match field? {
                (1, piece) => proto.pieces.push(PieceProto::read(piece.bytes()?)?),
                (2, spec) => proto.read_trainer(spec.bytes()?)?,
                (3, spec) => proto.normalizer.read(spec.bytes()?)?,
                (5, spec) => {
                    let known = proto.denormalizer.get_or_insert_with(NormalizerSpec::new);
                    known.read(spec.bytes()?)?;
                }
                _ => {}
            }
        }
        Ok(proto)
    }

    fn read_trainer(&mut self, message: &[u8]) -> Result<(), DamagedMessage> {
        for field in fields(message) {
            match field? {
                (3, kind) => {
                    self.algorithm = match kind.varint()? {
                        2 => ModelType::BytePairs,
                        3 => ModelType::Words,
                        4 => ModelType::Characters,
                        // Values that an enum does not have leave its field as it is.
                        _ => ModelType::Unigram,
                    };
                }
                (24, suffix) => self.normalizer.whitespace_as_suffix = flag(suffix)?,
                (35, fallback) => self.byte_fallback = flag(fallback)?,
                (44, surface) => self.unknown_surface = string(surface)?,
                (46, piece) => set_piece(&mut self.bos, piece)?,
                (47, piece) => set_piece(&mut self.eos, piece)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Sets the name of a special piece; an empty one leaves it as it is.
fn set_piece(known: &mut Bytes, field: WireValue<'_>) -> Result<(), DamagedMessage> {
    let name = string(field)?;
    if !name.is_empty() {
        *known = name;
    }
    Ok(())
}

impl PieceProto {
    fn read(message: &[u8]) -> Result<PieceProto, DamagedMessage> {
        let mut piece = PieceProto { text: Bytes::new(), score: 0.0, kind: PieceKind::Normal };
        for field in fields(message) {
            match field? {
                (1, text) => piece.text = string(text)?,
                (2, WireValue::Fixed32(score)) => piece.score = f32::from_le_bytes(score),
                (2, _) => return Err(DamagedMessage),
                (3, kind) => {
                    piece.kind = match kind.varint()? {
                        2 => PieceKind::Unknown,
                        3 => PieceKind::Control,
                        4 => PieceKind::UserDefined,
                        5 => PieceKind::Unused,
                        6 => PieceKind::Byte,
                        _ => PieceKind::Normal,
                    };
                }
                _ => {}
            }
        }
        Ok(piece)
    }
}

impl NormalizerSpec {
    fn new() -> NormalizerSpec {
        NormalizerSpec {
            characters: Bytes::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            whitespace_as_suffix: false,
        }
    }

    fn read(&mut self, message: &[u8]) -> Result<(), DamagedMessage> {
        for field in fields(message) {
            match field? {
                (2, characters) => self.characters = string(characters)?,
                (3, prefix) => self.add_dummy_prefix = flag(prefix)?,
                (4, remove) => self.remove_extra_whitespaces = flag(remove)?,
                (5, escape) => self.escape_whitespaces = flag(escape)?,
                _ => {}
            }
        }
        Ok(())
    }
}
