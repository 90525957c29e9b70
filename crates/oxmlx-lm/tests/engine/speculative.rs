//! Speculative decoding with tiny models: the tokens are those of plain decoding, and the caches hold what stands.

use oxmlx::Array;
use oxmlx_lm::cache::{Cache, KvCache, RotatingKvCache};
use oxmlx_lm::sampling::{Repetition, Window};
use oxmlx_lm::speculative::{
    Acceptance, Draft, DraftStats, Drafter, FullModelDrafter, PromptLookupDrafter, check_rewind, verify,
};
use oxmlx_lm::{ErrorKind, LanguageModel, Logits, ModelFiles, Result, Sampler, SamplingParams, models};

use crate::support::fixture;

const PROMPT: [u32; 7] = [5, 17, 200, 3, 5, 17, 42];
const TOKENS: usize = 16;

fn model(name: &str) -> Box<dyn LanguageModel> {
    models::load(&ModelFiles::open(fixture("models").join(name)).unwrap(), &mut |_| ()).unwrap()
}

fn sampler(params: &SamplingParams) -> Sampler {
    let mut sampler = Sampler::new(params.clone());
    sampler.begin(&PROMPT);
    sampler
}

/// Prompt and answer, one token a pass.
fn plain(model: &dyn LanguageModel, params: &SamplingParams) -> Vec<u32> {
    let (mut caches, mut sampler) = (model.make_caches(), sampler(params));
    let mut next = PROMPT.to_vec();
    for _ in 0..TOKENS {
        let tokens = Array::from_slice(&next, (1, next.len() as i32)).unwrap();
        let logits = model.forward(&tokens, &mut caches, Logits::Last).unwrap();
        next = vec![sampler.sample(&logits.to_vec::<f32>().unwrap()).unwrap()];
    }
    sampler.history().to_vec()
}

/// The same with drafts, and the caches afterwards.
fn speculative(
    model: &dyn LanguageModel,
    params: &SamplingParams,
    rule: Acceptance,
    drafter: &mut dyn Drafter,
    k: usize,
) -> (Vec<u32>, Vec<Box<dyn Cache>>, DraftStats) {
    let (mut caches, mut sampler, mut stats) = (model.make_caches(), sampler(params), DraftStats::default());
    let mut text = PROMPT.to_vec();
    while text.len() < PROMPT.len() + TOKENS {
        let budget = PROMPT.len() + TOKENS - text.len();
        let draft = drafter.draft(&text, k.min(budget - 1)).unwrap();
        let verdict = verify(model, &mut caches, &text, &draft, (rule, &mut sampler, &|_| false)).unwrap();
        text.extend(&verdict.tokens);
        assert!(caches.iter().all(|cache| cache.offset() == text.len() - 1), "all but the token that comes next");
        assert_eq!(sampler.history(), text);
        stats.add(&verdict);
    }
    (text, caches, stats)
}

/// Knows what comes, and says so for the first `right` of its tokens.
struct Oracle {
    text: Vec<u32>,
    right: usize,
}

impl Drafter for Oracle {
    fn draft(&mut self, text: &[u32], most: usize) -> Result<Draft> {
        let rest = self.text[text.len()..].iter().take(most).enumerate();
        Ok(Draft::chosen(rest.map(|(i, &token)| if i < self.right { token } else { (token + 1) % 320 }).collect()))
    }
}

#[test]
fn e07_greedy_equals_plain_whatever_number_of_drafts_stands() {
    let model = model("llama");
    let params = SamplingParams::greedy();
    let wanted = plain(&*model, &params);
    for k in 1..=8 {
        for right in 0..=k {
            let mut oracle = Oracle { text: wanted.clone(), right };
            let (text, _, stats) = speculative(&*model, &params, Acceptance::Greedy, &mut oracle, k);
            assert_eq!(text, wanted, "{right} of {k}");
            assert_eq!(right == 0, stats.accepted == 0, "{right} of {k}: {stats:?}");
        }
    }
}

#[test]
fn e07_draft_and_model_caches_end_at_the_same_length() {
    let target = model("llama");
    let params = SamplingParams::greedy();
    let wanted = plain(&*target, &params);
    for k in 1..=8 {
        for name in ["llama", "mistral"] {
            let mut drafter = FullModelDrafter::new(model(name)).unwrap();
            let (text, caches, stats) = speculative(&*target, &params, Acceptance::Greedy, &mut drafter, k);
            assert_eq!(text, wanted, "{name}, {k}");
            drafter.catch_up(&text).unwrap();
            assert!(caches.iter().all(|cache| cache.offset() == drafter.cached()), "{name}, {k}");
            if name == "llama" {
                assert_eq!(stats.accepted_of_proposed(), 1.0, "a model agrees with itself");
            }
        }
    }
}

#[test]
fn e08_repetition_penalty_with_the_model_as_its_own_draft_equals_plain() {
    let target = model("llama");
    let penalty = Repetition::new(1.8, Window::WHOLE).unwrap();
    let params = SamplingParams::builder().temperature(0.0).repetition(penalty).build().unwrap();
    let wanted = plain(&*target, &params);
    for k in [1, 3, 8] {
        let mut drafter = FullModelDrafter::new(model("llama")).unwrap();
        let (text, ..) = speculative(&*target, &params, Acceptance::Greedy, &mut drafter, k);
        assert_eq!(text, wanted, "{k}");
        let mut drafter = FullModelDrafter::new(model("llama")).unwrap().sampling(params.clone());
        let (text, _, stats) = speculative(&*target, &params, Acceptance::Greedy, &mut drafter, k);
        assert_eq!((text, stats.accepted_of_proposed()), (wanted.clone(), 1.0), "{k}: penalised drafts all stand");
    }
}

#[test]
fn sampling_with_drafts_equals_plain_sampling_of_the_same_seed() {
    let target = model("llama");
    for seed in 0..6 {
        let params = SamplingParams::builder().temperature(1.2).top_k(50).seed(seed).build().unwrap();
        let wanted = plain(&*target, &params);
        let mut drafter = FullModelDrafter::new(model("llama")).unwrap();
        let (text, ..) = speculative(&*target, &params, Acceptance::SamplerMatch, &mut drafter, 4);
        assert_eq!(text, wanted, "seed {seed}");
        let mut lookup = PromptLookupDrafter::new(3, 1).unwrap();
        let (text, ..) = speculative(&*target, &params, Acceptance::SamplerMatch, &mut lookup, 4);
        assert_eq!(text, wanted, "seed {seed}");
    }
}

#[test]
fn rejection_lets_drafts_of_the_models_own_distribution_stand() {
    let target = model("llama");
    let params = |seed| SamplingParams::builder().temperature(1.0).top_p(0.9).seed(seed).build().unwrap();
    let mut drafter = FullModelDrafter::new(model("llama")).unwrap().sampling(params(7));
    let (.., stats) = speculative(&*target, &params(1), Acceptance::Rejection, &mut drafter, 5);
    // But for rounding p is q, and nothing falls.
    assert_eq!(stats.accepted_of_proposed(), 1.0, "{stats:?}");
    let mut other = FullModelDrafter::new(model("mistral")).unwrap().sampling(params(7));
    let (text, _, stats) = speculative(&*target, &params(1), Acceptance::Rejection, &mut other, 5);
    assert!(text.len() >= PROMPT.len() + TOKENS && stats.accepted < stats.tested, "{stats:?}");
}

#[test]
fn e09_a_cache_that_can_not_rewind_is_refused_before_anything_ran() {
    let model = model("llama");
    let ring = || Box::new(RotatingKvCache::new(8).unwrap()) as Box<dyn Cache>;
    let mut caches: Vec<Box<dyn Cache>> = vec![Box::new(KvCache::new()), ring()];
    let mut sampler = sampler(&SamplingParams::greedy());
    let draft = Draft::chosen(vec![1, 2, 3]);
    let round = (Acceptance::Greedy, &mut sampler, &(|_| false) as &dyn Fn(u32) -> bool);
    let error = verify(&*model, &mut caches, &PROMPT, &draft, round).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cache);
    for words in ["layer 1", "rotating", "3"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(caches.iter().all(|cache| cache.offset() == 0));
    assert_eq!(sampler.history(), PROMPT);
    // With slack it can, and a plain step any cache can.
    let slack: Vec<Box<dyn Cache>> = vec![Box::new(RotatingKvCache::new(8).unwrap().with_slack(3).unwrap())];
    check_rewind(&slack, 3).unwrap();
    assert!(check_rewind(&slack, 4).is_err());
    check_rewind(&[ring()], 0).unwrap();
    verify(&*model, &mut caches, &PROMPT, &Draft::default(), (Acceptance::Greedy, &mut sampler, &|_| false)).unwrap();
}

#[test]
fn rings_with_slack_give_the_tokens_of_plain_caches() {
    let target = model("gemma3");
    let params = SamplingParams::greedy();
    let wanted = plain(&*target, &params);
    for right in [0, 1, 3] {
        let mut oracle = Oracle { text: wanted.clone(), right };
        let mut caches: Vec<Box<dyn Cache>> = target
            .layer_caches()
            .iter()
            .map(|layer| match layer.window {
                Some(window) => {
                    Box::new(RotatingKvCache::new(window).unwrap().with_slack(4).unwrap()) as Box<dyn Cache>
                }
                None => Box::new(KvCache::new()),
            })
            .collect();
        let mut sampler = sampler(&params);
        while sampler.history().len() < wanted.len() {
            let text = sampler.history().to_vec();
            let draft = oracle.draft(&text, 3.min(wanted.len() - text.len() - 1)).unwrap();
            verify(&*target, &mut caches, &text, &draft, (Acceptance::Greedy, &mut sampler, &|_| false)).unwrap();
        }
        assert_eq!(sampler.history(), wanted, "{right} right");
    }
}

#[test]
fn a_draft_model_of_another_vocabulary_says_so() {
    let mut drafter = FullModelDrafter::new(model("llama")).unwrap();
    let error = drafter.draft(&[1, 2, 320, 4], 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Prompt);
    assert!(error.to_string().contains("320"), "{error}");
    assert_eq!(drafter.cached(), 0);
}
