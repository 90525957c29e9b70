//! Sampling against a slow, obvious reference, and its draws against the distribution.

use oxmlx_lm::{ErrorKind, Sampler, SamplingParams};

use crate::random::Lcg;
use crate::reference::row;

#[derive(Clone, Copy, Debug)]
struct Setting {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
}

impl Setting {
    fn sampler(self, seed: u64) -> Sampler {
        let params = SamplingParams::builder()
            .temperature(self.temperature)
            .top_k(self.top_k)
            .top_p(self.top_p)
            .min_p(self.min_p)
            .seed(seed)
            .build();
        Sampler::new(params.unwrap())
    }

    /// The definition, in double precision: sort all, filter one after the other, then heat.
    fn reference(self, logits: &[f32]) -> Vec<(u32, f64)> {
        let mut list: Vec<(u32, f64)> = (0u32..).zip(logits.iter().map(|&x| f64::from(x))).collect();
        list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if self.top_k > 0 {
            list.truncate(self.top_k);
        }
        let largest = list[0].1;
        let weight = |x: f64| (x - largest).exp();
        if self.top_p < 1.0 {
            let total: f64 = list.iter().map(|&(_, x)| weight(x)).sum();
            let mut reached = 0.0;
            let enough = list.iter().position(|&(_, x)| {
                reached += weight(x) / total;
                reached >= f64::from(self.top_p)
            });
            list.truncate(enough.map_or(list.len(), |i| i + 1));
        }
        list.retain(|&(_, x)| weight(x) >= f64::from(self.min_p));
        let heated = |x: f64| ((x - largest) / f64::from(self.temperature)).exp();
        let total: f64 = list.iter().map(|&(_, x)| heated(x)).sum();
        let mut out: Vec<(u32, f64)> = list.iter().map(|&(id, x)| (id, heated(x) / total)).collect();
        out.sort_by_key(|c| c.0);
        out
    }
}

fn settings() -> Vec<Setting> {
    let mut all = Vec::new();
    for temperature in [0.5, 1.0, 2.0] {
        for top_k in [0, 1, 7, 40, 1000] {
            for top_p in [1.0, 0.999, 0.9, 0.3] {
                for min_p in [0.0, 0.02, 0.5] {
                    all.push(Setting { temperature, top_k, top_p, min_p });
                }
            }
        }
    }
    all
}

#[test]
fn e11_the_chain_keeps_and_weighs_tokens_as_the_definition_says() {
    let mut random = Lcg(21);
    let sizes = [(50, 3.0), (50, 0.1), (32_769, 2.5), (151_936, 3.0)];
    for (size, spread) in sizes {
        let logits = row(&mut random, size, spread);
        for (i, setting) in settings().into_iter().enumerate() {
            // The reference sorts: few settings at the large sizes.
            if size > 1000 && i % 11 != 0 {
                continue;
            }
            let got = setting.sampler(1).distribution(&logits).unwrap();
            let wanted = setting.reference(&logits);
            let shares: f64 = got.iter().map(|&(_, p)| f64::from(p)).sum();
            assert!((shares - 1.0).abs() < 1e-5, "{setting:?}");
            // A token right at a bar may fall to either side by rounding; it is the least probable then.
            assert!(got.len().abs_diff(wanted.len()) <= 1, "{setting:?}: {} for {}", got.len(), wanted.len());
            if got.len() == wanted.len() {
                for (&(id, p), &(wanted_id, wanted_p)) in got.iter().zip(&wanted) {
                    assert_eq!(id, wanted_id, "{setting:?}");
                    assert!(
                        (f64::from(p) - wanted_p).abs() <= 2e-6 * wanted_p + 1e-12,
                        "{setting:?}: {p} for {wanted_p}"
                    );
                }
            }
        }
    }
}

#[test]
fn equal_logits_are_kept_by_lower_id() {
    let logits = [1.0, 2.0, 2.0, 1.0, 2.0, -0.0, 0.0];
    let kept = |top_k, top_p| {
        let setting = Setting { temperature: 1.0, top_k, top_p, min_p: 0.0 };
        setting.sampler(1).distribution(&logits).unwrap().iter().map(|c| c.0).collect::<Vec<_>>()
    };
    assert_eq!(kept(2, 1.0), [1, 2]);
    assert_eq!(kept(4, 1.0), [0, 1, 2, 4]);
    assert_eq!(kept(6, 1.0), [0, 1, 2, 3, 4, 5]);
    assert_eq!(kept(3, 0.5), [1, 2]);
    let many = vec![0.5; 1000];
    let setting = Setting { temperature: 1.0, top_k: 100, top_p: 0.5, min_p: 1.0 };
    let kept: Vec<u32> = setting.sampler(1).distribution(&many).unwrap().iter().map(|c| c.0).collect();
    assert_eq!(kept, (0..50).collect::<Vec<_>>());
}

#[test]
fn e10_the_most_probable_token_survives_every_filter() {
    let mut random = Lcg(8);
    let logits = row(&mut random, 5000, 2.0);
    let best = (0..5000).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32;
    for setting in [
        Setting { temperature: 0.01, top_k: 1, top_p: 0.8, min_p: 0.0 },
        Setting { temperature: 1.0, top_k: 0, top_p: 1e-8, min_p: 0.0 },
        Setting { temperature: 5.0, top_k: 0, top_p: 1e-5, min_p: 1.0 },
        Setting { temperature: 5.0, top_k: 9, top_p: 1e-4, min_p: 1.0 },
    ] {
        let mut sampler = setting.sampler(2);
        assert!((0..50).all(|_| sampler.sample(&logits).unwrap() == best), "{setting:?}");
    }
}

#[test]
fn e12_tiny_temperatures_give_the_argmax_and_huge_ones_an_even_draw() {
    let logits = [0.0, 3.0, 2.999, f32::NEG_INFINITY, -1e30];
    for temperature in [1e-40, 1e-5, 0.0] {
        let mut sampler = Setting { temperature, top_k: 0, top_p: 1.0, min_p: 0.0 }.sampler(3);
        assert!((0..50).all(|_| sampler.sample(&logits).unwrap() == 1), "{temperature}");
    }
    let even =
        Setting { temperature: 1e30, top_k: 0, top_p: 1.0, min_p: 0.0 }.sampler(3).distribution(&logits[..4]).unwrap();
    assert_eq!(even.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(even.iter().all(|c| (c.1 - 1.0 / 3.0).abs() < 1e-6), "{even:?}");
}

#[test]
fn e13_the_temperature_does_not_change_which_tokens_are_possible() {
    let mut random = Lcg(4);
    let logits = row(&mut random, 2000, 2.0);
    for (top_p, min_p) in [(0.8, 0.0), (1.0, 0.05), (0.9, 0.02)] {
        let support = |temperature| {
            let mut sampler = Setting { temperature, top_k: 0, top_p, min_p }.sampler(1);
            sampler.distribution(&logits).unwrap().iter().map(|c| c.0).collect::<Vec<_>>()
        };
        assert_eq!(support(0.5), support(2.0));
    }
}

#[test]
fn draws_follow_the_distribution() {
    const DRAWS: usize = 100_000;
    let mut random = Lcg(33);
    let logits = row(&mut random, 60, 1.0);
    for (seed, setting) in [
        (1, Setting { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }),
        (2, Setting { temperature: 0.7, top_k: 20, top_p: 0.95, min_p: 0.02 }),
        (3, Setting { temperature: 1.8, top_k: 0, top_p: 0.9, min_p: 0.0 }),
    ] {
        let wanted = setting.reference(&logits);
        let mut sampler = setting.sampler(seed);
        let mut counts = vec![0usize; logits.len()];
        for _ in 0..DRAWS {
            counts[sampler.sample(&logits).unwrap() as usize] += 1;
        }
        let drawn: usize = wanted.iter().map(|&(id, _)| counts[id as usize]).sum();
        assert_eq!(drawn, DRAWS, "only tokens that the filters leave");
        let chi2: f64 = wanted
            .iter()
            .map(|&(id, p)| {
                let expected = p * DRAWS as f64;
                (counts[id as usize] as f64 - expected).powi(2) / expected
            })
            .sum();
        // Mean df, variance 2 df: four standard deviations over the mean, and not suspiciously exact either.
        let df = (wanted.len() - 1) as f64;
        assert!((chi2 - df).abs() < 4.0 * (2.0 * df).sqrt(), "{setting:?}: chi-square {chi2} for {df} degrees");
    }
}

#[test]
fn a_seed_repeats_its_draws_and_others_differ() {
    let mut random = Lcg(9);
    let logits = row(&mut random, 1000, 1.0);
    let draws = |seed| {
        let mut sampler = Setting { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }.sampler(seed);
        (0..40).map(|_| sampler.sample(&logits).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(draws(5), draws(5));
    assert_ne!(draws(5), draws(6));
    let unseeded = || Sampler::new(SamplingParams::builder().build().unwrap());
    let sampler = unseeded();
    assert_ne!(sampler.seed(), unseeded().seed());
    assert_eq!(Setting { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }.sampler(7).seed(), 7);
}

#[test]
fn greedy_takes_the_first_of_the_largest_wherever_it_stands() {
    let mut random = Lcg(12);
    for size in [1, 2, 15, 16, 17, 33, 1000] {
        for _ in 0..50 {
            let logits: Vec<f32> = (0..size).map(|_| random.below(7) as f32 - 3.0).collect();
            let mut best = 0;
            for i in 0..size {
                if logits[i] > logits[best] {
                    best = i;
                }
            }
            let mut greedy = Sampler::new(SamplingParams::greedy());
            assert_eq!(greedy.sample(&logits).unwrap() as usize, best);
            assert_eq!(greedy.distribution(&logits).unwrap(), [(best as u32, 1.0)]);
        }
    }
}

#[test]
fn rows_that_can_not_be_sampled_from_are_errors() {
    let mut samplers =
        [Sampler::new(SamplingParams::greedy()), Sampler::new(SamplingParams::builder().build().unwrap())];
    for sampler in &mut samplers {
        for at in [0, 15, 16, 20] {
            for bad in [f32::NAN, f32::INFINITY] {
                let mut logits = vec![0.0; 21];
                logits[at] = bad;
                assert_eq!(sampler.sample(&logits).unwrap_err().kind(), ErrorKind::Sampling, "{bad} at {at}");
            }
        }
        assert!(sampler.sample(&[]).is_err());
        assert!(sampler.sample(&[f32::NEG_INFINITY; 40]).unwrap_err().to_string().contains("ruled out"));
        assert_eq!(sampler.sample(&[f32::NEG_INFINITY, -3e38]).unwrap(), 1);
    }
}
