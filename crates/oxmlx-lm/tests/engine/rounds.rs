//! Speculation through the engine: the tokens of plain decoding, caches that hold what stands, refusals before anything runs.

use oxmlx_lm::engine::{
    CachePolicy, CachePool, DraftedRow, Engine, FinishReason, PrefillOptions, SequenceId, SequenceSpec,
};
use oxmlx_lm::sampling::{Repetition, Window};
use oxmlx_lm::speculative::{Acceptance, Draft, FullModelDrafter, PromptLookupDrafter};
use oxmlx_lm::{DirectEngine, ErrorKind, Request, Result, SamplingParams};

use super::batch::{Model, Way, feed, load, run};

const TOKENS: usize = 14;

fn prompts() -> Vec<Vec<u32>> {
    (0..3u32).map(|row| (0..5 + 4 * row).map(|t| (row * 57 + t * 19) % 300).collect()).collect()
}

fn open(engine: &mut Engine<&Model>, prompt: &[u32], sampling: &SamplingParams) -> SequenceId {
    let id = engine.open(SequenceSpec::new(TOKENS).sampling(sampling.clone())).unwrap();
    feed(engine, id, prompt, PrefillOptions::default());
    id
}

#[test]
fn e07_k_drafted_and_a_accepted_give_plain_tokens_and_caches_of_what_stands() {
    let model = load("llama");
    let prompt = &prompts()[1];
    let plain = run(&model, std::slice::from_ref(prompt), TOKENS, &Way::plain()).remove(0);
    for k in 1..=8 {
        for a in 0..=k {
            let mut engine = Engine::new(&model);
            let id = open(&mut engine, prompt, &SamplingParams::greedy());
            // The true tokens, the one after `a` of them turned wrong.
            let mut draft = plain[1..=k].to_vec();
            if let Some(wrong) = draft.get_mut(a) {
                *wrong = (*wrong + 1) % 300;
            }
            let row = DraftedRow { id, draft: Draft::chosen(draft), rule: Acceptance::Greedy };
            let outcome = engine.verify_round(&[row]).unwrap().remove(0);
            assert_eq!(outcome.tokens, plain[1..a + 2], "k {k}, a {a}");
            assert_eq!((outcome.verdict.accepted, outcome.finish), (a, None));
            assert_eq!(engine.cached(id).unwrap(), prompt.len() + a + 1, "all but the last token");
            while engine.finish_reason(id).unwrap().is_none() {
                engine.advance(&engine.decoding()).unwrap();
            }
            assert_eq!(engine.text(id).unwrap()[prompt.len()..], plain, "k {k}, a {a}");
        }
    }
}

#[test]
fn rows_with_drafts_of_many_lengths_share_rounds_and_end_as_plain_ones_do() {
    for name in ["llama", "gemma3", "qwen3_moe"] {
        let model = load(name);
        let plain: Vec<_> =
            prompts().iter().flat_map(|p| run(&model, std::slice::from_ref(p), TOKENS, &Way::plain())).collect();
        let mut engine = Engine::new(&model);
        let ids: Vec<_> = prompts().iter().map(|p| open(&mut engine, p, &SamplingParams::greedy())).collect();
        for round in 0.. {
            let rows: Vec<DraftedRow> = engine
                .decoding()
                .ids()
                .iter()
                .map(|&id| {
                    let i = ids.iter().position(|other| *other == id).unwrap();
                    let made = engine.text(id).unwrap().len() - prompts()[i].len();
                    // Right, wrong, none, in turns; more than the budget near the end.
                    let mut draft: Vec<u32> = plain[i][made..].iter().copied().chain([1, 2, 3]).take(4).collect();
                    draft.truncate([4, 2, 0, 4][(round + i) % 4]);
                    if let (true, Some(last)) = (round % 3 == 1, draft.last_mut()) {
                        *last = (*last + 7) % 300;
                    }
                    DraftedRow { id, draft: Draft::chosen(draft), rule: Acceptance::Greedy }
                })
                .collect();
            if rows.is_empty() {
                break;
            }
            engine.verify_round(&rows).unwrap();
        }
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(engine.text(*id).unwrap()[prompts()[i].len()..], plain[i], "{name}, row {i}");
            assert_eq!(engine.finish_reason(*id).unwrap(), Some(FinishReason::Length));
        }
    }
}

fn generate(engine: &mut DirectEngine<&Model>, prompt: &[u32], request: Request) -> Vec<u32> {
    engine.reset();
    engine.generate(prompt, request, &mut |_| true).unwrap().map(Result::unwrap).collect()
}

#[test]
fn e08_speculation_with_a_repetition_penalty_and_the_same_model_as_draft_equals_plain() {
    let model = load("llama");
    let mut engine = DirectEngine::new(&model);
    for prompt in prompts() {
        for seed in [None, Some(4)] {
            let penalty = Repetition::new(1.8, Window::WHOLE).unwrap();
            let sampling = SamplingParams::builder().repetition(penalty);
            let sampling = match seed {
                Some(seed) => sampling.temperature(0.9).seed(seed),
                None => sampling.temperature(0.0),
            };
            let sampling = sampling.build().unwrap();
            let request = || Request::new(TOKENS, &[]).sampling(sampling.clone());
            let plain = generate(&mut engine, &prompt, request());
            let drafter = FullModelDrafter::new(load("llama")).unwrap();
            assert_eq!(generate(&mut engine, &prompt, request().speculate(drafter, 4, None)), plain);
            let drafter = PromptLookupDrafter::new(3, 1).unwrap();
            assert_eq!(generate(&mut engine, &prompt, request().speculate(drafter, 4, None)), plain);
        }
    }
}

#[test]
fn e09_speculation_over_a_cache_that_can_not_go_back_is_refused_before_anything_runs() {
    let model = load("llama");
    let policy = CachePolicy::Rotating { max_size: 8, keep: 0 };
    let mut engine = DirectEngine::on(Engine::with_pool(&model, CachePool::new(policy.clone())));
    let drafter = PromptLookupDrafter::new(3, 1).unwrap();
    let mut fed = false;
    let refused = engine
        .generate(&prompts()[2], Request::new(9, &[]).speculate(drafter, 4, None), &mut |_| {
            fed = true;
            true
        })
        .err()
        .unwrap();
    assert_eq!((refused.kind(), fed), (ErrorKind::Cache, false));

    let mut engine = Engine::with_pool(&model, CachePool::new(policy));
    let id = open(&mut engine, &prompts()[2], &SamplingParams::greedy());
    let (cached, text) = (engine.cached(id).unwrap(), engine.text(id).unwrap().to_vec());
    let row = DraftedRow { id, draft: Draft::chosen(vec![1, 2, 3]), rule: Acceptance::Greedy };
    assert_eq!(engine.verify_round(std::slice::from_ref(&row)).unwrap_err().kind(), ErrorKind::Cache);
    let twice = DraftedRow { draft: Draft::default(), ..row };
    assert_eq!(engine.verify_round(&[twice.clone(), twice]).unwrap_err().kind(), ErrorKind::Sequence);
    assert_eq!((engine.cached(id).unwrap(), engine.text(id).unwrap()), (cached, &text[..]));
}

#[test]
fn the_rule_follows_the_sampling_whichever_was_said_first() {
    let model = load("llama");
    let mut engine = DirectEngine::new(&model);
    let sampling = SamplingParams::builder().temperature(0.9).seed(4).build().unwrap();
    let plain = generate(&mut engine, &prompts()[1], Request::new(TOKENS, &[]).sampling(sampling.clone()));
    let drafter = || PromptLookupDrafter::new(3, 1).unwrap();
    let request = Request::new(TOKENS, &[]).speculate(drafter(), 4, None).sampling(sampling.clone());
    assert_eq!(generate(&mut engine, &prompts()[1], request), plain);
    let request = Request::new(TOKENS, &[]).sampling(sampling).speculate(drafter(), 4, None);
    assert_eq!(generate(&mut engine, &prompts()[1], request), plain);
}

#[test]
fn end_tokens_and_budgets_end_a_speculating_generation_where_they_end_a_plain_one() {
    let model = load("llama");
    let mut engine = DirectEngine::new(&model);
    let prompt = &prompts()[1];
    let plain = generate(&mut engine, prompt, Request::new(TOKENS, &[]));
    for max in 1..6 {
        for eos in [vec![], vec![plain[2]], vec![plain[4]]] {
            let expected = generate(&mut engine, prompt, Request::new(max, &eos));
            let drafter = FullModelDrafter::new(load("llama")).unwrap();
            let request = Request::new(max, &eos).speculate(drafter, 3, None);
            assert_eq!(generate(&mut engine, prompt, request), expected, "max {max}, eos {eos:?}");
        }
    }
}
