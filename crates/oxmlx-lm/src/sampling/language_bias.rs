//! Language bias: a number added to all tokens written in chosen scripts, to keep a model from drifting into another language.

use std::sync::Arc;

use super::check::check;
use super::row::Row;
use crate::{Result, Tokenizer};

/// A writing system, as far as it tells languages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Script {
    /// English, Spanish, Vietnamese, Turkish ...
    Latin,
    /// Greek.
    Greek,
    /// Russian, Ukrainian, Bulgarian ...
    Cyrillic,
    /// Hebrew and Yiddish.
    Hebrew,
    /// Arabic, Persian, Urdu ...
    Arabic,
    /// Hindi, Marathi, Nepali ...
    Devanagari,
    /// Bengali and Assamese.
    Bengali,
    /// Tamil.
    Tamil,
    /// Thai.
    Thai,
    /// Korean.
    Hangul,
    /// Hiragana and katakana: Japanese.
    Kana,
    /// Chinese characters, which Japanese uses too.
    Han,
}

impl Script {
    /// Every script.
    pub const ALL: [Self; 12] = [
        Self::Latin,
        Self::Greek,
        Self::Cyrillic,
        Self::Hebrew,
        Self::Arabic,
        Self::Devanagari,
        Self::Bengali,
        Self::Tamil,
        Self::Thai,
        Self::Hangul,
        Self::Kana,
        Self::Han,
    ];

    /// Its name in lower case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The script of a letter; `None` for digits, signs, emoji and scripts that are not listed.
    pub fn of(c: char) -> Option<Self> {
        if !c.is_alphabetic() {
            return None;
        }
        Some(match u32::from(c) {
            0x41..=0x7a
            | 0xaa
            | 0xba
            | 0xc0..=0x24f
            | 0x1e00..=0x1eff
            | 0x2c60..=0x2c7f
            | 0xa720..=0xa7ff
            | 0xff21..=0xff5a => Self::Latin,
            0x370..=0x3ff | 0x1f00..=0x1fff => Self::Greek,
            0x400..=0x52f | 0x1c80..=0x1c8f | 0x2de0..=0x2dff | 0xa640..=0xa69f => Self::Cyrillic,
            0x590..=0x5ff | 0xfb1d..=0xfb4f => Self::Hebrew,
            0x600..=0x6ff | 0x750..=0x77f | 0x8a0..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfeff => Self::Arabic,
            0x900..=0x97f | 0xa8e0..=0xa8ff => Self::Devanagari,
            0x980..=0x9ff => Self::Bengali,
            0xb80..=0xbff => Self::Tamil,
            0xe00..=0xe7f => Self::Thai,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xa960..=0xa97f | 0xac00..=0xd7ff => Self::Hangul,
            0x3040..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f => Self::Kana,
            0x2e80..=0x2fdf
            | 0x3005..=0x3007
            | 0x3400..=0x4dbf
            | 0x4e00..=0x9fff
            | 0xf900..=0xfaff
            | 0x2_0000..=0x3_ffff => Self::Han,
            _ => return None,
        })
    }
}

/// A number that is added to the logits of all tokens of some languages.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageBias {
    bias: f32,
    tokens: Arc<[u32]>,
}

impl LanguageBias {
    /// Adds `bias` to the tokens with a letter of one of `scripts`. Tokens that are part of a character only have none.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for NaN and +inf; -inf rules the tokens out.
    pub fn towards(tokenizer: &Tokenizer, scripts: &[Script], bias: f32) -> Result<Self> {
        Self::where_text(tokenizer, bias, |text| text.chars().filter_map(Script::of).any(|s| scripts.contains(&s)))
    }

    /// Adds `bias`, a negative one as a rule, to the tokens with a letter of a script that is not among `scripts`.
    ///
    /// # Errors
    /// As [`towards`](Self::towards).
    pub fn outside(tokenizer: &Tokenizer, scripts: &[Script], bias: f32) -> Result<Self> {
        Self::where_text(tokenizer, bias, |text| text.chars().filter_map(Script::of).any(|s| !scripts.contains(&s)))
    }

    fn where_text(tokenizer: &Tokenizer, bias: f32, is: impl Fn(&str) -> bool) -> Result<Self> {
        let bias = check(bias < f32::INFINITY, "language-bias", bias, "a number below infinity")?;
        let mut tokens = Vec::new();
        for id in 0..tokenizer.vocab_size() as u32 {
            if is(&tokenizer.decode(&[id])?) {
                tokens.push(id);
            }
        }
        Ok(Self { bias, tokens: tokens.into() })
    }

    /// The tokens that it is about, ascending.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(super) fn apply(&self, row: &mut Row) {
        let bias = self.bias;
        for &id in &*self.tokens {
            if bias == f32::NEG_INFINITY {
                row.ban(id);
            } else {
                row.edit(id, |x| x + bias);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Script;

    #[test]
    fn letters_have_their_scripts_and_other_characters_none() {
        let of = |text: &str| text.chars().map(Script::of).collect::<Vec<_>>();
        assert!(of("azAZéßğẢ").iter().all(|s| *s == Some(Script::Latin)));
        assert!(of("ЖяЁ").iter().all(|s| *s == Some(Script::Cyrillic)));
        assert!(of("漢字中").iter().all(|s| *s == Some(Script::Han)));
        assert!(of("ひカ").iter().all(|s| *s == Some(Script::Kana)));
        assert!(of("한국").iter().all(|s| *s == Some(Script::Hangul)));
        assert!(of(" 7.,€😀[`_").iter().all(Option::is_none));
    }
}
