//! Chat templates: messages to the text that the model was trained on.
//!
//! Templates are Jinja as `transformers` runs it: blocks are trimmed, Python's string and list methods work, `tojson` writes as
//! Python does, `raise_exception` and `strftime_now` exist. A template is foreign code: it runs with a bounded number of steps
//! and a bounded output, touches nothing outside, and whatever goes wrong in it is an error. The memory that it takes on the
//! way is not bounded: don't run templates of untrusted files where that matters.

mod python;

use std::io::{self, Write};
use std::path::Path;

use minijinja::Environment;
use serde_json::{Map, Value, json};

use crate::config::JsonFile;
use crate::gguf::Gguf;
use crate::{Error, ErrorKind, Result, Tokenizer};

/// Steps that one rendering may take; a conversation takes a few hundred a message.
const FUEL: u64 = 10_000_000;
/// Bytes that one rendering may write, more than any context holds.
const MAX_OUTPUT: usize = 64 << 20;

const NAME: &str = "chat template";
const GGUF_KEY: &str = "tokenizer.chat_template";
const CHATML: &str = "{% for message in messages %}\
    {{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}\
    {% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// One message of a conversation: a role, a content, and whatever else a template knows (`tool_calls`, `name`).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Message(Map<String, Value>);

impl Message {
    /// A message from `role`: `system`, `user`, `assistant` or `tool`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self(Map::from_iter([("role".into(), role.into().into()), ("content".into(), content.into().into())]))
    }

    /// A message that tells the model how to behave.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// A message from the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A message from the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }

    /// Sets another field.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(field.into(), value.into());
        self
    }

    /// The role; empty if it has none.
    pub fn role(&self) -> &str {
        self.0.get("role").and_then(Value::as_str).unwrap_or_default()
    }

    /// The content, if it is text.
    pub fn content(&self) -> Option<&str> {
        self.0.get("content").and_then(Value::as_str)
    }
}

/// How a conversation is rendered.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    generation_prompt: bool,
    variables: Map<String, Value>,
}

impl Default for RenderOptions {
    /// The assistant's turn is opened; no further variables.
    fn default() -> Self {
        Self { generation_prompt: true, variables: Map::new() }
    }
}

impl RenderOptions {
    /// Whether the text ends with the opening of the assistant's turn.
    #[must_use]
    pub fn generation_prompt(mut self, open: bool) -> Self {
        self.generation_prompt = open;
        self
    }

    /// Sets a variable that the template may look at: `tools`, `enable_thinking`.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }
}

/// A compiled chat template with the special tokens that it writes.
///
/// ```
/// use oxmlx_lm::{ChatTemplate, Message};
/// # fn main() -> Result<(), oxmlx_lm::Error> {
/// let template = ChatTemplate::new("{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\n{% endfor %}")?;
/// assert_eq!(template.render(&[Message::user(" hi ")])?, "[user] hi\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    special: Map<String, Value>,
}

impl ChatTemplate {
    /// Compiles a template that uses no special tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Template`] if it has a syntax error; the source names the line.
    pub fn new(source: &str) -> Result<Self> {
        let mut environment = python::environment();
        environment.set_fuel(Some(FUEL));
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|e| Error::new(ErrorKind::Template, "the chat template has a syntax error").caused_by(e))?;
        Ok(Self { environment, special: Map::new() })
    }

    /// ChatML, the format that most models without a template of their own follow.
    ///
    /// # Errors
    /// [`ErrorKind::Template`] if the vocabulary hasn't got its tokens.
    pub fn chatml(tokenizer: &Tokenizer) -> Result<Self> {
        if let Some(token) = ["<|im_start|>", "<|im_end|>"].into_iter().find(|t| tokenizer.id_of(t).is_none()) {
            let what = format!("the model has no chat template, and no token {token} for ChatML: use a raw prompt");
            return Err(Error::new(ErrorKind::Template, what));
        }
        Ok(Self::new(CHATML)?.with_special_tokens(tokenizer))
    }

    /// The template of a GGUF file (`tokenizer.chat_template`), or ChatML if it has none.
    ///
    /// # Errors
    /// What [`ChatTemplate::new`] and [`ChatTemplate::chatml`] return; [`ErrorKind::Config`] if the key isn't text.
    pub fn from_gguf(gguf: &Gguf<'_>, tokenizer: &Tokenizer) -> Result<Self> {
        match gguf.str(GGUF_KEY)? {
            Some(source) => Ok(Self::new(source).map_err(|e| e.at_field(GGUF_KEY))?.with_special_tokens(tokenizer)),
            None => Self::chatml(tokenizer),
        }
    }

    /// The template of a model folder: `chat_template.jinja`, else `chat_template` of `tokenizer_config.json` or of
    /// `chat_template.json` (of several the one called `default`), or ChatML if there is none.
    ///
    /// # Errors
    /// What [`ChatTemplate::new`] and [`ChatTemplate::chatml`] return; [`ErrorKind::Io`], [`ErrorKind::Format`] and
    /// [`ErrorKind::Config`] for files that can't be read. The file is named.
    pub fn from_folder(folder: impl AsRef<Path>, tokenizer: &Tokenizer) -> Result<Self> {
        let folder = folder.as_ref();
        let jinja = folder.join("chat_template.jinja");
        if jinja.symlink_metadata().is_ok() {
            let source = std::fs::read_to_string(&jinja).map_err(|e| Error::io(&jinja, e))?;
            return Ok(Self::new(&source).map_err(|e| e.at_path(jinja))?.with_special_tokens(tokenizer));
        }
        for name in ["tokenizer_config.json", "chat_template.json"] {
            let path = folder.join(name);
            if let Some(file) = JsonFile::open_if_there(path.clone())?
                && let Some(source) = template_in(&file)?
            {
                let template = Self::new(&source).map_err(|e| e.at_field("chat_template").at_path(path))?;
                return Ok(template.with_special_tokens(tokenizer));
            }
        }
        Self::chatml(tokenizer).map_err(|e| e.at_path(folder))
    }

    /// Gives the template `bos_token` and `eos_token`.
    #[must_use]
    pub fn with_special_tokens(mut self, tokenizer: &Tokenizer) -> Self {
        for (name, token) in [("bos_token", tokenizer.bos_token()), ("eos_token", tokenizer.eos_token())] {
            if let Some(token) = token {
                self.special.insert(name.into(), token.into());
            }
        }
        self
    }

    /// The text of `messages`, the assistant's turn opened at its end. Encode it with [`Tokenizer::encode`].
    ///
    /// # Errors
    /// [`ErrorKind::Template`] if the template refuses the messages, fails, or doesn't end; the source has its own words.
    pub fn render(&self, messages: &[Message]) -> Result<String> {
        self.render_with(messages, &RenderOptions::default())
    }

    /// The text of `messages`, rendered as `options` say.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_with(&self, messages: &[Message], options: &RenderOptions) -> Result<String> {
        let failed = |what: &str, e: minijinja::Error| Error::new(ErrorKind::Template, what).caused_by(e);
        let mut context = Map::from_iter([("tools".into(), Value::Null), ("documents".into(), Value::Null)]);
        context.extend(self.special.clone());
        context.extend(options.variables.clone());
        context.insert("messages".into(), json!(messages));
        context.insert("add_generation_prompt".into(), options.generation_prompt.into());
        let template = self.environment.get_template(NAME).map_err(|e| failed("the chat template is lost", e))?;
        let mut output = Bounded::default();
        template.render_captured_to(context, &mut output).map_err(|e| match e.kind() {
            minijinja::ErrorKind::OutOfFuel => failed("the chat template takes too many steps", e),
            minijinja::ErrorKind::WriteFailure => failed("the chat template writes too much", e),
            _ => failed("the chat template refuses these messages", e),
        })?;
        String::from_utf8(output.0)
            .map_err(|e| Error::new(ErrorKind::Template, "the chat template writes no utf-8").caused_by(e))
    }
}

/// The field `chat_template`: text, or a list of named texts.
fn template_in(file: &JsonFile) -> Result<Option<String>> {
    let fields = file.fields();
    let Some(value) = fields.get("chat_template") else { return Ok(None) };
    let text = match value {
        Value::Array(list) => {
            let default = list.iter().find(|t| t["name"] == "default").or(list.first());
            default.and_then(|t| t["template"].as_str())
        }
        one => one.as_str(),
    };
    text.map(|t| Some(t.to_owned()))
        .ok_or_else(|| fields.wrong("chat_template", "text or a list of named texts", value))
}

/// Replaces `{% generation %}` and `{% endgeneration %}`, which only mark text for training, by a condition that always holds.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(end + 2);
        let word = tag[2..end].trim_matches(['-', '+', ' ', '\n', '\t']);
        match word {
            "generation" => out.push_str(&tag.replacen(word, "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen(word, "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A buffer that refuses to grow beyond what any prompt needs.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other(format!("more than {MAX_OUTPUT} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
