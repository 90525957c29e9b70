//! Acceptance rules over worlds that fit a page: what comes out of drafts is what would have come without.

use std::collections::BTreeMap;

use oxmlx_lm::sampling::{Mirostat, Repetition, Window};
use oxmlx_lm::speculative::{Acceptance, Draft, DraftStats, Verdict};
use oxmlx_lm::{ErrorKind, Sampler, SamplingParams};

use crate::random::Lcg;
use crate::reference::row;

const VOCAB: usize = 6;
const RUNS: u64 = 20_000;

/// A model whose logits depend on the last token alone.
struct World(Vec<Vec<f32>>);

impl World {
    fn new(seed: u64, spread: f64) -> Self {
        let mut random = Lcg(seed);
        Self((0..VOCAB).map(|_| row(&mut random, VOCAB, spread)).collect())
    }

    /// Another one, near this one.
    fn near(&self) -> Self {
        let noise = Self::new(99, 0.7);
        let add = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| a + b).collect();
        Self(self.0.iter().zip(&noise.0).map(add).collect())
    }

    fn after(&self, token: u32) -> &[f32] {
        &self.0[token as usize]
    }

    fn best_after(&self, token: u32) -> u32 {
        let row = self.after(token);
        (0..VOCAB as u32).max_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize])).unwrap()
    }
}

fn sampler(seed: u64) -> Sampler {
    let params = SamplingParams::builder()
        .temperature(0.9)
        .top_p(0.97)
        .repetition(Repetition::new(1.3, Window::last(2)).unwrap())
        .seed(seed);
    let mut sampler = Sampler::new(params.build().unwrap());
    sampler.begin(&[0]);
    sampler
}

fn plain(world: &World, seed: u64) -> Vec<u32> {
    let mut sampler = sampler(seed);
    (0..3).map(|_| sampler.sample(world.after(*sampler.history().last().unwrap())).unwrap()).collect()
}

/// The first three tokens with drafts of `k` from `guess`, drawn for rejection and the best ones otherwise.
fn drafted(world: &World, guess: &World, rule: Acceptance, k: usize, seed: u64, stats: &mut DraftStats) -> Vec<u32> {
    let mut sampler = sampler(seed);
    let mut drawer = self::sampler(seed ^ 0x5555_0000);
    while sampler.history().len() < 4 {
        let mut tokens = vec![*sampler.history().last().unwrap()];
        let mut shares = Vec::new();
        drawer.begin(sampler.history());
        for _ in 0..k {
            let last = tokens[tokens.len() - 1];
            if rule == Acceptance::Rejection {
                shares.push(drawer.distribution(guess.after(last)).unwrap());
                tokens.push(drawer.sample(guess.after(last)).unwrap());
            } else {
                tokens.push(guess.best_after(last));
            }
        }
        let rows: Vec<&[f32]> = tokens.iter().map(|&t| world.after(t)).collect();
        let tokens = tokens[1..].to_vec();
        let draft = if shares.is_empty() { Draft::chosen(tokens) } else { Draft::drawn(tokens, shares).unwrap() };
        let before = sampler.history().len();
        let verdict = rule.judge(&draft, &rows, &mut sampler, &|_| false).unwrap();
        assert_eq!(sampler.history()[before..], verdict.tokens);
        assert_eq!(verdict.tokens[..verdict.accepted], draft.tokens()[..verdict.accepted]);
        stats.add(&verdict);
    }
    sampler.history()[1..4].to_vec()
}

/// Two samples of equal size from one distribution: chi-square over what came, rare outcomes put together.
#[track_caller]
fn same_distribution(a: impl Iterator<Item = Vec<u32>>, b: impl Iterator<Item = Vec<u32>>) {
    let mut counts = BTreeMap::<Vec<u32>, [f64; 2]>::new();
    a.for_each(|text| counts.entry(text).or_default()[0] += 1.0);
    b.for_each(|text| counts.entry(text).or_default()[1] += 1.0);
    let (common, rare): (Vec<[f64; 2]>, Vec<[f64; 2]>) = counts.into_values().partition(|[a, b]| a + b >= 20.0);
    let rare = rare.iter().fold([0.0; 2], |sum, c| [sum[0] + c[0], sum[1] + c[1]]);
    let cells = common.iter().chain(Some(&rare).filter(|c| c[0] + c[1] > 0.0));
    let (chi2, n) = cells.fold((0.0, 0.0), |(chi2, n), [a, b]| (chi2 + (a - b) * (a - b) / (a + b), n + 1.0));
    let df: f64 = n - 1.0;
    assert!(df > 20.0 && chi2 < df + 4.0 * (2.0 * df).sqrt(), "chi-square {chi2} for {df} degrees");
}

#[test]
fn rejection_draws_from_the_models_distribution() {
    let (world, mut stats) = (World::new(1, 1.2), DraftStats::default());
    let near = world.near();
    for k in [1, 3] {
        let with = (0..RUNS).map(|seed| drafted(&world, &near, Acceptance::Rejection, k, seed + RUNS, &mut stats));
        same_distribution((0..RUNS).map(|seed| plain(&world, seed)), with);
    }
    // Drafts near the model mostly stand.
    assert!((0.5..0.99).contains(&stats.accepted_of_tested()), "{stats:?}");
    let far = World::new(7, 2.0);
    let with = (0..RUNS).map(|seed| drafted(&world, &far, Acceptance::Rejection, 2, seed + RUNS, &mut stats));
    same_distribution((0..RUNS).map(|seed| plain(&world, seed)), with);
}

#[test]
fn rejection_of_drafts_that_were_chosen_draws_from_the_models_distribution() {
    let world = World::new(2, 1.2);
    let with = (0..RUNS).map(|seed| {
        let mut sampler = sampler(seed + RUNS);
        while sampler.history().len() < 4 {
            let last = *sampler.history().last().unwrap();
            let guess = world.best_after(last);
            let rows = [world.after(last), world.after(guess)];
            Acceptance::Rejection.judge(&Draft::chosen(vec![guess]), &rows, &mut sampler, &|_| false).unwrap();
        }
        sampler.history()[1..4].to_vec()
    });
    same_distribution((0..RUNS).map(|seed| plain(&world, seed)), with);
}

#[test]
fn sampler_match_gives_the_tokens_of_plain_sampling_seed_by_seed() {
    let (world, mut stats) = (World::new(3, 1.2), DraftStats::default());
    let near = world.near();
    for seed in 0..RUNS / 10 {
        for k in [1, 2, 8] {
            let with = drafted(&world, &near, Acceptance::SamplerMatch, k, seed, &mut stats);
            assert_eq!(with, plain(&world, seed), "seed {seed}, {k} drafted");
        }
    }
    let with = (0..RUNS).map(|seed| drafted(&world, &near, Acceptance::SamplerMatch, 3, seed + RUNS, &mut stats));
    same_distribution((0..RUNS).map(|seed| plain(&world, seed)), with);
    assert!(stats.tokens_per_round() > 1.2, "{stats:?}");
}

#[test]
fn judging_ends_with_a_drafted_token_that_ends_the_text() {
    let row = |best: usize| (0..VOCAB).map(|i| if i == best { 9.0 } else { 0.0 }).collect::<Vec<f32>>();
    let rows = [row(1), row(2), row(3), row(4)];
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let mut greedy = Sampler::new(SamplingParams::greedy());
    let mut judge = |tokens: &[u32]| {
        greedy.begin(&[]);
        let rows = &rows[..tokens.len() + 1];
        let draft = Draft::chosen(tokens.to_vec());
        let Verdict { tokens, accepted, tested, proposed, .. } =
            Acceptance::Greedy.judge(&draft, rows, &mut greedy, &|token| token == 2).unwrap();
        (tokens, accepted, tested, proposed)
    };
    assert_eq!(judge(&[1, 2, 3]), (vec![1, 2], 2, 2, 3));
    assert_eq!(judge(&[1, 5, 3]), (vec![1, 2], 1, 2, 3));
    assert_eq!(judge(&[1]), (vec![1, 2], 1, 1, 1));
    assert_eq!(judge(&[0, 2, 3]), (vec![1], 0, 1, 3));
    assert_eq!(judge(&[]), (vec![1], 0, 0, 0));
}

#[test]
fn statistics_are_ratios_of_sums() {
    let mut stats = DraftStats::default();
    assert_eq!((stats.accepted_of_tested(), stats.tokens_per_round()), (0.0, 0.0));
    let mut greedy = Sampler::new(SamplingParams::greedy());
    let best = [0.0, 1.0];
    for tokens in [vec![1, 1, 1], vec![1, 0, 1], vec![0], vec![]] {
        let rows = vec![&best[..]; tokens.len() + 1];
        let verdict = Acceptance::Greedy.judge(&Draft::chosen(tokens), &rows, &mut greedy, &|_| false).unwrap();
        stats.add(&verdict);
    }
    assert_eq!((stats.rounds, stats.proposed, stats.tested, stats.accepted, stats.tokens), (4, 7, 6, 4, 8));
    assert_eq!(stats.accepted_of_tested(), 4.0 / 6.0);
    assert_eq!((stats.accepted_of_proposed(), stats.tokens_per_round()), (4.0 / 7.0, 2.0));
}

#[test]
fn rules_that_do_not_go_with_a_sampler_are_refused() {
    let row = [0.0f32; 4];
    let judge = |rule: Acceptance, params: SamplingParams, rows: usize| {
        let mut sampler = Sampler::new(params);
        let error = rule.judge(&Draft::chosen(vec![1]), &vec![&row[..]; rows], &mut sampler, &|_| false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sampling);
        assert!(sampler.history().is_empty());
    };
    let warm = || SamplingParams::builder();
    judge(Acceptance::Greedy, warm().build().unwrap(), 2);
    judge(Acceptance::Rejection, warm().mirostat(Mirostat::new(5.0, 0.1).unwrap()).build().unwrap(), 2);
    judge(Acceptance::SamplerMatch, warm().build().unwrap(), 1);
    assert!(Draft::drawn(vec![1], vec![]).is_err());
    assert!(Draft::drawn(vec![1], vec![vec![(0, 1.0)]]).is_err());
    for nothing in [f32::NAN, f32::INFINITY, -1.0] {
        assert!(Draft::drawn(vec![1], vec![vec![(1, nothing)]]).is_err());
    }
    let default = |t: f32| Acceptance::default_for(&Sampler::new(warm().temperature(t).build().unwrap()));
    assert_eq!([default(0.0), default(1.0)], [Acceptance::Greedy, Acceptance::SamplerMatch]);
}
