//! What must not go wrong: failing rows, limits, cancelling, memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Dtype, ops};
use oxmlx_lm::cache::{Cache, PagedStore};
use oxmlx_lm::engine::{
    CachePolicy, Engine, FinishReason, PrefillOptions, PrefillStep, RowOutcome, SequenceId, SequenceSpec, StepBatch,
};
use oxmlx_lm::{
    DirectEngine, ErrorKind, LanguageModel, LayerCache, Logits, Request, Result, SamplingParams, StopMatcher,
};

use crate::alone::alone;

use super::batch::{Model, decode, feed, load};

/// A model that fails, or whose logits are NaN, for rows that are fed a certain token; it can be slow.
struct Odd {
    model: Model,
    fails: u32,
    nan: u32,
    slow: Arc<AtomicBool>,
}

impl Odd {
    fn new() -> Self {
        Self { model: load("llama"), fails: 311, nan: 312, slow: Arc::default() }
    }
}

impl LanguageModel for Odd {
    fn forward(&self, tokens: &Array, caches: &mut [Box<dyn Cache>], logits: Logits) -> Result<Array> {
        let made = self.model.forward(tokens, caches, logits)?;
        let rows = tokens.dim(0).unwrap();
        let last = ops::take_index(tokens, -1, 1)?.astype(Dtype::Uint32)?.reshape((rows, 1))?;
        let nan = ops::equal(&last, &Array::scalar(self.nan)?)?;
        let made = match logits {
            Logits::Last => ops::where_(&nan, &Array::scalar(f32::NAN)?, &made)?,
            Logits::All => made,
        };
        let (fails, slow) = (self.fails, self.slow.clone());
        let check = Kernel::builder("check")
            .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
            .cpu(move |inputs, outputs| {
                if slow.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(300));
                }
                if inputs[1].as_slice::<u32>()?.contains(&fails) {
                    return Err("the token that fails".into());
                }
                outputs[0].as_mut_slice::<f32>()?.copy_from_slice(&inputs[0].as_slice::<f32>()?);
                Ok(())
            })
            .build()?;
        // The body is Rust.
        Ok(Device::Cpu.scope(|| check.apply_one(&[made, last]))??)
    }

    fn layer_caches(&self) -> Vec<LayerCache> {
        self.model.layer_caches()
    }

    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_context(&self) -> usize {
        self.model.max_context()
    }

    fn batches(&self) -> bool {
        true
    }
}

fn prompts() -> Vec<Vec<u32>> {
    (0..3u32).map(|row| (0..4 + 3 * row).map(|t| (row * 41 + t * 13) % 300).collect()).collect()
}

fn open(engine: &mut Engine<Odd>, prompt: &[u32], sampling: SamplingParams) -> SequenceId {
    let id = engine.open(SequenceSpec::new(8).sampling(sampling)).unwrap();
    feed(engine, id, prompt, PrefillOptions::default());
    id
}

fn sampled(seed: u64) -> SamplingParams {
    SamplingParams::builder().temperature(1.1).seed(seed).build().unwrap()
}

#[test]
fn e21_a_row_that_fails_ends_alone_and_its_neighbours_draw_as_if_alone() {
    let alone: Vec<Vec<u32>> = prompts()
        .iter()
        .enumerate()
        .map(|(i, prompt)| {
            let mut engine = Engine::new(Odd::new());
            let id = open(&mut engine, prompt, if i == 2 { sampled(9) } else { SamplingParams::greedy() });
            decode(&mut engine, &[id], vec![]);
            engine.text(id).unwrap()[prompt.len()..].to_vec()
        })
        .collect();
    // The middle row fails while it is evaluated, or in its sampler, in its third step.
    for (token, kind) in [(311, ErrorKind::Mlx), (312, ErrorKind::Sampling)] {
        for lookahead in [true, false] {
            let mut engine = Engine::new(Odd::new()).lookahead(lookahead);
            let ids: Vec<SequenceId> = prompts()
                .iter()
                .zip([SamplingParams::greedy(), sampled(5), sampled(9)])
                .map(|(prompt, sampling)| open(&mut engine, prompt, sampling))
                .collect();
            let mut ends: Vec<RowOutcome> = engine.advance(&engine.decoding()).unwrap();
            ends.retain(|outcome| outcome.finish.is_some());
            assert!(ends.is_empty());
            // What is on its way is read first: then each row's next token is known.
            while engine.in_flight() {
                engine.finish_rows().unwrap();
            }
            let next: Vec<u32> = ids.iter().map(|id| *engine.text(*id).unwrap().last().unwrap()).collect();
            let batch = StepBatch::new(&ids).tokens(&[next[0], token, next[2]]);
            let outcomes = engine.step(&batch).unwrap();
            let failed = &outcomes[1];
            assert_eq!(failed.finish, Some(FinishReason::Error));
            assert_eq!(failed.error.as_ref().unwrap().kind(), kind);
            assert!(outcomes[0].token.is_some() && outcomes[2].token.is_some());
            decode(&mut engine, &[ids[0], ids[2]], vec![]);
            for (id, i) in [(ids[0], 0), (ids[2], 2)] {
                assert_eq!(engine.text(id).unwrap()[prompts()[i].len()..], alone[i], "row {i}, lookahead {lookahead}");
            }
        }
    }
}

#[test]
fn e21_a_row_that_fails_with_the_next_step_on_its_way_ends_alone() {
    let samplings = [sampled(21), sampled(5), sampled(9)];
    let alone: Vec<Vec<u32>> = std::iter::zip(prompts(), &samplings)
        .map(|(prompt, sampling)| {
            let mut engine = Engine::new(Odd { fails: u32::MAX, nan: u32::MAX, ..Odd::new() });
            let id = open(&mut engine, &prompt, sampling.clone());
            decode(&mut engine, &[id], vec![]);
            engine.text(id).unwrap()[prompt.len()..].to_vec()
        })
        .collect();
    // The middle row's third token is one that can't be fed.
    let bad = alone[1][2];
    assert!(alone[0].iter().chain(&alone[2]).chain(&alone[1][..2]).all(|token| *token != bad));
    for (fails, nan, kind) in [(bad, u32::MAX, ErrorKind::Mlx), (u32::MAX, bad, ErrorKind::Sampling)] {
        for lookahead in [true, false] {
            let mut engine = Engine::new(Odd { fails, nan, ..Odd::new() }).lookahead(lookahead);
            let ids: Vec<SequenceId> = std::iter::zip(prompts(), &samplings)
                .map(|(prompt, sampling)| open(&mut engine, &prompt, sampling.clone()))
                .collect();
            let mut errors = Vec::new();
            while !engine.decoding().ids().is_empty() {
                let outcomes = engine.advance(&engine.decoding()).unwrap();
                errors.extend(outcomes.into_iter().filter_map(|outcome| Some((outcome.id, outcome.error?.kind()))));
            }
            assert_eq!(errors, [(ids[1], kind)], "lookahead {lookahead}");
            for (i, made) in [8, 3, 8].into_iter().enumerate() {
                let text = &engine.text(ids[i]).unwrap()[prompts()[i].len()..];
                assert_eq!(text, &alone[i][..made], "row {i}, lookahead {lookahead}");
            }
        }
    }
}

#[test]
fn e21_a_row_whose_cache_is_full_ends_alone() {
    let mut engine = Engine::new(Odd::new());
    // Room for the prompt in each of two layers, and two tokens more.
    let block = 2 * 2 * 2 * 16 * 4;
    let store = PagedStore::new(2, block * 2 * 3).unwrap();
    let prompt = &prompts()[0];
    let plain = open(&mut engine, prompt, SamplingParams::greedy());
    let small = engine.open(SequenceSpec::new(8).cache(CachePolicy::Paged(store.clone()))).unwrap();
    let first = feed(&mut engine, small, prompt, PrefillOptions::default());
    assert!(first.error.is_none());
    let mut ended = None;
    while !engine.decoding().ids().is_empty() {
        for outcome in engine.advance(&engine.decoding()).unwrap() {
            if outcome.id == small && outcome.finish.is_some() {
                ended = outcome.error;
            }
        }
    }
    assert_eq!(ended.unwrap().kind(), ErrorKind::Cache);
    assert_eq!(engine.finish_reason(plain).unwrap(), Some(FinishReason::Length));
    let text = engine.text(plain).unwrap().to_vec();
    let small_text = engine.text(small).unwrap();
    assert_eq!(small_text, &text[..small_text.len()], "what it said before is right");
    engine.close(small);
    assert_eq!(store.bytes(), 0);
}

#[test]
fn e20_a_stop_text_over_several_tokens_is_cut_exactly() {
    let mut engine = DirectEngine::new(load("llama"));
    let prompt = [3, 1, 4, 1, 5];
    let request = Request::new(10, &[]).sampling(sampled(3));
    let tokens: Vec<u32> = engine.generate(&prompt, request, &mut |_| true).unwrap().map(Result::unwrap).collect();
    // Each token is the three characters of its number.
    let piece = |token: u32| format!("{token:03}");
    let whole: String = tokens.iter().map(|t| piece(*t)).collect();
    let (from, to) = (7, 13);
    let stop = whole[from..to].to_owned();
    assert!(whole.find(&stop) == Some(from), "{whole}");
    let emitted = Arc::new(Mutex::new(String::new()));
    let (text, mut matcher) = (emitted.clone(), StopMatcher::new([stop]).unwrap());
    let spec = SequenceSpec::new(10).sampling(sampled(3)).stop(move |token| {
        let step = matcher.push(&piece(token));
        text.lock().unwrap().push_str(&step.text);
        Ok(step.stopped)
    });
    engine.reset();
    let mut generation = engine.generate(&prompt, Request::of(spec), &mut |_| true).unwrap();
    let stopped: Vec<u32> = generation.by_ref().map(Result::unwrap).collect();
    assert_eq!(generation.finish_reason(), Some(FinishReason::Stop));
    assert_eq!(stopped, tokens[..to.div_ceil(3)], "not a token after the one that completes it");
    assert_eq!(*emitted.lock().unwrap(), whole[..from]);
}

#[test]
fn e20_nothing_is_decoded_for_a_budget_of_nothing_and_nothing_after_the_last_token() {
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let id = engine.open(SequenceSpec::new(0)).unwrap();
    let outcome = feed(&mut engine, id, &[1, 2, 3], PrefillOptions::default());
    assert_eq!((outcome.token, outcome.finish), (None, Some(FinishReason::Length)));
    assert_eq!(engine.text(id).unwrap(), [1, 2, 3]);
    let id = engine.open(SequenceSpec::new(4)).unwrap();
    let first = feed(&mut engine, id, &[1, 2, 3], PrefillOptions::default());
    decode(&mut engine, &[id], vec![first]);
    // The last token is never fed.
    assert_eq!((engine.text(id).unwrap().len(), engine.cached(id).unwrap()), (7, 6));
}

#[test]
fn a_prefill_that_is_cancelled_while_the_device_computes_leaves_the_sequence_as_it_was() {
    if !alone("edges::a_prefill_that_is_cancelled_while_the_device_computes_leaves_the_sequence_as_it_was") {
        return;
    }
    let odd = Odd::new();
    let slow = odd.slow.clone();
    let mut engine = Engine::new(odd);
    let prompt = &prompts()[2];
    let id = engine.open(SequenceSpec::new(4)).unwrap();
    let plan = engine.begin(id, prompt, PrefillOptions::default().chunk(6)).unwrap();
    engine.prefill(PrefillStep::new(id, &plan.pieces()[0])).unwrap();
    slow.store(true, Ordering::SeqCst);
    let mut looks = 0;
    let cancelled = engine.prefill_while(PrefillStep::new(id, &plan.pieces()[1]), &mut || {
        looks += 1;
        looks < 3
    });
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!((looks, engine.cached(id).unwrap()), (3, 6));
    slow.store(false, Ordering::SeqCst);
    let first = feed(&mut engine, id, prompt, PrefillOptions::default());
    let after = decode(&mut engine, &[id], vec![first]);
    let other = engine.open(SequenceSpec::new(4)).unwrap();
    let first = feed(&mut engine, other, prompt, PrefillOptions::default());
    assert_eq!(after, decode(&mut engine, &[other], vec![first]));
}

#[test]
fn a_generation_that_is_cancelled_with_a_step_on_its_way_frees_its_rows_at_once() {
    let model = load("llama");
    let store = PagedStore::new(4, 1 << 24).unwrap();
    let mut engine = Engine::new(&model);
    let spec = || SequenceSpec::new(50).cache(CachePolicy::Paged(store.clone()));
    let ids: Vec<SequenceId> = prompts()
        .iter()
        .map(|prompt| {
            let id = engine.open(spec()).unwrap();
            feed(&mut engine, id, prompt, PrefillOptions::default());
            id
        })
        .collect();
    engine.advance(&engine.decoding()).unwrap();
    assert!(engine.in_flight());
    let mut before = store.bytes();
    for id in ids {
        assert!(engine.close(id));
        assert!(store.bytes() < before);
        before = store.bytes();
    }
    assert_eq!((store.bytes(), engine.open_rows(), engine.in_flight()), (0, 0, false));
}

/// Resident bytes of this process.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_generations_leave_memory_as_it_was() {
    if !alone("edges::a_thousand_generations_leave_memory_as_it_was") {
        return;
    }
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let prompt = &prompts()[2];
    let mut run = |generations: usize| {
        for i in 0..generations {
            let id = engine.open(SequenceSpec::new(3).sampling(sampled(i as u64))).unwrap();
            let first = feed(&mut engine, id, prompt, PrefillOptions::default());
            // Every third is cancelled in its midst.
            match i % 3 {
                0 => drop(engine.advance(&engine.decoding()).unwrap()),
                _ => drop(decode(&mut engine, &[id], vec![first])),
            }
            assert!(engine.close(id));
        }
        resident()
    };
    let before = run(200);
    let after = run(1000);
    assert!(after < before + (4 << 20), "{before} bytes became {after}");
}
