//! What a generation is given when nobody says otherwise: one place for the command line and a server.

use super::pool::CachePolicy;
use super::sequence::SequenceSpec;
use crate::sampling::Rng;
use crate::{LanguageModel, SamplingParams};

/// End tokens, seeds and caches of the sequences of a model.
#[derive(Clone, Debug)]
#[must_use]
pub struct GenerationPolicy {
    eos: Vec<u32>,
    cache: Option<CachePolicy>,
    seed: Option<u64>,
}

impl GenerationPolicy {
    /// The end tokens of the model and of its tokenizer, each once and in order; ids outside the vocabulary can't come and are left out.
    pub fn new(model: &dyn LanguageModel, tokenizer_eos: &[u32]) -> Self {
        let mut eos: Vec<u32> = model.eos_ids().iter().chain(tokenizer_eos).copied().collect();
        eos.retain(|&id| (id as usize) < model.vocab_size());
        eos.sort_unstable();
        eos.dedup();
        Self { eos, cache: None, seed: None }
    }

    /// Sequences get these caches, in place of the engine's choice.
    pub fn cache(mut self, cache: CachePolicy) -> Self {
        self.cache = Some(cache);
        self
    }

    /// A seed from which those of all sequences follow, so that a run can be repeated.
    pub fn seed(mut self, seed: Option<u64>) -> Self {
        self.seed = seed;
        self
    }

    /// The end tokens.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// The seed of sequence number `index`, if there is one to follow: the first has the seed itself, and no two have the same draws.
    pub fn seed_of(&self, index: u64) -> Option<u64> {
        let seed = self.seed?;
        Some(match index {
            0 => seed,
            // Mixed, so that seed and index do not add up to another pair's.
            index => {
                (Rng::new(seed).next_f64().to_bits() ^ seed).wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            }
        })
    }

    /// What a sequence wants: this budget, this sampling, and what the policy says.
    pub fn spec(&self, max_tokens: usize, sampling: SamplingParams) -> SequenceSpec {
        let spec = SequenceSpec::new(max_tokens).sampling(sampling).eos(&self.eos);
        match &self.cache {
            Some(cache) => spec.cache(cache.clone()),
            None => spec,
        }
    }
}

#[cfg(test)]
mod tests {
    use oxmlx::Array;

    use super::*;
    use crate::cache::Cache;
    use crate::language_model::{LayerCache, Logits};

    struct Ends;

    impl LanguageModel for Ends {
        fn forward(&self, _: &Array, _: &mut [Box<dyn Cache>], _: Logits) -> crate::Result<Array> {
            Ok(Array::scalar(0.0f32)?)
        }
        fn layer_caches(&self) -> Vec<LayerCache> {
            Vec::new()
        }
        fn vocab_size(&self) -> usize {
            10
        }
        fn max_context(&self) -> usize {
            10
        }
        fn eos_ids(&self) -> &[u32] {
            &[7, 2]
        }
    }

    #[test]
    fn end_tokens_are_merged_without_duplicates_and_within_the_vocabulary() {
        assert_eq!(GenerationPolicy::new(&Ends, &[2, 9, 2, 10, 4_000_000_000]).eos(), [2, 7, 9]);
    }

    #[test]
    fn seeds_follow_from_one_and_differ() {
        let policy = GenerationPolicy::new(&Ends, &[]).seed(Some(5));
        let seeds: Vec<u64> = (0..1000).filter_map(|i| policy.seed_of(i)).collect();
        assert_eq!(seeds[0], 5);
        let mut unique = seeds.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 1000);
        assert_eq!(policy.seed_of(3), policy.clone().seed_of(3));
        assert_eq!(GenerationPolicy::new(&Ends, &[]).seed_of(1), None);
    }
}
