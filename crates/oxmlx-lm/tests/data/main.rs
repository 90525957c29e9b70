//! What oxmlx-lm reads, and how it samples: everything that needs no MLX.

mod config;
mod gguf;
mod gguf_damaged;
mod gguf_writer;
mod grammar;
mod random;
mod reference;
mod sampling;
mod speculative;
mod stages;
mod support;
mod template;
mod tokenizer;
mod weights;
