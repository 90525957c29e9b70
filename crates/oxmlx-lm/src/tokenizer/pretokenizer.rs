//! How text is cut into words before byte-pair encoding: llama.cpp's names for the schemes that models use.
//!
//! # Source
//! `src/llama-vocab.cpp` of llama.cpp, the table of pre-tokenizer types.

use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

use crate::{Error, ErrorKind, Result};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A scheme of cutting.
#[derive(Debug)]
pub(super) struct Scheme {
    /// Applied one after the other, each to the pieces of the one before.
    regexes: &'static [&'static str],
    /// Whether a word that is a token as a whole is taken as that, whatever the merges say.
    pub(super) ignore_merges: bool,
    /// Whether a raw prompt gets a begin-of-text token where the file doesn't say.
    pub(super) add_bos: bool,
}

impl Scheme {
    /// The scheme that a GGUF file calls `name`.
    pub(super) fn named(name: &str) -> Result<Self> {
        let plain = |regexes| Self { regexes, ignore_merges: false, add_bos: false };
        Ok(match name {
            "default" => plain(&[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
            "gpt-2" | "phi-2" | "mpt" | "olmo" | "jais" | "trillion" | "granite-docling" | "exaone4" => plain(&[GPT2]),
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b" => {
                plain(&[r"\p{N}", GPT2])
            }
            "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "lfm2" => {
                Self { regexes: &[LLAMA3], ignore_merges: true, add_bos: true }
            }
            "dbrx" | "smaug-bpe" => plain(&[LLAMA3]),
            "qwen2" | "deepseek-r1-qwen" | "stablelm2" | "hunyuan" => plain(&[QWEN2]),
            other => {
                let what =
                    format!("pre-tokenizer {other:?} isn't implemented: use the model's folder with tokenizer.json");
                return Err(Error::new(ErrorKind::Unsupported, what).at_field("tokenizer.ggml.pre"));
            }
        })
    }

    /// Cuts by the regexes and writes bytes as GPT-2's characters.
    pub(super) fn build(&self) -> tokenizers::Result<PreTokenizerWrapper> {
        let mut steps = Vec::new();
        for &regex in self.regexes {
            let split = Split::new(SplitPattern::Regex(regex.into()), SplitDelimiterBehavior::Isolated, false)?;
            steps.push(split.into());
        }
        steps.push(ByteLevel::new(false, true, false).into());
        Ok(Sequence::new(steps).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn pieces(scheme: &str, text: &str) -> Vec<String> {
        let mut pre = PreTokenizedString::from(text);
        Scheme::named(scheme).unwrap().build().unwrap().pre_tokenize(&mut pre).unwrap();
        let splits = pre.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(_, range, _)| text[range.0..range.1].to_owned()).collect()
    }

    /// Worked out by hand from the regexes' definitions.
    #[test]
    fn schemes_cut_digits_spaces_and_contractions_each_their_way() {
        let text = "It's 12345  IT'S\n\n x";
        let cases: [(&str, &[&str]); 4] = [
            ("gpt-2", &["It", "'s", " 12345", " ", " IT", "'", "S", "\n\n", " x"]),
            ("smollm", &["It", "'s", " ", "1", "2", "3", "4", "5", " ", " IT", "'", "S", "\n\n", " x"]),
            ("llama-bpe", &["It", "'s", " ", "123", "45", " ", " IT", "'S", "\n\n", " x"]),
            ("qwen2", &["It", "'s", " ", "1", "2", "3", "4", "5", " ", " IT", "'S", "\n\n", " x"]),
        ];
        for (scheme, wanted) in cases {
            assert_eq!(pieces(scheme, text), wanted, "{scheme}");
        }
        assert_eq!(pieces("default", "ab12345<="), ["ab", "123", "45", "<="]);
    }

    #[test]
    fn an_unknown_scheme_is_named() {
        let error = Scheme::named("martian-bpe").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("martian-bpe"), "{error}");
    }
}
