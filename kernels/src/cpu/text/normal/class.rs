//! Behaviour of characters in a normal form.

use super::{super::char_set::CharSet, fold::folded};
use std::{
    collections::{HashMap, HashSet},
    sync::OnceLock,
};
use unicode_normalization::{
    UnicodeNormalization,
    char::{canonical_combining_class, compose, decompose_canonical, decompose_compatible},
};

/// A normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormalForm {
    /// Composed.
    Nfc,
    /// Decomposed.
    Nfd,
    /// Composed, without compatibility characters.
    Nfkc,
    /// Decomposed, without compatibility characters.
    Nfkd,
    /// As [`NormalForm::Nfkc`], without differences of case and characters to be ignored.
    Fold,
}

/// It stays, whatever surrounds it, and ends what came before.
pub(super) const PLAIN: u8 = 1;
/// Nothing before it combines with it, or is swapped with it.
pub(super) const BEFORE: u8 = 2;
/// Nothing after it combines with it, or is swapped with it.
pub(super) const AFTER: u8 = 4;
/// It becomes characters that are composed already, and nothing before combines with them.
pub(super) const ALONE: u8 = 8;

const BLOCK: u32 = 256;

/// Characters whose code points are neighbours.
struct Block {
    classes: [u8; BLOCK as usize],
    /// The composed forms of those that are [`ALONE`], in the order of the lower byte of their code points.
    alone: Vec<(u8, Box<str>)>,
}

/// The classes of all characters in one form, a block of which is computed when it is asked for.
struct Table {
    form: NormalForm,
    blocks: Vec<OnceLock<Box<Block>>>,
}

impl Table {
    fn new(form: NormalForm) -> Table {
        let blocks = std::iter::repeat_with(OnceLock::new);
        Table { form, blocks: blocks.take((0x11_0000 / BLOCK) as usize).collect() }
    }

    fn block(&self, character: char) -> &Block {
        let number = u32::from(character) / BLOCK;
        self.blocks[number as usize].get_or_init(|| Box::new(self.form.block(number)))
    }
}

fn table(form: NormalForm) -> &'static Table {
    static TABLES: [OnceLock<Table>; 5] = [const { OnceLock::new() }; 5];
    TABLES[form as usize].get_or_init(|| Table::new(form))
}

/// The class of a character in a form.
pub(super) fn class(form: NormalForm, character: char) -> u8 {
    table(form).block(character).classes[(u32::from(character) % BLOCK) as usize]
}

/// The composed form of a character that is [`ALONE`]; `None` for others.
pub(super) fn composed_alone(form: NormalForm, character: char) -> Option<&'static str> {
    let alone = &table(form).block(character).alone;
    let index = alone.binary_search_by_key(&(u32::from(character) as u8), |(low, _)| *low).ok()?;
    Some(&alone[index].1)
}

impl NormalForm {
    fn block(self, number: u32) -> Block {
        let mut block = Block { classes: [PLAIN; BLOCK as usize], alone: Vec::new() };
        for low in 0..=u8::MAX {
            let Some(character) = char::from_u32(number * BLOCK + u32::from(low)) else { continue };
            let class = self.computed(character);
            block.classes[usize::from(low)] = class;
            if class & ALONE != 0 {
                let mut parts = Vec::new();
                self.decompose(character, &mut parts);
                block.alone.push((low, parts.into_iter().nfc().collect::<String>().into()));
            }
        }
        block
    }

    /// Decomposition of a character.
    pub(super) fn decompose(self, character: char, out: &mut Vec<char>) {
        match self {
            NormalForm::Nfc | NormalForm::Nfd => {
                decompose_canonical(character, |part| out.push(part))
            }
            NormalForm::Nfkc | NormalForm::Nfkd => {
                decompose_compatible(character, |part| out.push(part))
            }
            NormalForm::Fold => folded(character, out),
        }
    }

    fn computed(self, character: char) -> u8 {
        static KNOWN: OnceLock<CharSet> = OnceLock::new();
        // What Unicode 16 does not have is not changed, and nothing combines with it.
        if !KNOWN.get_or_init(|| CharSet::of_class(r"\p{Any}")).has(character) {
            return PLAIN | BEFORE | AFTER;
        }
        let mut parts = Vec::new();
        self.decompose(character, &mut parts);
        let stays = parts == [character];
        let starter = canonical_combining_class(character) == 0;
        if matches!(self, NormalForm::Nfd | NormalForm::Nfkd) {
            let begins = parts.first().is_some_and(|first| canonical_combining_class(*first) == 0);
            return if stays && starter { PLAIN } else { 0 } | if begins { BEFORE } else { 0 };
        }
        let composed: Vec<char> = parts.iter().copied().nfc().collect();
        let pairs = pairs();
        let mut class = 0;
        let begins =
            |first: &char| canonical_combining_class(*first) == 0 && !pairs.seconds.contains(first);
        if parts.first().is_some_and(begins) {
            class |= BEFORE;
        }
        if composed == [character] && begins(&character) {
            class |= PLAIN;
        } else if class & BEFORE != 0 && (self == NormalForm::Fold || composed == parts) {
            class |= ALONE;
        }
        if pairs.ends(&parts, &composed) {
            class |= AFTER;
        }
        class
    }
}

/// The pairs of characters that are composed to one.
struct Pairs {
    /// By the first: the second ones.
    seconds_of: HashMap<char, Vec<char>>,
    seconds: HashSet<char>,
}

fn pairs() -> &'static Pairs {
    static PAIRS: OnceLock<Pairs> = OnceLock::new();
    PAIRS.get_or_init(|| {
        let mut pairs = Pairs { seconds_of: HashMap::new(), seconds: HashSet::new() };
        // The Hangul syllables are composed by rule.
        let jamos = ('\u{1161}'..='\u{1175}').chain('\u{11a8}'..='\u{11c2}');
        pairs.seconds.extend(jamos);
        let composites = ('\u{80}'..='\u{33ff}').chain('\u{a000}'..='\u{abff}');
        for character in composites.chain('\u{f900}'..='\u{2ffff}') {
            let mut parts = Vec::new();
            decompose_canonical(character, |part| parts.push(part));
            let Some((&second, before)) = parts.split_last() else { continue };
            let mut before = before.iter().copied().nfc();
            if let (Some(first), None) = (before.next(), before.next())
                && compose(first, second) == Some(character)
            {
                pairs.seconds_of.entry(first).or_default().push(second);
                pairs.seconds.insert(second);
            }
        }
        pairs
    })
}

impl Pairs {
    /// Whether nothing after a character with these parts can change it.
    fn ends(&self, parts: &[char], composed: &[char]) -> bool {
        let is_starter = |part: &char| canonical_combining_class(*part) == 0;
        let Some(place) = parts.iter().rposition(is_starter) else { return false };
        let last = parts.len() - 1;
        // A mark that is left at the end may change places with others, unless its class is the
        // lowest one.
        if composed.last().is_none_or(|last| canonical_combining_class(*last) > 1) {
            return false;
        }
        if matches!(parts[last], '\u{1100}'..='\u{1112}') {
            return false;
        }
        let mut starter = parts[place];
        if let Some(&before) = place.checked_sub(1).and_then(|place| parts.get(place))
            && let Some(both) = compose(before, starter)
        {
            if place == last && matches!(starter, '\u{1161}'..='\u{1175}') {
                return false;
            }
            starter = both;
        }
        let mut starters = vec![parts[place], starter];
        for &part in &parts[place + 1..] {
            if let Some(both) = compose(starter, part) {
                starter = both;
                starters.push(both);
            }
        }
        let mut followers = starters.iter().filter_map(|s| self.seconds_of.get(s)).flatten();
        followers.all(|&follower| {
            let together = parts.iter().copied().chain([follower]).nfc();
            together.eq(composed.iter().copied().chain([follower]))
        })
    }
}

/// Whether a character combines with some character before it.
pub(super) fn combines(character: char) -> bool {
    pairs().seconds.contains(&character)
}
