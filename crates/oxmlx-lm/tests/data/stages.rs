//! Each stage of the sampling chain against its definition, and what users met in the field.

use half::{bf16, f16};
use oxmlx_lm::sampling::{
    Dry, DynamicTemperature, FrequencyPresence, LogitBias, Mirostat, Order, Repetition, SamplingParamsBuilder, Stage,
    Suppression, Window, Xtc, logprobs,
};
use oxmlx_lm::{ErrorKind, Sampler, SamplingParams};

use crate::random::Lcg;
use crate::reference::{self, List, row};

const SIZES: [usize; 3] = [50, 32_769, 151_936];

/// A history that repeats itself in places.
fn history(random: &mut Lcg, vocabulary: usize) -> Vec<u32> {
    let words: Vec<u32> = (0..12).map(|_| random.below(vocabulary) as u32).collect();
    (0..120).map(|i| if random.below(4) == 0 { words[random.below(12)] } else { words[i % 7] }).collect()
}

fn settings() -> SamplingParamsBuilder {
    SamplingParams::builder().seed(1)
}

/// Holds what the sampler draws from against the definition, for rows of all sizes.
#[track_caller]
fn same(params: SamplingParamsBuilder, definition: impl Fn(&mut List, &[u32])) {
    let params = params.build().unwrap();
    for (at, size) in SIZES.into_iter().enumerate() {
        let mut random = Lcg(40 + at as u64);
        for spread in [0.5, 3.0] {
            let logits = row(&mut random, size, spread);
            let history = history(&mut random, size);
            let mut sampler = Sampler::new(params.clone());
            sampler.begin(&history);
            let got = sampler.distribution(&logits).unwrap();
            let mut wanted = reference::list(&logits);
            definition(&mut wanted, &history);
            let shares = reference::shares(&wanted);
            // Single precision has no number for less.
            let wanted: Vec<(u32, f64)> = wanted.iter().map(|c| c.0).zip(shares).filter(|c| c.1 > 1e-37).collect();
            // A token right at a bar may fall to either side by rounding.
            assert!(got.len().abs_diff(wanted.len()) <= 1, "{size}, {spread}: {} for {}", got.len(), wanted.len());
            if got.len() == wanted.len() {
                for (&(id, p), &(wanted_id, wanted_p)) in got.iter().zip(&wanted) {
                    assert_eq!(id, wanted_id, "{size}, {spread}");
                    let off = (f64::from(p) / wanted_p - 1.0).abs();
                    assert!(off < 3e-5, "{size}, {spread}: {p} for {wanted_p}");
                }
            }
        }
    }
}

#[test]
fn repetition_divides_and_multiplies_by_the_definition() {
    for (penalty, window) in [(1.3, 20), (0.8, 64), (1.8, 1000)] {
        let stage = Repetition::new(penalty as f32, Window::last(window)).unwrap();
        same(settings().repetition(stage), |list, history| {
            let window = &history[history.len() - window.min(history.len())..];
            reference::repetition(list, window, f64::from(penalty as f32));
        });
    }
}

#[test]
fn frequency_and_presence_are_taken_off_by_count() {
    let stage = FrequencyPresence::new(0.25, 0.5, Window::WHOLE).unwrap();
    same(settings().frequency_presence(stage), |list, history| {
        reference::frequency_presence(list, history, 0.25, 0.5);
    });
    let stage = FrequencyPresence::new(-0.125, 0.0, Window::last(30)).unwrap();
    same(settings().frequency_presence(stage), |list, history| {
        reference::frequency_presence(list, &history[90..], -0.125, 0.0);
    });
}

#[test]
fn dry_finds_the_repeats_that_comparing_all_places_finds() {
    let mut random = Lcg(77);
    for round in 0..200 {
        let letters = 2 + random.below(4);
        let text: Vec<u32> = (0..1 + random.below(60)).map(|_| random.below(letters) as u32).collect();
        let breakers: Vec<u32> = if round % 3 == 0 { vec![1] } else { vec![] };
        let (window, allowed) = (1 + random.below(70), 1 + random.below(4));
        let dry = Dry::new(0.5).unwrap().base(1.5).unwrap().allowed_length(allowed).unwrap();
        let dry = dry.window(Window::last(window)).breakers(breakers.iter().map(|&t| i64::from(t))).unwrap();
        let mut sampler = Sampler::new(settings().dry(dry).build().unwrap());
        sampler.begin(&text);
        let logits = row(&mut random, 8, 1.0);
        let mut wanted = reference::list(&logits);
        let seen = &text[text.len() - window.min(text.len())..];
        reference::dry(&mut wanted, seen, [0.5, 1.5], allowed, &breakers);
        let wanted = reference::shares(&wanted);
        for ((_, p), wanted) in sampler.distribution(&logits).unwrap().iter().zip(wanted) {
            assert!((f64::from(*p) / wanted - 1.0).abs() < 1e-5, "{text:?} {window} {allowed} {breakers:?}");
        }
    }
    let dry = Dry::new(0.75).unwrap().allowed_length(3).unwrap();
    same(settings().dry(dry), |list, history| reference::dry(list, history, [0.75, 1.75], 3, &[]));
}

#[test]
fn top_n_sigma_keeps_what_is_near_the_best() {
    for n in [0.5, 1.0, 2.5] {
        same(settings().top_n_sigma(n), |list, _| reference::top_n_sigma(list, f64::from(n)));
    }
}

#[test]
fn top_k_keeps_the_best() {
    for k in [1, 7, 40, 1000] {
        same(settings().top_k(k), |list, _| reference::top_k(list, k));
    }
}

#[test]
fn typical_p_keeps_the_least_surprising_surprise() {
    for p in [0.2, 0.9, 0.995] {
        same(settings().typical_p(p), |list, _| reference::typical_p(list, f64::from(p)));
    }
}

#[test]
fn top_p_keeps_the_fewest_of_the_share() {
    for p in [0.3, 0.9, 0.999] {
        same(settings().top_p(p), |list, _| reference::top_p(list, f64::from(p)));
    }
}

#[test]
fn min_p_keeps_by_ratio() {
    for p in [0.02, 0.3, 1.0] {
        same(settings().min_p(p), |list, _| reference::min_p(list, f64::from(p)));
    }
}

#[test]
fn xtc_takes_out_all_but_the_last_of_the_good() {
    let xtc = Xtc::new(1.0, 0.01).unwrap();
    same(settings().xtc(xtc), |list, _| reference::xtc(list, 0.01, &[]));
    // Shares .4, .3, .2, .1: three are good, the third stays.
    let logits = [0.4f32.ln(), 0.3f32.ln(), 0.2f32.ln(), 0.1f32.ln()];
    let kept = |special: &[i64]| {
        let xtc = Xtc::new(1.0, 0.15).unwrap().special(special.iter().copied()).unwrap();
        let mut sampler = Sampler::new(settings().xtc(xtc).build().unwrap());
        sampler.distribution(&logits).unwrap().iter().map(|c| c.0).collect::<Vec<_>>()
    };
    assert_eq!(kept(&[]), [2, 3]);
    assert_eq!(kept(&[0]), [0, 2, 3], "special tokens are exempt");
}

#[test]
fn xtc_comes_as_often_as_its_probability_says() {
    let logits = [0.4f32.ln(), 0.3f32.ln(), 0.2f32.ln(), 0.1f32.ln()];
    let params = settings().xtc(Xtc::new(0.3, 0.15).unwrap()).build().unwrap();
    let mut sampler = Sampler::new(params);
    let wanted = [0.4 * 0.7, 0.3 * 0.7, 0.2 * 0.7 + 0.3 * 2.0 / 3.0, 0.1 * 0.7 + 0.3 / 3.0];
    for ((_, p), wanted) in sampler.distribution(&logits).unwrap().iter().zip(wanted) {
        assert!((f64::from(*p) - wanted).abs() < 1e-6);
    }
    let mut counts = [0.0; 4];
    (0..100_000).for_each(|_| counts[sampler.sample(&logits).unwrap() as usize] += 1.0);
    let chi2: f64 = counts.iter().zip(wanted).map(|(n, p)| (n - p * 1e5f64).powi(2) / (p * 1e5)).sum();
    // Three degrees of freedom: over 21 in one of ten thousand runs.
    assert!(chi2 < 21.0, "{counts:?}");
}

#[test]
fn dynamic_temperature_goes_with_the_entropy() {
    let dynamic = DynamicTemperature::new(0.5, 1.5).unwrap();
    same(settings().temperature(0.9).dynamic_temperature(dynamic), |list, _| {
        reference::dynamic_heat(list, f64::from(0.9f32), 0.5, 1.5);
    });
}

#[test]
fn mirostat_keeps_the_surprise_at_its_target() {
    let mirostat = Mirostat::new(3.0, 0.1).unwrap();
    // The filter is not looked at.
    same(settings().temperature(1.5).top_k(1).mirostat(mirostat), |list, _| {
        reference::heat(list, 1.5);
        reference::mirostat(list, 6.0);
    });
    let mut random = Lcg(3);
    let logits = row(&mut random, 2000, 2.0);
    let mut sampler = Sampler::new(settings().mirostat(mirostat).build().unwrap());
    let mut surprise = 0.0;
    for round in 0..600 {
        let shares = sampler.distribution(&logits).unwrap();
        let token = sampler.sample(&logits).unwrap();
        let p = shares.iter().find(|c| c.0 == token).unwrap().1;
        surprise += if round < 100 { 0.0 } else { -f64::from(p).log2() };
    }
    assert!((surprise / 500.0 - 3.0).abs() < 0.2, "{}", surprise / 500.0);
}

#[test]
fn all_stages_together_follow_the_order() {
    let stages = || {
        settings()
            .logit_bias(LogitBias::new([(3, 2.0), (9, -1.0)]).unwrap())
            .repetition(Repetition::new(1.25, Window::last(50)).unwrap())
            .frequency_presence(FrequencyPresence::new(0.125, 0.25, Window::WHOLE).unwrap())
            .dry(Dry::new(0.5).unwrap().base(1.5).unwrap())
            .top_n_sigma(3.0)
            .top_k(300)
            .top_p(0.9375)
            .min_p(0.03125)
            .temperature(1.5)
    };
    let bias = |list: &mut List| {
        for c in list {
            c.1 += [(3, 2.0), (9, -1.0)].iter().find(|b| b.0 == c.0).map_or(0.0, |b| b.1);
        }
    };
    same(stages(), |list, history| {
        bias(list);
        reference::repetition(list, &history[70..], 1.25);
        reference::dry(list, history, [0.5, 1.5], 2, &[]);
        reference::frequency_presence(list, history, 0.125, 0.25);
        reference::top_n_sigma(list, 3.0);
        reference::top_k(list, 300);
        reference::top_p(list, 0.9375);
        reference::min_p(list, 0.03125);
        reference::heat(list, 1.5);
    });
    same(stages().order(Order::temperature_first()), |list, history| {
        list.iter_mut().for_each(|c| c.1 /= 1.5);
        bias(list);
        reference::top_n_sigma(list, 3.0);
        reference::top_k(list, 300);
        reference::top_p(list, 0.9375);
        reference::min_p(list, 0.03125);
        reference::dry(list, history, [0.5, 1.5], 2, &[]);
        reference::repetition(list, &history[70..], 1.25);
        reference::frequency_presence(list, history, 0.125, 0.25);
    });
    let reversed = Order::new(&[Stage::MinP, Stage::TopK]).unwrap();
    same(settings().top_k(30).min_p(0.5).order(reversed), |list, _| {
        reference::min_p(list, 0.5);
        reference::top_k(list, 30);
    });
}

#[test]
fn chain_with_every_filter_draws_by_its_distribution() {
    const DRAWS: usize = 100_000;
    let mut random = Lcg(5);
    let logits = row(&mut random, 150, 1.5);
    let params = settings()
        .repetition(Repetition::new(1.2, Window::last(40)).unwrap())
        .top_n_sigma(2.0)
        .top_k(60)
        .typical_p(0.95)
        .top_p(0.95)
        .min_p(0.01)
        .temperature(1.3);
    let mut sampler = Sampler::new(params.build().unwrap());
    let prompt = history(&mut random, 150)[..30].to_vec();
    sampler.begin(&prompt);
    let shares = sampler.distribution(&logits).unwrap();
    let mut counts = vec![0usize; 150];
    for _ in 0..DRAWS {
        counts[sampler.sample(&logits).unwrap() as usize] += 1;
        // Each draw from the same history.
        if sampler.history().len() > prompt.len() {
            sampler.begin(&prompt);
        }
    }
    let chi2: f64 = shares
        .iter()
        .map(|&(id, p)| (counts[id as usize] as f64 - f64::from(p) * 1e5).powi(2) / (f64::from(p) * 1e5))
        .sum();
    let df = (shares.len() - 1) as f64;
    assert!(shares.len() > 10 && (chi2 - df).abs() < 4.0 * (2.0 * df).sqrt(), "chi-square {chi2} for {df}");
}

#[test]
fn suppression_wins_over_bias_and_over_every_order() {
    let logits = [5.0, 1.0, 0.0, -1.0];
    for order in [Order::default(), Order::temperature_first()] {
        for temperature in [0.0, 1.0] {
            let params = settings()
                .suppress(Suppression::new([0, 99]).unwrap())
                .logit_bias(LogitBias::new([(0, 1e38), (0, 1e38)]).unwrap())
                .frequency_presence(FrequencyPresence::new(-100.0, 0.0, Window::WHOLE).unwrap())
                .top_k(1)
                .temperature(temperature)
                .order(order.clone());
            let mut sampler = Sampler::new(params.build().unwrap());
            sampler.begin(&[0, 0, 0]);
            assert_eq!(sampler.sample(&logits).unwrap(), 1, "{temperature}");
        }
    }
    let all = settings().suppress(Suppression::new(0..4).unwrap()).build().unwrap();
    assert_eq!(Sampler::new(all).sample(&logits).unwrap_err().kind(), ErrorKind::Sampling);
}

#[test]
fn e10_argmax_survives_a_tiny_top_p_of_half_precision_logits() {
    let mut random = Lcg(8);
    let wide = row(&mut random, 5000, 2.0);
    let half: Vec<f32> = wide.iter().map(|&x| f16::from_f32(x).to_f32()).collect();
    let brain: Vec<f32> = wide.iter().map(|&x| bf16::from_f32(x).to_f32()).collect();
    for (logits, top_p) in [(&wide, 1e-8), (&half, 1e-5), (&brain, 1e-4)] {
        let best = logits.iter().copied().fold(f32::MIN, f32::max);
        let mut sampler = Sampler::new(settings().top_p(top_p).build().unwrap());
        assert!((0..50).all(|_| logits[sampler.sample(logits).unwrap() as usize] == best), "{top_p}");
    }
}

#[test]
fn e12_temperatures_that_are_none_are_errors() {
    for temperature in [-1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(settings().temperature(temperature).build().unwrap_err().field(), Some("temperature"));
    }
    let logits: Vec<f32> = [0.1f32, 3.0, 2.998].iter().map(|&x| f16::from_f32(x).to_f32()).collect();
    let mut sampler = Sampler::new(settings().temperature(1e-5).build().unwrap());
    assert!((0..50).all(|_| sampler.sample(&logits).unwrap() == 1));
}

#[test]
fn e14_repetition_looks_back_as_far_as_its_window() {
    let mut prompt: Vec<u32> = vec![7];
    prompt.extend(20..44);
    // Token 7 stands 25 back.
    let chosen = |window: i64| {
        let stage = Repetition::new(10.0, Window::of(window).unwrap()).unwrap();
        let mut sampler = Sampler::new(settings().temperature(0.0).repetition(stage).build().unwrap());
        sampler.begin(&prompt);
        let mut logits = vec![0.0; 50];
        (logits[7], logits[8]) = (2.0, 1.0);
        sampler.sample(&logits).unwrap()
    };
    assert_eq!([chosen(20), chosen(24), chosen(25), chosen(0), chosen(-1)], [7, 7, 8, 7, 8]);
    assert!(Window::of(-2).is_err());
}

#[test]
fn e15_dry_penalises_a_match_of_exactly_the_allowed_length_by_the_multiplier() {
    // 1 2 3 | 9 | 2 3: the last two tokens were followed by 9 before... and 1 2 3 by 9 too.
    let penalty = |text: &[u32], allowed| {
        let dry = Dry::new(0.8).unwrap().base(1.75).unwrap().allowed_length(allowed).unwrap();
        let mut sampler = Sampler::new(settings().dry(dry).build().unwrap());
        sampler.begin(text);
        let shares = sampler.distribution(&[0.0; 12]).unwrap();
        f64::from(shares[0].1 / shares[9].1).ln()
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} for {b}");
    near(penalty(&[5, 2, 3, 9, 2, 3], 2), 0.8);
    near(penalty(&[5, 2, 3, 9, 2, 3], 3), 0.0);
    near(penalty(&[5, 1, 2, 3, 9, 1, 2, 3], 2), 0.8 * 1.75);
    near(penalty(&[5, 1, 2, 3, 9, 1, 2, 3], 1), 0.8 * 1.75 * 1.75);
}

#[test]
fn a_penalty_after_the_temperature_divides_positive_logits_and_multiplies_negative_ones() {
    let shares = |logits: &[f32], temperature: f32, order: Order| {
        let penalty = Repetition::new(2.0, Window::WHOLE).unwrap();
        let params = settings().repetition(penalty).temperature(temperature).order(order);
        let mut sampler = Sampler::new(params.build().unwrap());
        sampler.begin(&[1, 2]);
        sampler.distribution(logits).unwrap()
    };
    // Dividing by both commutes: the order is the same to repetition and temperature alone.
    for logits in [[1.0, 3.0, -0.5, 2.0], [-4.0, -3.0, -3.5, -3.25]] {
        for temperature in [0.5, 0.999, 1.0, 1.5] {
            let (first, last) = (
                shares(&logits, temperature, Order::temperature_first()),
                shares(&logits, temperature, Order::default()),
            );
            assert_eq!(first.len(), 4);
            let near = |(a, b): (&(u32, f32), &(u32, f32))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6;
            assert!(first.iter().zip(&last).all(near), "{logits:?} at {temperature}: {first:?} for {last:?}");
        }
    }
    // So hot or cold that a number overflows: still a choice.
    for temperature in [1e-45, 1e-40, f32::MAX] {
        shares(&[1.0, 3.0, -0.5, 2.0], temperature, Order::temperature_first());
    }
}

#[test]
fn a_dynamic_temperature_over_the_largest_number_is_the_largest_number() {
    let dynamic = DynamicTemperature::new(f32::MAX, 1.0).unwrap();
    let mut sampler = Sampler::new(settings().temperature(f32::MAX).dynamic_temperature(dynamic).build().unwrap());
    let shares = sampler.distribution(&[1.0, f32::NEG_INFINITY, 2.0]).unwrap();
    assert_eq!(shares.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn dry_of_a_very_long_repeat_stays_a_number() {
    let dry = Dry::new(1e30).unwrap().base(100.0).unwrap();
    let mut sampler = Sampler::new(settings().temperature(0.0).dry(dry).build().unwrap());
    sampler.begin(&[1; 5000]);
    assert_eq!(sampler.sample(&[0.0, 9.0, 1.0]).unwrap(), 2);
}

#[test]
fn e16_logit_bias_for_tokens_that_are_not_there() {
    let bias = LogitBias::new([(2_000_000_000, 5.0), (1, 3.0)]).unwrap();
    let mut sampler = Sampler::new(settings().temperature(0.0).logit_bias(bias).build().unwrap());
    assert_eq!(sampler.sample(&[2.0, 0.0, 1.0]).unwrap(), 1, "one outside the vocabulary is ignored");
    for id in [-1, 1 << 32] {
        let error = LogitBias::new([(id, 1.0)]).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Sampling, Some("logit-bias")));
        assert!(error.to_string().contains(&id.to_string()));
    }
    let banned = LogitBias::new([(0, f32::NEG_INFINITY)]).unwrap();
    let mut sampler = Sampler::new(settings().logit_bias(banned).build().unwrap());
    assert!(sampler.distribution(&[9.0, 0.0]).unwrap() == [(1, 1.0)]);
}

#[test]
fn e17_logprobs_of_half_precision_rows_are_those_of_their_numbers() {
    fn check<T: Copy + Into<f32>>(row: &[T]) {
        let wide: Vec<f64> = row.iter().map(|&x| f64::from(x.into())).collect();
        let largest = wide.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = wide.iter().map(|x| (x - largest).exp()).sum();
        let wanted = |id: u32| wide[id as usize] - largest - total.ln();
        let (chosen, top) = logprobs(row, 17, 20).unwrap();
        assert!((f64::from(chosen.logprob) - wanted(17)).abs() < 1e-5);
        let mut order: Vec<u32> = (0..row.len() as u32).collect();
        order.sort_by(|&a, &b| wide[b as usize].total_cmp(&wide[a as usize]).then(a.cmp(&b)));
        assert_eq!(top.iter().map(|t| t.token).collect::<Vec<_>>(), order[..20]);
        assert!(top.iter().all(|t| (f64::from(t.logprob) - wanted(t.token)).abs() < 1e-5));
    }
    let mut random = Lcg(6);
    // Over 65,504 of equal weight: a sum in half precision would be infinite.
    let logits: Vec<f32> = row(&mut random, 151_936, 0.05).iter().map(|x| x + 8.0).collect();
    check(&logits);
    check(&logits.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
    check(&logits.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>());
    assert_eq!(logprobs(&[0.0f32; 3], 3, 1).unwrap_err().kind(), ErrorKind::Sampling);
    assert_eq!(logprobs(&[0.0f32; 3], 0, 9).unwrap().1.len(), 3);
    assert!(logprobs(&[f32::NAN], 0, 1).is_err());
    assert_eq!(logprobs(&[0.0, f32::NEG_INFINITY], 1, 0).unwrap().0.logprob, f32::NEG_INFINITY);
}

#[test]
fn e18_each_row_draws_as_if_alone() {
    let mut random = Lcg(2);
    let rows: Vec<Vec<f32>> = (0..30).map(|_| row(&mut random, 100, 1.0)).collect();
    let sampler = |seed| {
        let stage = Repetition::new(1.1, Window::WHOLE).unwrap();
        Sampler::new(settings().repetition(stage).top_p(0.9).seed(seed).build().unwrap())
    };
    let alone = |seed| {
        let mut sampler = sampler(seed);
        rows.iter().map(|row| sampler.sample(row).unwrap()).collect::<Vec<_>>()
    };
    let mut batch: Vec<Sampler> = (0..5).map(sampler).collect();
    let mut together = vec![Vec::new(); 5];
    for row in &rows {
        // A neighbour that fails changes nothing.
        assert!(batch[4].clone().sample(&[f32::NAN; 100]).is_err());
        batch.iter_mut().zip(&mut together).for_each(|(sampler, out)| out.push(sampler.sample(row).unwrap()));
    }
    for (seed, together) in together.iter().enumerate() {
        assert_eq!(*together, alone(seed as u64));
    }
}

#[test]
fn history_begins_with_the_prompt_and_takes_in_what_was_chosen() {
    let stage = FrequencyPresence::new(0.0, 100.0, Window::WHOLE).unwrap();
    let mut sampler = Sampler::new(settings().temperature(0.0).frequency_presence(stage).build().unwrap());
    sampler.begin(&[0]);
    let logits = [4.0, 3.0, 2.0, 1.0];
    assert_eq!([1, 2, 3].map(|_| sampler.sample(&logits).unwrap()), [1, 2, 3]);
    sampler.begin(&[1]);
    sampler.push(0).unwrap();
    assert_eq!(sampler.sample(&logits).unwrap(), 2);
    assert_eq!(sampler.history(), [1, 0, 2]);
}
