//! Greedy decoding is the same however it is run: batch sizes, chunks, adopted prefixes, lookahead, kinds of cache.

use oxmlx_lm::cache::PagedStore;
use oxmlx_lm::engine::{
    CachePolicy, CachePool, Engine, FinishReason, PrefillOptions, PrefillStep, RowOutcome, SequenceId, SequenceSpec,
    StepBatch,
};
use oxmlx_lm::{ErrorKind, LanguageModel, ModelFiles, SamplingParams, models};

use crate::support::fixture;

pub(crate) type Model = Box<dyn LanguageModel>;

pub(crate) fn load(name: &str) -> Model {
    models::load(&ModelFiles::open(fixture("models").join(name)).unwrap(), &mut |_| ()).unwrap()
}

/// The fixtures whose architecture is there.
pub(crate) fn present() -> Vec<(String, Model)> {
    let mut names: Vec<String> = std::fs::read_dir(fixture("models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let load = |name: String| {
        let files = ModelFiles::open(fixture("models").join(&name)).ok()?;
        Some((name, models::load(&files, &mut |_| ()).unwrap()))
    };
    let present: Vec<_> = names.into_iter().filter_map(load).collect();
    assert!(present.len() >= 7, "the fixtures are there");
    present
}

/// Prompts of mixed lengths, below a vocabulary of 300.
fn prompts(n: usize) -> Vec<Vec<u32>> {
    let prompt = |i: u32| (0..3 + i * 5 % 17).map(|t| (i * 37 + t * t * 11 + 5 * t) % 300).collect();
    (0..n as u32).map(prompt).collect()
}

/// How to run.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) options: PrefillOptions,
    pub(crate) lookahead: bool,
    pub(crate) cache: CachePolicy,
    /// Tokens that end a text.
    pub(crate) eos: Vec<u32>,
}

impl Way {
    pub(crate) fn plain() -> Self {
        let options = PrefillOptions::default();
        Self { options, lookahead: true, cache: CachePolicy::Plain, eos: Vec::new() }
    }
}

/// Whether everything is to be run that could differ, and not a choice of it.
pub(crate) fn stress() -> bool {
    std::env::var("OXMLX_STRESS").is_ok_and(|value| value == "1")
}

pub(crate) fn feed<M: LanguageModel>(
    engine: &mut Engine<M>,
    id: SequenceId,
    prompt: &[u32],
    options: PrefillOptions,
) -> RowOutcome {
    let plan = engine.begin(id, prompt, options).unwrap();
    for piece in plan.pieces() {
        engine.prefill(PrefillStep::new(id, piece)).unwrap();
    }
    engine.complete_prefill(id).unwrap()
}

/// Decodes all rows to their end; tokens and reasons in the order of `ids`.
pub(crate) fn decode<M: LanguageModel>(
    engine: &mut Engine<M>,
    ids: &[SequenceId],
    first: Vec<RowOutcome>,
) -> Vec<(Vec<u32>, FinishReason)> {
    let mut out: Vec<(Vec<u32>, Option<FinishReason>)> = vec![(Vec::new(), None); ids.len()];
    let mut note = |outcome: RowOutcome| {
        let row = &mut out[ids.iter().position(|id| *id == outcome.id).unwrap()];
        row.0.extend(outcome.token);
        row.1 = outcome.finish;
    };
    first.into_iter().for_each(&mut note);
    loop {
        let batch = engine.decoding();
        if batch.ids().is_empty() {
            break;
        }
        engine.advance(&batch).unwrap().into_iter().for_each(&mut note);
    }
    out.into_iter().map(|(tokens, reason)| (tokens, reason.unwrap())).collect()
}

pub(crate) fn run<M: LanguageModel>(model: M, prompts: &[Vec<u32>], tokens: usize, way: &Way) -> Vec<Vec<u32>> {
    let mut engine = Engine::with_pool(model, CachePool::new(way.cache.clone())).lookahead(way.lookahead);
    let mut ids = Vec::new();
    let mut first = Vec::new();
    for prompt in prompts {
        let id = engine.open(SequenceSpec::new(tokens).eos(&way.eos)).unwrap();
        first.push(feed(&mut engine, id, prompt, way.options));
        ids.push(id);
    }
    let done = decode(&mut engine, &ids, first);
    ids.iter().for_each(|id| assert!(engine.close(*id)));
    assert!(!engine.close(ids[0]), "closing again does nothing and says so");
    done.into_iter().map(|(tokens, _)| tokens).collect()
}

const TOKENS: usize = 12;

#[test]
fn batches_chunks_lookahead_and_kinds_of_cache_change_no_token() {
    for (name, model) in present() {
        let prompts = prompts(7);
        let alone: Vec<Vec<u32>> = prompts
            .iter()
            .flat_map(|prompt| run(&model, std::slice::from_ref(prompt), TOKENS, &Way::plain()))
            .collect();
        assert!(alone.iter().all(|tokens| tokens.len() == TOKENS));
        for batch in [1, 2, 7] {
            for chunk in [0, 1, 7, 64] {
                for lookahead in [true, false] {
                    let paged = PagedStore::new(5, 1 << 26).unwrap();
                    for cache in [CachePolicy::Plain, CachePolicy::Paged(paged.clone())] {
                        // The smaller batches and the other ways differ in nothing that one way of each would not show.
                        if batch < 7 && (chunk != 7 || !lookahead) && !stress() {
                            continue;
                        }
                        let options = PrefillOptions::default().chunk(chunk);
                        let way = Way { options, lookahead, cache, ..Way::plain() };
                        for (prompts, alone) in prompts.chunks(batch).zip(alone.chunks(batch)) {
                            let got = run(&model, prompts, TOKENS, &way);
                            assert_eq!(got, alone, "{name}, batch {batch}, chunk {chunk}, lookahead {lookahead}");
                        }
                    }
                    assert_eq!(paged.bytes(), 0, "closed rows give their blocks back");
                }
            }
        }
    }
}

#[test]
fn other_caches_and_padding_change_no_token_where_they_lose_nothing() {
    let model = load("llama");
    let prompts = prompts(3);
    let expected = run(&model, &prompts, TOKENS, &Way::plain());
    let options = PrefillOptions::default();
    for options in [options.tile(8), options.chunk(5).tile(4), options.boundary(Some(2)).tile(16)] {
        assert_eq!(run(&model, &prompts, TOKENS, &Way { options, ..Way::plain() }), expected, "{options:?}");
    }
    for cache in [CachePolicy::Rotating { max_size: 100, keep: 4 }, CachePolicy::Chunked { chunk: 100 }] {
        for options in [options.chunk(4), options.chunk(5).tile(4)] {
            let way = Way { options, cache: cache.clone(), ..Way::plain() };
            assert_eq!(run(&model, &prompts, TOKENS, &way), expected, "{cache:?}");
        }
    }
    // A layer's own window is all that it needs.
    let model = load("mistral");
    let expected = run(&model, &prompts, TOKENS, &Way::plain());
    for chunk in [1, 3, 0] {
        let cache = CachePolicy::Windows { slack: 0 };
        let way = Way { options: options.chunk(chunk), cache, ..Way::plain() };
        assert_eq!(run(&model, &prompts, TOKENS, &way), expected, "chunk {chunk}");
    }
}

#[test]
fn adopted_prefixes_change_no_token_at_any_split() {
    for (name, model) in present() {
        let prompt = &prompts(4)[3];
        let cold = run(&model, std::slice::from_ref(prompt), TOKENS, &Way::plain()).remove(0);
        let paged = CachePolicy::Paged(PagedStore::new(4, 1 << 26).unwrap());
        for cache in [CachePolicy::Plain, paged, CachePolicy::Windows { slack: 0 }] {
            let mut engine = Engine::with_pool(&model, CachePool::new(cache));
            for split in 1..prompt.len() {
                let donor = engine.open(SequenceSpec::new(TOKENS)).unwrap();
                let options = PrefillOptions::default().boundary(Some(split));
                let plan = engine.begin(donor, prompt, options).unwrap();
                assert_eq!(plan.boundary(), Some(split));
                engine.prefill(PrefillStep::new(donor, &plan.pieces()[0])).unwrap();
                let prefix = engine.prefix(donor).unwrap();
                assert_eq!(prefix.tokens(), &prompt[..split]);

                let warm = engine.open(SequenceSpec::new(TOKENS)).unwrap();
                assert_eq!(engine.adopt(warm, &prefix, None).unwrap(), split);
                let first = feed(&mut engine, warm, prompt, PrefillOptions::default());
                assert_eq!(decode(&mut engine, &[warm], vec![first])[0].0, cold, "{name} at {split}");

                // The donor goes on as if nobody had taken its prefix.
                engine.prefill(PrefillStep::new(donor, &plan.pieces()[1])).unwrap();
                let first = engine.complete_prefill(donor).unwrap();
                assert_eq!(decode(&mut engine, &[donor], vec![first])[0].0, cold, "{name} at {split}, donor");
                assert!(engine.close(donor) && engine.close(warm));
            }
        }
    }
}

#[test]
fn e18_rows_with_seeds_of_their_own_draw_as_if_alone() {
    let model = load("llama");
    let prompts = prompts(5);
    let sampling = |i: usize| match i {
        3 => SamplingParams::greedy(),
        i => SamplingParams::builder().temperature(1.2).top_p(0.9).seed(100 + i as u64).build().unwrap(),
    };
    let start = |engine: &mut Engine<&Model>, i: usize| {
        let id = engine.open(SequenceSpec::new(20).sampling(sampling(i))).unwrap();
        let first = feed(engine, id, &prompts[i], PrefillOptions::default());
        (id, first)
    };
    for lookahead in [true, false] {
        let alone: Vec<_> = (0..5)
            .map(|i| {
                let mut engine = Engine::new(&model).lookahead(lookahead);
                let (id, first) = start(&mut engine, i);
                decode(&mut engine, &[id], vec![first]).remove(0)
            })
            .collect();
        let mut engine = Engine::new(&model).lookahead(lookahead);
        let (ids, first): (Vec<_>, Vec<_>) = (0..5).map(|i| start(&mut engine, i)).unzip();
        assert_eq!(decode(&mut engine, &ids, first), alone);
    }
}

#[test]
fn rows_come_and_go_while_others_decode() {
    let model = load("llama");
    let prompts = prompts(4);
    let alone: Vec<_> =
        prompts.iter().flat_map(|p| run(&model, std::slice::from_ref(p), TOKENS, &Way::plain())).collect();
    let mut engine = Engine::new(&model);
    let mut text: Vec<(SequenceId, usize, Vec<u32>)> = Vec::new();
    let note = |text: &mut Vec<(SequenceId, usize, Vec<u32>)>, outcome: RowOutcome| {
        let row = text.iter_mut().find(|row| row.0 == outcome.id).unwrap();
        row.2.extend(outcome.token);
    };
    for round in 0..40 {
        if round % 3 == 0 && round / 3 < 8 {
            let which = round / 3 % 4;
            let id = engine.open(SequenceSpec::new(TOKENS)).unwrap();
            text.push((id, which, Vec::new()));
            let first = feed(&mut engine, id, &prompts[which], PrefillOptions::default().chunk(4));
            note(&mut text, first);
        }
        if round == 10 {
            // One is cancelled with a step on its way; it never finishes.
            let gone = text.remove(1);
            assert!(engine.close(gone.0));
        }
        let batch = engine.decoding();
        engine.advance(&batch).unwrap().into_iter().for_each(|outcome| note(&mut text, outcome));
    }
    assert_eq!(text.len(), 7);
    for (_, which, tokens) in text {
        assert_eq!(tokens, alone[which]);
    }
}

#[test]
fn a_step_that_can_not_be_is_refused_before_anything_runs() {
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let row = engine.open(SequenceSpec::new(9)).unwrap();
    let first = feed(&mut engine, row, &[1, 2, 3], PrefillOptions::default()).token.unwrap();
    let fed = engine.cached(row).unwrap();
    let half = engine.open(SequenceSpec::new(9)).unwrap();
    engine.begin(half, &[4, 5], PrefillOptions::default()).unwrap();
    let other = Engine::new(&model).open(SequenceSpec::new(9)).unwrap();
    let gone = engine.open(SequenceSpec::new(9)).unwrap();
    engine.close(gone);
    let kind = |engine: &mut Engine<&Model>, batch: StepBatch| engine.step(&batch).unwrap_err().kind();
    assert_eq!(kind(&mut engine, StepBatch::new(&[row]).tokens(&[1, 2])), ErrorKind::Sequence);
    assert_eq!(kind(&mut engine, StepBatch::new(&[row]).tokens(&[320])), ErrorKind::Sequence);
    assert_eq!(kind(&mut engine, StepBatch::new(&[row, row])), ErrorKind::Sequence);
    assert_eq!(kind(&mut engine, StepBatch::new(&[row, half])), ErrorKind::Sequence);
    assert_eq!(kind(&mut engine, StepBatch::new(&[row, gone])), ErrorKind::Sequence);
    assert_ne!(other, half);
    assert_eq!((engine.cached(row).unwrap(), engine.text(row).unwrap()), (fed, &[1, 2, 3, first][..]));
    // A token of the caller's takes the place of the chosen one.
    let after = engine.step(&StepBatch::new(&[row]).tokens(&[17])).unwrap().remove(0).token.unwrap();
    assert_eq!(engine.text(row).unwrap(), [1, 2, 3, 17, after]);
    let mut fresh = Engine::new(&model);
    let id = fresh.open(SequenceSpec::new(9)).unwrap();
    assert_eq!(feed(&mut fresh, id, &[1, 2, 3, 17], PrefillOptions::default()).token, Some(after));
}

#[test]
fn e23_padding_that_a_cache_could_not_forget_is_refused_or_not_planned() {
    let model = load("llama");
    let mut engine = Engine::with_pool(&model, CachePool::new(CachePolicy::Chunked { chunk: 50 }));
    let prompt = &prompts(4)[3];
    let id = engine.open(SequenceSpec::new(4)).unwrap();
    let plan = engine.begin(id, prompt, PrefillOptions::default().chunk(7).tile(4)).unwrap();
    assert_eq!(plan.fed(), prompt.len(), "no padding is planned");
    let mut piece = plan.pieces()[0].clone();
    piece.padding = 3;
    assert_eq!(engine.prefill(PrefillStep::new(id, &piece)).unwrap_err().kind(), ErrorKind::Cache);
    assert_eq!(engine.cached(id).unwrap(), 0, "nothing was fed");
    // Where it is planned, none of it stays.
    let mut engine = Engine::new(&model);
    let id = engine.open(SequenceSpec::new(4)).unwrap();
    let plan = engine.begin(id, prompt, PrefillOptions::default().chunk(7).tile(4)).unwrap();
    assert!(plan.fed() > prompt.len());
    for piece in plan.pieces() {
        engine.prefill(PrefillStep::new(id, piece)).unwrap();
        assert_eq!(engine.prefix(id).unwrap().layers()[0].offset(), piece.tokens.end);
    }
}

#[test]
fn unwinding_and_scoring_agree_with_feeding() {
    let model = load("llama");
    let mut engine = Engine::new(&model);
    let prompt = &prompts(4)[3];
    let cold = run(&model, std::slice::from_ref(prompt), TOKENS, &Way::plain()).remove(0);
    let id = engine.open(SequenceSpec::new(TOKENS)).unwrap();
    let first = feed(&mut engine, id, prompt, PrefillOptions::default());
    decode(&mut engine, &[id], vec![first]);
    engine.unwind(id, TOKENS + 3).unwrap();
    assert_eq!(engine.text(id).unwrap(), &prompt[..prompt.len() - 3]);
    assert_eq!(engine.unwind(id, 1000).unwrap_err().kind(), ErrorKind::Cache);
    let scores = engine.score(id, &prompt[prompt.len() - 3..]).unwrap();
    assert_eq!(scores.shape(), [3, model.vocab_size() as i32]);
    let first = engine.complete_prefill(id).unwrap();
    assert_eq!(decode(&mut engine, &[id], vec![first])[0].0, cold);
}
