//! What a generation does at its edges, on a tiny model.

use oxmlx_lm::verify::Reference;
use oxmlx_lm::{DirectEngine, ErrorKind, FinishReason, ModelFiles, Request, SamplingParams, models};

use crate::support::fixture;

fn tiny() -> DirectEngine {
    let files = ModelFiles::open(fixture("models/llama")).unwrap();
    DirectEngine::new(models::load(&files, &mut |_| ()).unwrap())
}

/// From a sequence that has seen nothing.
fn tokens(engine: &mut DirectEngine, prompt: &[u32], request: Request) -> (Vec<u32>, Option<FinishReason>) {
    engine.reset();
    let mut generation = engine.generate(prompt, request, &mut |_| true).unwrap();
    let tokens = generation.by_ref().map(Result::unwrap).collect();
    (tokens, generation.finish_reason())
}

const PROMPT: [u32; 9] = [3, 1, 4, 1, 5, 9, 2, 6, 5];

#[test]
fn the_size_of_prefill_chunks_changes_nothing() {
    let mut engine = tiny();
    let whole = tokens(&mut engine, &PROMPT, Request::new(12, &[]).prefill_chunk(0));
    assert_eq!(whole.0.len(), 12);
    for chunk in [1, 2, 7, 64] {
        assert_eq!(tokens(&mut engine, &PROMPT, Request::new(12, &[]).prefill_chunk(chunk)), whole, "chunk {chunk}");
    }
}

#[test]
fn a_sequence_that_goes_on_equals_one_that_starts_anew() {
    let mut engine = tiny();
    let first: Vec<u32> =
        engine.generate(&PROMPT, Request::new(5, &[]), &mut |_| true).unwrap().map(Result::unwrap).collect();
    let longer: Vec<u32> = PROMPT.iter().chain(&first).copied().chain([7, 8]).collect();
    let mut fed = Vec::new();
    let warm: Vec<u32> = engine
        .generate(&longer, Request::new(6, &[]), &mut |p| {
            fed.push(p.done);
            true
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(fed[0] >= PROMPT.len() + first.len() - 1, "what was seen is not fed again: {fed:?}");
    assert_eq!(warm, tokens(&mut engine, &longer, Request::new(6, &[])).0);
    // Another history: what no longer holds is forgotten.
    let other: Vec<u32> = PROMPT[..4].iter().copied().chain([11, 12, 13]).collect();
    let after: Vec<u32> =
        engine.generate(&other, Request::new(6, &[]), &mut |_| true).unwrap().map(Result::unwrap).collect();
    assert_eq!(after, tokens(&mut engine, &other, Request::new(6, &[])).0);
}

#[test]
fn generation_ends_at_the_budget_an_end_token_and_the_context() {
    let mut engine = tiny();
    let (all, reason) = tokens(&mut engine, &PROMPT, Request::new(8, &[]));
    assert_eq!((all.len(), reason), (8, Some(FinishReason::Length)));
    assert_eq!(tokens(&mut engine, &PROMPT, Request::new(0, &[])), (vec![], Some(FinishReason::Length)));

    let first_of_kind = all.iter().position(|t| *t == all[3]).unwrap();
    let (cut, reason) = tokens(&mut engine, &PROMPT, Request::new(8, &[all[3]]));
    assert_eq!((&cut[..], reason), (&all[..first_of_kind], Some(FinishReason::Stop)));

    let context = engine.engine().model().max_context();
    let long: Vec<u32> = (0..context as u32 - 2).map(|i| i % 300).collect();
    let (few, reason) = tokens(&mut engine, &long, Request::new(50, &[]));
    assert_eq!((few.len(), reason), (3, Some(FinishReason::Context)));
}

#[test]
fn e20_prompts_that_the_model_cannot_take_are_errors() {
    let mut engine = tiny();
    let context = engine.engine().model().max_context();
    let mut kind = |prompt: &[u32]| engine.generate(prompt, Request::new(4, &[]), &mut |_| true).err().unwrap().kind();
    assert_eq!(kind(&[]), ErrorKind::Prompt);
    assert_eq!(kind(&[1, 320]), ErrorKind::Prompt);
    assert_eq!(kind(&vec![1; context + 1]), ErrorKind::Context);
}

#[test]
fn a_cancelled_prefill_leaves_the_sequence_usable() {
    let mut engine = tiny();
    let cancelled = engine.generate(&PROMPT, Request::new(4, &[]).prefill_chunk(3), &mut |p| p.done < 6).err();
    assert_eq!(cancelled.unwrap().kind(), ErrorKind::Cancelled);
    let after: Vec<u32> =
        engine.generate(&PROMPT, Request::new(4, &[]), &mut |_| true).unwrap().map(Result::unwrap).collect();
    assert_eq!(after, tokens(&mut engine, &PROMPT, Request::new(4, &[])).0);
}

#[test]
fn a_seed_repeats_its_draws_and_another_gives_others() {
    let mut engine = tiny();
    let mut sampled = |seed| {
        let sampling = SamplingParams::builder().temperature(1.5).seed(seed).build().unwrap();
        tokens(&mut engine, &PROMPT, Request::new(24, &[]).sampling(sampling)).0
    };
    assert_eq!(sampled(1), sampled(1));
    assert_ne!(sampled(1), sampled(2));
}

#[test]
fn top_k_one_draws_what_greedy_takes() {
    let mut engine = tiny();
    let sampling = SamplingParams::builder().temperature(1.0).top_k(1).seed(3).build().unwrap();
    let drawn = tokens(&mut engine, &PROMPT, Request::new(12, &[]).sampling(sampling));
    assert_eq!(drawn, tokens(&mut engine, &PROMPT, Request::new(12, &[])));
}

#[test]
fn a_reference_of_another_vocabulary_is_an_error() {
    let reference = Reference::open(fixture("models/llama/expected.safetensors")).unwrap();
    struct Other;
    impl oxmlx_lm::LanguageModel for Other {
        fn forward(
            &self,
            _: &oxmlx::Array,
            _: &mut [Box<dyn oxmlx_lm::cache::Cache>],
            _: oxmlx_lm::Logits,
        ) -> oxmlx_lm::Result<oxmlx::Array> {
            panic!("never asked")
        }
        fn layer_caches(&self) -> Vec<oxmlx_lm::LayerCache> {
            Vec::new()
        }
        fn vocab_size(&self) -> usize {
            7
        }
        fn max_context(&self) -> usize {
            7
        }
    }
    assert_eq!(reference.compare(&Other).unwrap_err().kind(), ErrorKind::Weights);
}
