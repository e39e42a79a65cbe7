//! From the syntax of RE2 (`re2/doc/syntax.txt`), which TensorFlow uses, to that of the `regex`
//! crate, which differs in few places.

/// The longest repetition RE2 has.
const MOST_REPEATED: u32 = 1000;

/// The same expression for the `regex` crate.
///
/// # Errors
///
/// The part that RE2 does not have.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translation = Translation { rest: pattern, out: String::new(), repeated: false };
    while !translation.rest.is_empty() {
        translation.step()?;
    }
    Ok(translation.out)
}

struct Translation<'a> {
    rest: &'a str,
    out: String,
    /// Whether the last thing was a repetition, which must not be repeated.
    repeated: bool,
}

impl<'a> Translation<'a> {
    fn take(&mut self, n: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(n);
        self.rest = rest;
        taken
    }

    /// Passes text on as it is.
    fn pass(&mut self, n: usize) {
        let taken = self.take(n);
        self.out.push_str(taken);
    }

    fn step(&mut self) -> Result<(), String> {
        let first = self.rest.chars().next().unwrap_or_default();
        if let Some(length) = repetition(self.rest)? {
            return self.repeat(length);
        }
        self.repeated = false;
        match first {
            '\\' => self.escape(false)?,
            '[' => self.class()?,
            '(' => self.group()?,
            '{' => {
                self.take(1);
                self.out.push_str(r"\{");
            }
            other => {
                self.take(other.len_utf8());
                self.out.push(other);
            }
        }
        Ok(())
    }

    /// Passes a repetition on, with the question mark that makes it lazy.
    fn repeat(&mut self, length: usize) -> Result<(), String> {
        if self.repeated {
            return Err(self.rest[..length].to_string());
        }
        let lazy = usize::from(self.rest[length..].starts_with('?'));
        self.pass(length + lazy);
        self.repeated = true;
        Ok(())
    }

    /// An opening parenthesis: flags and names must be those RE2 has.
    fn group(&mut self) -> Result<(), String> {
        let Some(inside) = self.rest.strip_prefix("(?") else {
            self.pass(1);
            return Ok(());
        };
        let length = if inside.starts_with("P<") {
            "P<".len()
        } else {
            let end = inside.find([':', ')']).unwrap_or(inside.len());
            if !inside[..end].chars().all(|flag| "imsU-".contains(flag)) {
                return Err(format!("(?{inside}"));
            }
            end
        };
        self.pass("(?".len() + length);
        Ok(())
    }

    /// A backslash and what belongs to it.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(letter) = self.rest[1..].chars().next() else {
            return Err("trailing backslash".to_string());
        };
        let unknown = || Err(format!("\\{letter}"));
        let length = 1 + letter.len_utf8();
        if let Some(class) = perl_class(letter) {
            self.take(length);
            let bracketed = !in_class || class.starts_with('^');
            self.out.push_str(&if bracketed { format!("[{class}]") } else { class.to_string() });
            return Ok(());
        }
        match letter {
            'b' | 'B' if !in_class => {
                self.take(length);
                self.out.push_str(&format!(r"(?-u:\{letter})"));
            }
            'A' | 'z' if !in_class => self.pass(length),
            'C' if !in_class => {
                self.take(length);
                self.out.push_str("(?s-u:.)");
            }
            'Q' if !in_class => self.quotation(),
            'p' | 'P' => self.property(),
            'x' => self.hexadecimal()?,
            '0'..='7' => return self.octal(),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => self.pass(length),
            letter if letter.is_ascii_alphanumeric() => return unknown(),
            letter => {
                self.take(length);
                self.literal(letter);
            }
        }
        Ok(())
    }

    fn literal(&mut self, letter: char) {
        self.out.push_str(&format!(r"\x{{{:X}}}", u32::from(letter)));
    }

    /// Text between `\Q` and `\E`.
    fn quotation(&mut self) {
        self.take(2);
        let end = self.rest.find(r"\E").unwrap_or(self.rest.len());
        let text = self.take(end);
        text.chars().for_each(|letter| self.literal(letter));
        self.take(self.rest.len().min(2));
    }

    /// `\pL`, `\p{Greek}`, or `\p{^Greek}`.
    fn property(&mut self) {
        let length = match self.rest[2..].starts_with('{') {
            true => self.rest.find('}').map_or(self.rest.len(), |end| end + 1),
            false => 2 + self.rest[2..].chars().next().map_or(0, char::len_utf8),
        };
        let taken = self.take(length);
        match taken.split_once("{^") {
            Some((r"\p", name)) => self.out.push_str(&format!(r"\P{{{name}")),
            Some((_, name)) => self.out.push_str(&format!(r"\p{{{name}")),
            None => self.out.push_str(taken),
        }
    }

    fn hexadecimal(&mut self) -> Result<(), String> {
        let digits = &self.rest[2..];
        let length = match digits.strip_prefix('{') {
            Some(digits) => digits.find('}').map(|end| end + 2),
            None => digits.get(..2).filter(|d| d.bytes().all(|d| d.is_ascii_hexdigit())).map(|_| 2),
        };
        let length = length.ok_or_else(|| r"\x".to_string())?;
        self.pass(2 + length);
        Ok(())
    }

    /// `\0` and up to two more digits, or two or three digits; a single digit would be a group.
    fn octal(&mut self) -> Result<(), String> {
        let digits = self.rest[1..].bytes().take(3).take_while(|d| (b'0'..=b'7').contains(d));
        let n_digits = digits.count();
        if n_digits == 1 && !self.rest.starts_with(r"\0") {
            return Err(self.rest[..2].to_string());
        }
        let taken = self.take(1 + n_digits);
        let code = u32::from_str_radix(&taken[1..], 8).ok().and_then(char::from_u32);
        self.literal(code.unwrap_or_default());
        Ok(())
    }

    /// A bracketed class, in which the `regex` crate returns `[`, `&` and `~` a meaning.
    fn class(&mut self) -> Result<(), String> {
        let head = if self.rest.starts_with("[^") { 2 } else { 1 };
        self.pass(head);
        let mut first = true;
        loop {
            let Some(letter) = self.rest.chars().next() else {
                return Err("missing ]".to_string());
            };
            match letter {
                ']' if !first => {
                    self.pass(1);
                    return Ok(());
                }
                '[' if self.rest.starts_with("[:") && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").map_or(self.rest.len(), |end| end + 2);
                    self.pass(end);
                }
                '\\' => self.escape(true)?,
                '[' | ']' | '&' | '~' => {
                    self.take(1);
                    self.literal(letter);
                }
                '-' if first || self.rest.starts_with("-]") => {
                    self.take(1);
                    self.literal('-');
                }
                other => self.pass(other.len_utf8()),
            }
            first = false;
        }
    }
}

/// The class behind one of Perl's letters, which know ASCII only.
fn perl_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "0-9",
        'D' => "^0-9",
        's' => r"\t\n\f\r ",
        'S' => r"^\t\n\f\r ",
        'w' => "0-9A-Za-z_",
        'W' => "^0-9A-Za-z_",
        _ => return None,
    })
}

/// The length of the repetition that the text begins with, if it does.
fn repetition(text: &str) -> Result<Option<usize>, String> {
    if text.starts_with(['*', '+', '?']) {
        return Ok(Some(1));
    }
    let Some((inside, _)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return Ok(None);
    };
    let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|d| d.is_ascii_digit());
    if !is_number(least) || !(is_number(most) || most.is_empty()) {
        return Ok(None);
    }
    let fits = |text: &str| text.parse::<u32>().is_ok_and(|n| n <= MOST_REPEATED);
    match fits(least) && (most.is_empty() || fits(most)) {
        true => Ok(Some(inside.len() + 2)),
        false => Err(format!("{{{inside}}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::bytes::Regex;

    fn check(pattern: &str, expected: &str) {
        assert_eq!(translate(pattern).as_deref(), Ok(expected));
        assert!(Regex::new(expected).is_ok(), "{expected}");
    }

    #[test]
    fn differences_are_bridged() {
        check(r"(\w+)\s", r"([0-9A-Za-z_]+)[\t\n\f\r ]");
        check(r"[\Wa]", r"[[^0-9A-Za-z_]a]");
        check(r"[[a&&b]", r"[\x{5B}a\x{26}\x{26}b]");
        check(r"[]a-]", r"[\x{5D}a\x{2D}]");
        check(r"a{,2}b{2}{", r"a\{,2}b{2}\{");
        check(r"\Qa.b\Ec", r"\x{61}\x{2E}\x{62}c");
        check(r"\bx\<", r"(?-u:\b)x\x{3C}");
        check(r"\12\0", r"\x{A}\x{0}");
        check(r"\p{^Lu}\pN", r"\P{Lu}\pN");
        check(r"(?i)[[:word:]]+?(?P<n>.)", r"(?i)[[:word:]]+?(?P<n>.)");
    }

    #[test]
    fn what_re2_has_not_is_refused() {
        for bad in ["a**", "a?+", "a{1001}", "(?x)a", "(?<n>a)", r"\1", r"\8", r"\Z", r"\h", "["] {
            assert!(translate(bad).is_err(), "{bad}");
        }
        for bad in [r"\x4", r"[\b]", r"\", "a{2}{3}", r"\u0041"] {
            assert!(translate(bad).is_err(), "{bad}");
        }
    }
}
