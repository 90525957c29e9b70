//! Text to token ids and back.
//!
//! [`Tokenizer`] is built from a GGUF file's metadata or a folder's `tokenizer.json`; the algorithms are those of the
//! `tokenizers` crate. [`StreamDecoder`] turns ids into text one by one without ever cutting a character, and [`StopMatcher`]
//! ends the text exactly where a stop string begins.

mod build;
mod bytes;
mod folder;
mod gguf;
mod pretokenizer;
mod stop;
mod stream;

pub use build::Tokenizer;
pub use stop::{StopMatcher, StopStep};
pub use stream::StreamDecoder;
