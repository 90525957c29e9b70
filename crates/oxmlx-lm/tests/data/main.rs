//! What oxmlx-lm reads, and how it samples: everything that needs no MLX.

mod config;
mod gguf;
mod gguf_damaged;
mod gguf_writer;
mod random;
mod sampling;
mod support;
mod template;
mod tokenizer;
mod weights;
