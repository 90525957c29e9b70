//! An LLM engine on oxmlx: weights, tokenizers, models, caches, sampling.
