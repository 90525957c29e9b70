//! SmolLM2-135M from its GGUF file: prompt tokens and greedy continuations as mlx-lm has them.

use oxmlx_lm::cache::PagedStore;
use oxmlx_lm::engine::{CachePolicy, CachePool, Engine, PrefillOptions, PrefillStep, Prefix, SequenceSpec};
use oxmlx_lm::{DirectEngine, Message, ModelFiles, Request, models};
use serde::Deserialize;

use super::batch::{Model, Way, decode, feed, run, stress};
use crate::support::{fixture, smollm2, smollm2_is_left_out};

/// Where the reference's two best tokens are closer than this, either may come first.
const NEAR_TIE: f32 = 0.02;

#[derive(Deserialize)]
struct Reference {
    system: String,
    eos: u32,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    user: String,
    prompt_ids: Vec<u32>,
    greedy: Vec<u32>,
    margins: Vec<f32>,
}

impl Row {
    /// Checks the first `budget` tokens of an answer against the reference's, up to where that had hardly a preference.
    #[track_caller]
    fn check(&self, tokens: &[u32], budget: usize, way: &str) {
        let decided = self.margins.iter().position(|&m| m < NEAR_TIE).unwrap_or(self.margins.len());
        let compared = decided.min(self.greedy.len()).min(budget);
        assert_eq!(tokens[..compared.min(tokens.len())], self.greedy[..compared], "{}, {way}", self.user);
        if decided == self.margins.len() {
            assert_eq!(tokens.len(), self.greedy.len().min(budget), "{}, {way}", self.user);
        }
    }
}

fn reference() -> Reference {
    serde_json::from_str(&std::fs::read_to_string(fixture("smollm2/reference.json")).unwrap()).unwrap()
}

fn model() -> Model {
    models::load(&ModelFiles::open(smollm2()).unwrap(), &mut |_| ()).unwrap()
}

#[test]
fn smollm2_answers_as_mlx_lm_does() {
    if smollm2_is_left_out() {
        return;
    }
    let reference = reference();
    let files = ModelFiles::open(smollm2()).unwrap();
    let tokenizer = files.tokenizer().unwrap();
    let template = files.chat_template(&tokenizer).unwrap();
    let mut engine = DirectEngine::new(models::load(&files, &mut |_| ()).unwrap());
    for row in &reference.rows {
        let text = template.render(&[Message::system(&reference.system), Message::user(&row.user)]).unwrap();
        let prompt = tokenizer.encode_prompt(&text).unwrap();
        assert_eq!(prompt, row.prompt_ids, "{}", row.user);

        let request = Request::new(row.margins.len(), &[reference.eos]);
        let tokens: Vec<u32> = engine.generate(&prompt, request, &mut |_| true).unwrap().map(Result::unwrap).collect();
        row.check(&tokens, row.margins.len(), "one at a time");
    }
}

/// All batch sizes, with lookahead and without, plain and paged caches; and each size of chunks with both caches, with `OXMLX_STRESS=1` with all
/// that.
#[test]
fn smollm2_answers_the_same_however_it_is_run() {
    if smollm2_is_left_out() {
        return;
    }
    const CHUNKS: [usize; 4] = [1, 7, 64, 0];
    let (reference, model) = (reference(), model());
    let prompts: Vec<Vec<u32>> = reference.rows.iter().map(|row| row.prompt_ids.clone()).collect();
    let budget = if stress() { 40 } else { 6 };
    let mut n = 0;
    for paged in [false, true] {
        for lookahead in [true, false] {
            for batch in [1, 2, 7] {
                n += 1;
                // Chunks of one token are slow: once with each cache.
                let chunk = [if n % 6 == 1 { 1 } else { CHUNKS[1 + n % 3] }];
                for &chunk in if stress() { &CHUNKS[..] } else { &chunk } {
                    let store = PagedStore::new(16, 1 << 28).unwrap();
                    let cache = if paged { CachePolicy::Paged(store.clone()) } else { CachePolicy::Plain };
                    let options = PrefillOptions::default().chunk(chunk);
                    let way = Way { options, lookahead, cache, eos: vec![reference.eos] };
                    let what = format!("batch {batch}, chunk {chunk}, lookahead {lookahead}, paged {paged}");
                    for (rows, prompts) in reference.rows.chunks(batch).zip(prompts.chunks(batch)) {
                        for (row, tokens) in rows.iter().zip(run(&model, prompts, budget, &way)) {
                            row.check(&tokens, budget, &what);
                        }
                    }
                    assert_eq!(store.bytes(), 0, "closed rows give their blocks back");
                }
            }
        }
    }
}

/// Prefixes of all prompts, of the whole prompt and cut, and taken where a piece ended: at every split with `OXMLX_STRESS=1`, else at three a
/// prompt.
#[test]
fn smollm2_answers_the_same_from_adopted_prefixes() {
    if smollm2_is_left_out() {
        return;
    }
    let (reference, model) = (reference(), model());
    let budget = if stress() { 16 } else { 4 };
    let caches = [CachePolicy::Plain, CachePolicy::Paged(PagedStore::new(16, 1 << 28).unwrap())];
    for (c, cache) in caches.into_iter().enumerate() {
        let mut engine = Engine::with_pool(&model, CachePool::new(cache));
        let spec = |tokens| SequenceSpec::new(tokens).eos(&[reference.eos]);
        for (i, row) in reference.rows.iter().enumerate() {
            let prompt = &row.prompt_ids;
            let whole = engine.open(spec(0)).unwrap();
            feed(&mut engine, whole, prompt, PrefillOptions::default());
            let cut = engine.prefix(whole).unwrap();
            let splits: Vec<usize> = match stress() {
                true => (1..prompt.len()).collect(),
                false => vec![1 + i, prompt.len() / 2 + i / 2, prompt.len() - 1],
            };
            let goes_on = |engine: &mut Engine<&Model>, prefix: &Prefix, split: usize| {
                let warm = engine.open(spec(budget)).unwrap();
                assert_eq!(engine.adopt(warm, prefix, Some(split)).unwrap(), split);
                let first = feed(engine, warm, prompt, PrefillOptions::default());
                let tokens = decode(engine, &[warm], vec![first]).remove(0).0;
                row.check(&tokens, budget, &format!("adopted at {split}"));
                engine.close(warm);
            };
            for (n, &split) in splits.iter().enumerate() {
                if !stress() && (i + n + c) % 2 == 0 {
                    continue;
                }
                goes_on(&mut engine, &cut, split);
                if !stress() && n != i / 2 % splits.len() {
                    continue;
                }
                let donor = engine.open(spec(budget)).unwrap();
                let plan = engine.begin(donor, prompt, PrefillOptions::default().boundary(Some(split))).unwrap();
                engine.prefill(PrefillStep::new(donor, &plan.pieces()[0])).unwrap();
                let prefix = engine.prefix(donor).unwrap();
                goes_on(&mut engine, &prefix, split);
                // The donor goes on as if nobody had taken its prefix.
                engine.prefill(PrefillStep::new(donor, &plan.pieces()[1])).unwrap();
                let first = engine.complete_prefill(donor).unwrap();
                let tokens = decode(&mut engine, &[donor], vec![first]).remove(0).0;
                row.check(&tokens, budget, &format!("donor at {split}"));
                engine.close(donor);
            }
            engine.close(whole);
        }
    }
}
