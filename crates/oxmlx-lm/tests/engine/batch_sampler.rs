//! The sampler in MLX's operations against the one on the host: the same tokens can come, as often.

use oxmlx::{Array, Dtype};
use oxmlx_lm::sampling::{
    BatchSampler, DynamicTemperature, LogitBias, Mirostat, Order, Repetition, Rng, SamplingParamsBuilder, Suppression,
    Window, Xtc,
};
use oxmlx_lm::{ErrorKind, Sampler, SamplingParams};

fn row(seed: u64, size: usize, spread: f64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..size).map(|_| ((0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0) * spread).map(|x| x as f32).collect()
}

fn settings() -> Vec<SamplingParamsBuilder> {
    let b = SamplingParams::builder;
    vec![
        b(),
        b().temperature(0.6),
        b().top_k(12).temperature(1.4),
        b().top_p(0.8),
        b().min_p(0.1).temperature(0.8),
        b().top_k(30).top_p(0.9).min_p(0.02).temperature(1.3),
        b().top_k(1).temperature(5.0),
        b().top_p(1e-8),
        b().temperature(1e-40),
        b().temperature(0.0).top_k(5),
    ]
}

/// Draws of every setting from one row of logits, each batch with all settings in it.
fn draws(logits: &[f32], params: &[SamplingParams], count: usize, seed: u64) -> Vec<Vec<(u32, f64)>> {
    let row = Array::from_slice(logits, (1, logits.len() as i32)).unwrap();
    let rows = params.len() * count;
    let many: Vec<SamplingParams> = (0..rows).map(|i| params[i % params.len()].clone()).collect();
    let sampler = BatchSampler::of(&many).unwrap();
    let batch = oxmlx::ops::broadcast_to(&row, (rows as i32, logits.len() as i32)).unwrap();
    let mut rng = Rng::new(seed);
    let uniform: Vec<f64> = (0..rows).map(|_| rng.next_f64()).collect();
    let tokens = sampler.choose(&batch, &uniform).unwrap();
    assert_eq!((tokens.shape(), tokens.dtype()), (&[rows as i32][..], Dtype::Uint32));
    let mut out = vec![Vec::new(); params.len()];
    for (i, token) in tokens.to_vec::<u32>().unwrap().into_iter().enumerate() {
        out[i % params.len()].push((token, uniform[i]));
    }
    out
}

#[test]
fn device_draws_have_the_hosts_support_and_distribution() {
    const COUNT: usize = 4000;
    let logits = row(3, 60, 1.0);
    let params: Vec<SamplingParams> = settings().into_iter().map(|b| b.build().unwrap()).collect();
    for (params, drawn) in params.iter().zip(draws(&logits, &params, COUNT, 11)) {
        let shares = Sampler::new(params.clone()).distribution(&logits).unwrap();
        let mut counts = vec![0.0; logits.len()];
        drawn.iter().for_each(|(token, _)| counts[*token as usize] += 1.0);
        let inside: f64 = shares.iter().map(|c| counts[c.0 as usize]).sum();
        assert_eq!(inside, COUNT as f64, "{params:?}: only tokens that the filters leave");
        // The place of the random number among the shares laid end to end: what the host draws.
        let differ = drawn.iter().filter(|(token, place)| {
            let mut reached = 0.0;
            let host = shares.iter().find(|c| {
                reached += f64::from(c.1);
                reached > *place
            });
            host.is_some_and(|c| c.0 != *token)
        });
        let differ = differ.count();
        assert!(differ <= 4, "{params:?}: {differ} of {COUNT} are other tokens than the host's");
        let cells = shares.iter().filter(|c| f64::from(c.1) * COUNT as f64 >= 5.0);
        let (chi2, n) = cells.fold((0.0, 0.0), |(chi2, n), c| {
            let expected = f64::from(c.1) * COUNT as f64;
            (chi2 + (counts[c.0 as usize] - expected).powi(2) / expected, n + 1.0)
        });
        let df: f64 = f64::max(n - 1.0, 1.0);
        assert!(chi2 < df + 4.0 * (2.0 * df).sqrt(), "{params:?}: chi-square {chi2} for {df}");
    }
}

#[test]
fn e10_argmax_survives_on_the_device_in_every_precision() {
    let logits = row(8, 5000, 2.0);
    let wide = Array::from_slice(&logits, (1, 5000)).unwrap();
    for (dtype, top_p) in [(Dtype::Float32, 1e-8), (Dtype::Float16, 1e-5), (Dtype::Bfloat16, 1e-4)] {
        let narrow = wide.astype(dtype).unwrap();
        let values = narrow.astype(Dtype::Float32).unwrap().to_vec::<f32>().unwrap();
        let best = values.iter().copied().fold(f32::MIN, f32::max);
        let b = SamplingParams::builder;
        for params in [b().top_p(top_p), b().top_k(1).top_p(0.8).temperature(0.01), b().temperature(1e-5)] {
            let sampler = BatchSampler::of(&[params.build().unwrap()]).unwrap();
            for place in [0.0, 0.5, 1.0 - 1e-12] {
                let token = sampler.choose(&narrow, &[place]).unwrap().to_vec::<u32>().unwrap()[0];
                assert_eq!(values[token as usize], best, "{dtype:?}");
            }
        }
    }
}

#[test]
fn e18_a_row_of_a_batch_draws_as_if_alone() {
    let params: Vec<SamplingParams> = settings().into_iter().map(|b| b.build().unwrap()).collect();
    let vocab = 1000;
    let rows: Vec<Vec<f32>> = (0..params.len() as u64).map(|seed| row(seed, vocab, 1.5)).collect();
    let places: Vec<f64> = (0..params.len()).map(|i| (i as f64 + 0.5) / params.len() as f64).collect();
    let batch = Array::from_slice(&rows.concat(), (params.len() as i32, vocab as i32)).unwrap();
    let together = BatchSampler::of(&params).unwrap().choose(&batch, &places).unwrap().to_vec::<u32>().unwrap();
    for (i, params) in params.iter().enumerate() {
        let one = Array::from_slice(&rows[i], (1, vocab as i32)).unwrap();
        let sampler = BatchSampler::of(std::slice::from_ref(params)).unwrap();
        assert_eq!(sampler.choose(&one, &places[i..=i]).unwrap().to_vec::<u32>().unwrap(), together[i..=i], "{i}");
    }
}

#[test]
fn rows_that_ask_for_more_are_left_to_the_host() {
    let b = SamplingParams::builder;
    let host = [
        b().typical_p(0.9),
        b().top_n_sigma(1.0),
        b().xtc(Xtc::new(0.5, 0.1).unwrap()),
        b().mirostat(Mirostat::new(5.0, 0.1).unwrap()),
        b().dynamic_temperature(DynamicTemperature::new(0.5, 1.0).unwrap()),
        b().logit_bias(LogitBias::new([(1, 1.0)]).unwrap()),
        b().suppress(Suppression::new([1]).unwrap()),
        b().repetition(Repetition::new(1.1, Window::WHOLE).unwrap()),
        b().top_p(0.9).temperature(0.5).order(Order::temperature_first()),
    ];
    for params in host {
        let params = params.build().unwrap();
        assert!(BatchSampler::of(&[SamplingParams::greedy(), params.clone()]).is_none(), "{params:?}");
    }
    let sampler = BatchSampler::of(&[SamplingParams::greedy()]).unwrap();
    let logits = Array::zeros::<f32>((2, 4)).unwrap();
    assert_eq!(sampler.choose(&logits, &[0.5]).unwrap_err().kind(), ErrorKind::Sampling);
    assert_eq!(sampler.choose(&Array::zeros::<f32>(4).unwrap(), &[0.5]).unwrap_err().kind(), ErrorKind::Sampling);
}

#[test]
fn rows_that_can_not_be_drawn_from_are_told_and_their_neighbours_are_as_without() {
    let mut rows = vec![row(1, 50, 1.0); 4];
    rows[0][7] = f32::NAN;
    rows[1][3] = f32::INFINITY;
    rows[2] = vec![f32::NEG_INFINITY; 50];
    let params = vec![SamplingParams::builder().top_k(20).top_p(0.9).build().unwrap(); 4];
    let sampler = BatchSampler::of(&params).unwrap();
    let batch = Array::from_slice(&rows.concat(), (4, 50)).unwrap();
    let tokens = sampler.choose(&batch, &[0.5; 4]).unwrap().to_vec::<u32>().unwrap();
    let alone = BatchSampler::of(&params[..1]).unwrap();
    let last =
        alone.choose(&Array::from_slice(&rows[3], (1, 50)).unwrap(), &[0.5]).unwrap().to_vec::<u32>().unwrap()[0];
    assert_eq!(tokens, [u32::MAX, u32::MAX, u32::MAX, last]);
}
