//! Tokens as bytes, and bytes as text.
//!
//! Most tokenizers are at heart a table from id to bytes; with the table, decoding is exact at every token and needs no look
//! back. Tokenizers of other kinds are decoded by the `tokenizers` crate.

use std::collections::BTreeSet;

use crate::{Error, ErrorKind, Result};

/// The mark that stands for a space in SentencePiece vocabularies.
pub(super) const SPACE_MARK: char = '\u{2581}';

pub(super) enum Detokenizer {
    /// By table.
    Bytes(ByteTable),
    /// By the `tokenizers` crate.
    Library,
}

/// How a vocabulary writes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// GPT-2's: each byte is a printable character.
    ByteLevel,
    /// SentencePiece's: `▁` for a space, `<0x0A>` for a byte that is no character. Some drop the first space of a text.
    SentencePiece { drop_first_space: bool },
}

/// The bytes of every token.
pub(super) struct ByteTable {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    drop_first_space: bool,
}

impl ByteTable {
    /// Spells out the tokens; those in `verbatim` are their own text.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a str>, verbatim: &BTreeSet<u32>, spelling: Spelling) -> Self {
        let drop_first_space = spelling == Spelling::SentencePiece { drop_first_space: true };
        let mut table = Self { bytes: Vec::new(), ends: Vec::new(), drop_first_space };
        let byte_of = byte_level_bytes();
        for (id, token) in (0u32..).zip(tokens) {
            let start = table.bytes.len();
            match spelling {
                _ if verbatim.contains(&id) => table.bytes.extend(token.as_bytes()),
                Spelling::ByteLevel => {
                    let known = token.chars().all(|c| match byte_of.get(c as usize) {
                        Some(&Some(byte)) => {
                            table.bytes.push(byte);
                            true
                        }
                        _ => false,
                    });
                    if !known {
                        table.bytes.truncate(start);
                        table.bytes.extend(token.as_bytes());
                    }
                }
                Spelling::SentencePiece { .. } => match byte_token(token) {
                    Some(byte) => table.bytes.push(byte),
                    None => table.bytes.extend(token.replace(SPACE_MARK, " ").as_bytes()),
                },
            }
            table.ends.push(table.bytes.len());
        }
        table
    }

    /// The bytes of `id`, at the start of a text or further on; none for an id that isn't there.
    pub(super) fn bytes(&self, id: u32, first: bool) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        let bytes = &self.bytes[start..end];
        match bytes.strip_prefix(b" ") {
            Some(rest) if first && self.drop_first_space => rest,
            _ => bytes,
        }
    }
}

/// `<0x0A>` as 10.
pub(super) fn byte_token(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit()) { u8::from_str_radix(hex, 16).ok() } else { None }
}

/// GPT-2's characters, as a table from code point to byte: printable ones stand for themselves, the others are shifted up.
fn byte_level_bytes() -> [Option<u8>; 512] {
    let mut table = [None; 512];
    let mut shifted = 256;
    for byte in 0..=255u8 {
        if matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) {
            table[byte as usize] = Some(byte);
        } else {
            table[shifted] = Some(byte);
            shifted += 1;
        }
    }
    table
}

/// Bytes in, whole characters out: the start of a character waits for its rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Utf8Buffer(Vec<u8>);

impl Utf8Buffer {
    /// Takes `bytes` and writes all characters that are complete; bytes that can't become one are written as U+FFFD, each
    /// maximal part as one, as `String::from_utf8_lossy` does.
    pub(super) fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.0.extend(bytes);
        let mut rest: &[u8] = &self.0;
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    let Some(bad) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[bad..];
                }
            }
        }
        let done = self.0.len() - rest.len();
        self.0.drain(..done);
    }

    /// Writes U+FFFD for a character whose rest never came.
    pub(super) fn finish(&mut self, text: &mut String) {
        if !self.0.is_empty() {
            self.0.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// The highest id must not be so far above the number of tokens that a table of all ids would be out of proportion.
pub(super) fn check_density(highest: u32, count: usize) -> Result<()> {
    if highest as usize > count.saturating_mul(16).saturating_add(1 << 16) {
        let what = format!("damaged vocabulary: token id {highest} among only {count} tokens");
        return Err(Error::new(ErrorKind::Tokenizer, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_buffer_in_any_pieces_equals_lossy_decoding_of_the_whole() {
        let samples: [&[u8]; 6] = [
            "aé€😀 z".as_bytes(),
            b"\xff\xfe",
            b"\xe2\x82",
            b"\xe2\x82\x41\xf0\x9f\x98",
            b"\xf0\x9f\x98\x80\xc0\xaf\xed\xa0\x80x",
            b"",
        ];
        for sample in samples {
            for cut in 1..=sample.len().max(1) {
                let mut buffer = Utf8Buffer::default();
                let mut text = String::new();
                for piece in sample.chunks(cut) {
                    buffer.push(piece, &mut text);
                }
                buffer.finish(&mut text);
                assert_eq!(text, String::from_utf8_lossy(sample), "{sample:?} by {cut}");
            }
        }
    }

    #[test]
    fn byte_level_characters_are_gpt2s() {
        let table = byte_level_bytes();
        let byte = |c: char| table[c as usize];
        let wanted = [('Ġ', b' '), ('Ċ', b'\n'), ('a', b'a'), ('\u{143}', 0xad), ('ÿ', 0xff)];
        assert_eq!(wanted.map(|(c, _)| byte(c)), wanted.map(|(_, b)| Some(b)));
        assert_eq!(byte(' '), None);
        assert_eq!(table.iter().flatten().collect::<BTreeSet<_>>().len(), 256);
    }

    #[test]
    fn byte_tokens_are_exactly_two_hex_digits() {
        assert_eq!(byte_token("<0x0A>"), Some(10));
        for other in ["<0xA>", "<0x0A0>", "0x0A", "<0x+1>", "<0xzz>"] {
            assert_eq!(byte_token(other), None, "{other}");
        }
    }
}
