//! A tokenizer from a model folder's JSON files.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::build::{Parts, PromptRule, Tokenizer};
use super::bytes::{ByteTable, Detokenizer, SPACE_MARK, Spelling, check_density};
use crate::config::{Fields, JsonFile};
use crate::{Error, ErrorKind, Result};

impl Tokenizer {
    /// Builds the tokenizer of a model folder from `tokenizer.json`; special tokens come from `tokenizer_config.json`,
    /// `generation_config.json` and `config.json` as far as they are there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if `tokenizer.json` is missing; [`ErrorKind::Tokenizer`] if it is damaged or of an unknown kind;
    /// [`ErrorKind::Config`] for a field of the other files that has a wrong type. File and field are named.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = folder.join("tokenizer.json");
        if folder.is_dir() && path.symlink_metadata().is_err() {
            let what = match folder.join("tokenizer.model").exists() {
                true => "no tokenizer.json here, only tokenizer.model: save the tokenizer again with transformers",
                false => "no tokenizer.json here",
            };
            return Err(Error::new(ErrorKind::Io, what).at_path(folder));
        }
        let text = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
        let mut parts = from_json(&text).map_err(|e| e.at_path(&path))?;
        parts.add_special_tokens_of(folder)?;
        Ok(Self::of_parts(parts))
    }
}

/// The part of `tokenizer.json` that the `tokenizers` crate trusts too much.
#[derive(serde::Deserialize)]
struct Ids {
    #[serde(default)]
    added_tokens: Vec<Id>,
}

#[derive(serde::Deserialize)]
struct Id {
    id: u32,
}

fn from_json(text: &[u8]) -> Result<Parts> {
    let damaged = |e: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Tokenizer, "damaged, or of a kind that isn't known").caused_by(e)
    };
    let ids: Ids = serde_json::from_slice(text).map_err(|e| damaged(e.into()))?;
    if let Some(id) = ids.added_tokens.iter().map(|t| t.id).find(|&id| i32::try_from(id).is_err()) {
        return Err(Error::new(ErrorKind::Tokenizer, format!("damaged: token id {id}")).at_field("added_tokens"));
    }
    let mut inner = tokenizers::Tokenizer::from_bytes(text).map_err(damaged)?;
    // Leftovers of training: they would cut or lengthen prompts.
    inner.with_truncation(None).map_err(damaged)?;
    inner.with_padding(None);

    let vocab = inner.get_vocab(true);
    let highest = vocab.values().copied().max().unwrap_or(0);
    check_density(highest, vocab.len())?;
    let added = inner.get_added_tokens_decoder();
    let special = added.iter().filter(|(_, t)| t.special).map(|(&id, _)| id).collect();
    let detokenizer = match spelling(&inner) {
        None => Detokenizer::Library,
        Some(spelling) => {
            let tokens: Vec<String> = (0..=highest).map(|id| inner.id_to_token(id).unwrap_or_default()).collect();
            let verbatim = added.keys().copied().collect();
            Detokenizer::Bytes(ByteTable::new(tokens.iter().map(String::as_str), &verbatim, spelling))
        }
    };
    Ok(Parts {
        inner,
        detokenizer,
        vocab_size: highest as usize + 1,
        special,
        bos: None,
        eos: Vec::new(),
        prompt: PromptRule::PostProcessor,
    })
}

/// How the decoder spells bytes, if it is one of the two usual kinds.
fn spelling(tokenizer: &tokenizers::Tokenizer) -> Option<Spelling> {
    let decoder = serde_json::to_value(tokenizer.get_decoder()?).ok()?;
    let steps = match decoder["type"].as_str()? {
        "Sequence" => decoder["decoders"].as_array()?.clone(),
        _ => vec![decoder],
    };
    let kinds: Vec<&str> = steps.iter().filter_map(|s| s["type"].as_str()).collect();
    let replaces_mark = |step: &Value| {
        step["pattern"]["String"].as_str() == Some(&SPACE_MARK.to_string()) && step["content"].as_str() == Some(" ")
    };
    match *kinds {
        ["ByteLevel"] => Some(Spelling::ByteLevel),
        ["Replace", "ByteFallback", "Fuse"] if replaces_mark(&steps[0]) => {
            Some(Spelling::SentencePiece { drop_first_space: false })
        }
        ["Replace", "ByteFallback", "Fuse", "Strip"] if replaces_mark(&steps[0]) => {
            let strip = &steps[3];
            let one_space = strip["content"].as_str() == Some(" ") && strip["start"] == 1 && strip["stop"] == 0;
            one_space.then_some(Spelling::SentencePiece { drop_first_space: true })
        }
        _ => None,
    }
}

impl Parts {
    fn add_special_tokens_of(&mut self, folder: &Path) -> Result<()> {
        let open = |name: &str| JsonFile::open_if_there(folder.join(name));
        let config = open("config.json")?;
        let generation = open("generation_config.json")?;
        let tokenizer = open("tokenizer_config.json")?;

        if let Some(file) = &tokenizer {
            let fields = file.fields();
            self.bos = self.token(&fields, "bos_token")?;
            self.eos.extend(self.token(&fields, "eos_token")?);
        }
        for file in [&generation, &config].into_iter().flatten() {
            let fields = file.fields();
            self.eos.extend(fields.token_ids("eos_token_id")?);
            if self.bos.is_none() {
                self.bos = fields.token_ids("bos_token_id")?.first().copied();
            }
        }
        let mut seen = BTreeSet::new();
        self.eos.retain(|&id| seen.insert(id));
        Ok(())
    }

    /// The id of a special token that is given as text, or as an object with the text in `content`.
    fn token(&self, fields: &Fields<'_>, name: &str) -> Result<Option<u32>> {
        let Some(value) = fields.get(name) else { return Ok(None) };
        let text = value.as_str().or_else(|| value["content"].as_str());
        let text = text.ok_or_else(|| fields.wrong(name, "a token", value))?;
        match self.inner.token_to_id(text) {
            Some(id) => Ok(Some(id)),
            None => Err(fields.error(ErrorKind::Tokenizer, name, format!("{text:?} isn't in the vocabulary"))),
        }
    }
}
