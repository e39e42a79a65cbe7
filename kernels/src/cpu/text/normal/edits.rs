//! Changes of a normalization, piece by piece.

/// A run of bytes that stayed, or a piece that was replaced.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edit {
    old: usize,
    new: usize,
    changed: bool,
}

/// All that happened to a text, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edits(Vec<Edit>);

impl Edits {
    fn keep(&mut self, length: usize) {
        match self.0.last_mut() {
            Some(last) if !last.changed => {
                last.old += length;
                last.new += length;
            }
            _ => self.0.push(Edit { old: length, new: length, changed: false }),
        }
    }

    /// The offset in the source of an offset in the result. An offset inside of a replaced piece
    /// becomes the end of what it replaced; one before the text its begin, one after it its end.
    pub(crate) fn source(&self, offset: i64) -> i64 {
        let Ok(offset) = usize::try_from(offset) else { return 0 };
        let (mut source, mut result) = (0, 0);
        for edit in &self.0 {
            if offset < result + edit.new {
                return match (edit.changed, offset - result) {
                    (_, 0) => source,
                    (true, _) => source + edit.old,
                    (false, inside) => source + inside,
                } as i64;
            }
            source += edit.old;
            result += edit.new;
        }
        source as i64
    }
}

/// The result of a normalization, as it is written.
pub(super) struct EditedText<'a> {
    text: &'a [u8],
    /// Length of the text that has been read.
    read: usize,
    /// Length of the text before `read` that is not written yet, as it stays.
    pending: usize,
    written: &'a mut Vec<u8>,
    changed: bool,
    edits: Option<&'a mut Edits>,
}

impl<'a> EditedText<'a> {
    /// The result of a text, which is written to the end of `written` if it is another one.
    pub(super) fn new(
        text: &'a [u8],
        written: &'a mut Vec<u8>,
        edits: Option<&'a mut Edits>,
    ) -> EditedText<'a> {
        EditedText { text, read: 0, pending: 0, written, changed: false, edits }
    }

    /// Leaves the next bytes as they are.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.read += bytes.len();
        self.pending += bytes.len();
        if let Some(edits) = &mut self.edits {
            edits.keep(bytes.len());
        }
    }

    /// Replaces the next `old` bytes.
    pub(super) fn replace(&mut self, old: usize, new: &str) {
        self.flush();
        self.written.extend_from_slice(new.as_bytes());
        self.read += old;
        if let Some(edits) = &mut self.edits {
            edits.0.push(Edit { old, new: new.len(), changed: true });
        }
    }

    /// Replaces the next bytes, letters of ASCII among them, by lowercase ones.
    pub(super) fn replace_by_lowercase(&mut self, bytes: &[u8]) {
        self.flush();
        self.read += bytes.len();
        let start = self.written.len();
        self.written.extend_from_slice(bytes);
        self.written[start..].make_ascii_lowercase();
        debug_assert!(self.edits.is_none(), "such pieces are not told");
    }

    fn flush(&mut self) {
        if !self.changed {
            self.changed = true;
            self.written.reserve(self.text.len() + 16);
        }
        let pending = std::mem::take(&mut self.pending);
        self.written.extend_from_slice(&self.text[self.read - pending..self.read]);
    }

    /// Ends the result; whether it is not the text itself.
    pub(super) fn finish(mut self) -> bool {
        if self.changed {
            self.flush();
        }
        self.changed
    }
}
