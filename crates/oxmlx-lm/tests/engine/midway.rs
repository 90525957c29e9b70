//! What a caller may do between two steps, and with numbers that no model has.

use oxmlx_lm::cache::{PagedStore, RotatingKvCache};
use oxmlx_lm::engine::{
    CachePolicy, DraftedRow, Engine, FinishReason, Piece, PrefillOptions, PrefillStep, Prefix, SequenceId,
    SequenceSpec, StepBatch,
};
use oxmlx_lm::speculative::{Acceptance, Draft};
use oxmlx_lm::{ErrorKind, SamplingParams};

use super::batch::{Model, decode, feed, load};

const PROMPT: [u32; 8] = [3, 1, 4, 1, 5, 9, 2, 6];
const TOKENS: usize = 14;

fn open(engine: &mut Engine<&Model>, sampling: &SamplingParams, cache: &CachePolicy) -> SequenceId {
    let spec = SequenceSpec::new(TOKENS).sampling(sampling.clone()).cache(cache.clone());
    let id = engine.open(spec).unwrap();
    feed(engine, id, &PROMPT, PrefillOptions::default());
    id
}

#[test]
fn a_row_with_a_step_on_its_way_can_be_looked_at_and_goes_on_as_if_it_had_not_been() {
    let model = load("llama");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prefix.safetensors");
    let samplings = [
        (SamplingParams::greedy(), Acceptance::Greedy),
        (SamplingParams::builder().temperature(1.2).seed(7).build().unwrap(), Acceptance::SamplerMatch),
    ];
    let policies = [CachePolicy::Plain, CachePolicy::Rotating { max_size: 6, keep: 1 }];
    for ((sampling, rule), cache) in samplings.iter().flat_map(|s| policies.iter().map(move |p| (s, p))) {
        let mut engine = Engine::new(&model).lookahead(false);
        let id = open(&mut engine, sampling, cache);
        decode(&mut engine, &[id], vec![]);
        let plain = engine.text(id).unwrap().to_vec();
        for what in 0..4 {
            let mut engine = Engine::new(&model).lookahead(true);
            let id = open(&mut engine, sampling, cache);
            for _ in 0..3 {
                engine.advance(&engine.decoding()).unwrap();
            }
            let text = engine.text(id).unwrap().to_vec();
            match what {
                0 => assert_eq!(engine.prefix(id).unwrap().tokens(), &text[..text.len() - 1]),
                1 => {
                    engine.save_prefix(id, &file, &[]).unwrap();
                    assert_eq!(Prefix::load(&file, None).unwrap().tokens(), &text[..text.len() - 1]);
                }
                2 => {
                    let draft = if matches!(cache, CachePolicy::Plain) { vec![plain[text.len()], 0] } else { vec![] };
                    let row = DraftedRow { id, draft: Draft::chosen(draft), rule: *rule };
                    let outcome = engine.verify_round(&[row]).unwrap().remove(0);
                    let from = text.len();
                    assert_eq!(outcome.tokens, plain[from..from + outcome.tokens.len()], "{cache:?}");
                }
                _ => {
                    let again = StepBatch::new(&[id]).tokens(&text[text.len() - 1..]);
                    let outcomes = engine.step(&again).unwrap();
                    assert_eq!((outcomes.len(), outcomes[0].token), (1, Some(plain[text.len()])), "{cache:?}");
                }
            }
            decode(&mut engine, &[id], vec![]);
            assert_eq!(engine.text(id).unwrap(), plain, "{what} with {cache:?}");
            assert_eq!(engine.finish_reason(id).unwrap(), Some(FinishReason::Length));
        }
    }
}

#[test]
fn a_row_alone_that_can_not_be_fed_says_so_after_the_tokens_that_it_made() {
    let model = load("llama");
    // Room for the prompt in each of two layers, and three tokens more.
    let (rows, bytes) = (1, 2 * 2 * 16 * 4);
    let ended = |lookahead: bool| {
        let store = PagedStore::new(rows, 2 * bytes * (PROMPT.len() + 3)).unwrap();
        let mut engine = Engine::new(&model).lookahead(lookahead);
        let id = open(&mut engine, &SamplingParams::greedy(), &CachePolicy::Paged(store));
        let mut errors = Vec::new();
        for _ in 0..TOKENS {
            let outcomes = engine.advance(&engine.decoding()).unwrap();
            errors.extend(outcomes.into_iter().filter_map(|outcome| Some((outcome.finish, outcome.error?.kind()))));
        }
        assert_eq!(errors, [(Some(FinishReason::Error), ErrorKind::Cache)], "lookahead {lookahead}");
        assert!(!engine.in_flight());
        engine.text(id).unwrap().to_vec()
    };
    let text = ended(false);
    assert_eq!(text.len(), PROMPT.len() + 4);
    assert_eq!(ended(true), text);
}

#[test]
fn a_row_that_ended_takes_no_token_of_the_callers() {
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let goes = open(&mut engine, &SamplingParams::greedy(), &CachePolicy::Plain);
    let ended = engine.open(SequenceSpec::new(1)).unwrap();
    feed(&mut engine, ended, &PROMPT, PrefillOptions::default());
    let text = engine.text(ended).unwrap().to_vec();
    let outcomes = engine.step(&StepBatch::new(&[goes, ended]).tokens(&[17, 18])).unwrap();
    assert_eq!(outcomes.iter().map(|outcome| outcome.id).collect::<Vec<_>>(), [goes]);
    assert_eq!(engine.text(ended).unwrap(), text);
    assert_eq!(engine.text(goes).unwrap()[PROMPT.len()], 17);
}

#[test]
fn padding_never_reaches_over_the_models_context() {
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let expected = {
        let id = engine.open(SequenceSpec::new(4)).unwrap();
        feed(&mut engine, id, &PROMPT, PrefillOptions::default()).token
    };
    for tile in [0, 3, engine.model().max_context(), 1 << 40, usize::MAX] {
        let id = engine.open(SequenceSpec::new(4)).unwrap();
        let first = feed(&mut engine, id, &PROMPT, PrefillOptions::default().tile(tile));
        assert_eq!(first.token, expected, "tile {tile}");
    }
    let id = engine.open(SequenceSpec::new(4)).unwrap();
    engine.begin(id, &PROMPT, PrefillOptions::default()).unwrap();
    for padding in [engine.model().max_context(), usize::MAX] {
        let piece = Piece { tokens: 0..3, padding };
        assert_eq!(engine.prefill(PrefillStep::new(id, &piece)).unwrap_err().kind(), ErrorKind::Context);
    }
    assert_eq!(engine.cached(id).unwrap(), 0);
}

#[test]
fn sizes_that_no_array_has_are_refused() {
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let huge = usize::MAX;
    for policy in
        [CachePolicy::Rotating { max_size: huge, keep: 0 }, CachePolicy::Rotating { max_size: huge, keep: huge - 1 }]
    {
        let error = engine.open(SequenceSpec::new(4).cache(policy)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cache);
    }
    assert!(RotatingKvCache::new(4).unwrap().with_slack(huge).is_err());
    assert_eq!(PagedStore::new(huge, 1 << 20).unwrap_err().kind(), ErrorKind::Cache);
    // What is no size of an array may be as large as it likes.
    let id = open(&mut engine, &SamplingParams::greedy(), &CachePolicy::Plain);
    decode(&mut engine, &[id], vec![]);
    let chunked = open(&mut engine, &SamplingParams::greedy(), &CachePolicy::Chunked { chunk: huge });
    decode(&mut engine, &[chunked], vec![]);
    assert_eq!(engine.text(chunked).unwrap(), engine.text(id).unwrap());
}
