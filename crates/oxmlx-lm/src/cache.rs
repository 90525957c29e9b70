//! What a layer remembers of the tokens before: keys and values.

mod kv;

pub use kv::KvCache;
