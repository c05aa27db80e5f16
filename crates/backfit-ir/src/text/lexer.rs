//! From characters to tokens.

use super::words::{begins_word, in_word};
use crate::error::{Error, Problem};
use std::fmt;

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// `%12`
    Value(u64),
    /// `add`, `fc1.weight`
    Word(&'t str),
    /// `-1.5e3`, `-inf`, `0x7fc0`; what it means is decided where it stands.
    Number(&'t str),
    /// `"text"`, without quotes and escapes
    Text(String),
    /// One of ``@ { } ( ) [ ] , : =``
    Mark(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Value(number) => write!(f, "'%{number}'"),
            Token::Word(word) | Token::Number(word) => write!(f, "'{}'", shortened(word)),
            Token::Text(text) => write!(f, "the text \"{}\"", shortened(text).escape_debug()),
            Token::Mark(mark) => write!(f, "'{mark}'"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// The beginning of a long piece, for messages.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

/// A problem at a byte of the text: `line:column: what`.
pub(super) fn problem_at(text: &[u8], at: usize, what: impl fmt::Display) -> Error {
    let before = &text[..at.min(text.len())];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    Problem::new(format!("{line}:{column}: {what}")).into()
}

/// All tokens with the bytes at which they begin; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, Error> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let at = lexer.at;
        let token = lexer.next()?;
        let end = token == Token::End;
        tokens.push((token, at));
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes characters while they fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn skip_blank(&mut self) {
        loop {
            self.take(char::is_whitespace);
            if !self.rest().starts_with("//") {
                return;
            }
            self.take(|c| c != '\n');
        }
    }

    fn fail<T>(&self, at: usize, what: impl fmt::Display) -> Result<T, Error> {
        Err(problem_at(self.text.as_bytes(), at, what))
    }

    fn next(&mut self) -> Result<Token<'t>, Error> {
        let start = self.at;
        let Some(c) = self.peek() else { return Ok(Token::End) };
        if begins_word(c) {
            return Ok(Token::Word(self.take(in_word)));
        }
        if c.is_ascii_digit() || c == '-' {
            return Ok(Token::Number(self.number()));
        }
        self.at += c.len_utf8();
        match c {
            '%' => {
                let digits = self.take(|c| c.is_ascii_digit());
                digits.parse().map(Token::Value).or_else(|_| self.fail(start, "expected a number after '%'"))
            }
            '"' => self.text(start),
            '@' | '{' | '}' | '(' | ')' | '[' | ']' | ',' | ':' | '=' => Ok(Token::Mark(c)),
            c => self.fail(start, format!("'{}' means nothing here", c.escape_debug())),
        }
    }

    /// Digits, letters and dots, and a sign at the start and after an exponent's `e`.
    fn number(&mut self) -> &'t str {
        let rest = self.rest();
        let hex = rest.starts_with("0x");
        let mut before = 'e';
        let end = rest.find(|c: char| {
            let sign = (c == '-' || c == '+') && (before == 'e' || before == 'E') && !hex;
            before = c;
            !in_word(c) && !sign
        });
        let number = &rest[..end.unwrap_or(rest.len())];
        self.at += number.len();
        number
    }

    fn text(&mut self, start: usize) -> Result<Token<'t>, Error> {
        let mut out = String::new();
        loop {
            out.push_str(self.take(|c| c != '"' && c != '\\' && c != '\n'));
            let at = self.at;
            let Some(c) = self.peek().filter(|&c| c != '\n') else {
                return self.fail(start, "this text has no closing quote in its line");
            };
            self.at += c.len_utf8();
            if c == '"' {
                return Ok(Token::Text(out));
            }
            match self.escape() {
                Some(c) => out.push(c),
                None => return self.fail(at, r#"expected one of \" \\ \n \u{…}"#),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        match c {
            'n' => Some('\n'),
            '"' | '\\' => Some(c),
            'u' => {
                let rest = self.rest().strip_prefix('{')?;
                let (digits, _) = rest.split_once('}').filter(|(digits, _)| digits.len() <= 6)?;
                self.at += digits.len() + 2;
                u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
            }
            _ => None,
        }
    }
}
