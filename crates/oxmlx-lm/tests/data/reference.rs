//! Sampling by its definitions: slow, in double precision, everything sorted.

use std::collections::BTreeMap;

use crate::random::Lcg;

/// Tokens with their logits, in the order of ids.
pub(crate) type List = Vec<(u32, f64)>;

pub(crate) fn list(logits: &[f32]) -> List {
    (0u32..).zip(logits.iter().map(|&x| f64::from(x))).filter(|c| c.1 > f64::NEG_INFINITY).collect()
}

pub(crate) fn shares(list: &List) -> Vec<f64> {
    let largest = list.iter().fold(f64::NEG_INFINITY, |a, c| a.max(c.1));
    let weights: Vec<f64> = list.iter().map(|c| (c.1 - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

/// Keeps the places of `order` that come first until their shares reach `p`.
fn keep_share(list: &mut List, order: &[usize], p: f64) {
    let shares = shares(list);
    let (mut reached, mut kept) = (0.0, Vec::new());
    for &place in order {
        kept.push(list[place]);
        reached += shares[place];
        if reached >= p {
            break;
        }
    }
    kept.sort_by_key(|c| c.0);
    *list = kept;
}

fn by_rank(list: &List) -> Vec<usize> {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by(|&a, &b| list[b].1.total_cmp(&list[a].1).then(list[a].0.cmp(&list[b].0)));
    order
}

pub(crate) fn top_k(list: &mut List, k: usize) {
    let mut kept: List = by_rank(list).into_iter().take(k).map(|i| list[i]).collect();
    kept.sort_by_key(|c| c.0);
    *list = kept;
}

pub(crate) fn top_p(list: &mut List, p: f64) {
    let order = by_rank(list);
    keep_share(list, &order, p);
}

pub(crate) fn typical_p(list: &mut List, p: f64) {
    let shares = shares(list);
    let entropy: f64 = shares.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
    let mut order: Vec<usize> = (0..list.len()).filter(|&i| shares[i] > 0.0).collect();
    let distance = |i: usize| (-shares[i].ln() - entropy).abs();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(list[a].0.cmp(&list[b].0)));
    keep_share(list, &order, p);
}

pub(crate) fn min_p(list: &mut List, p: f64) {
    let shares = shares(list);
    let best = shares.iter().copied().fold(0.0, f64::max);
    *list = list.iter().zip(&shares).filter(|(_, s)| **s >= p * best).map(|(c, _)| *c).collect();
}

pub(crate) fn top_n_sigma(list: &mut List, n: f64) {
    let count = list.len() as f64;
    let mean = list.iter().map(|c| c.1).sum::<f64>() / count;
    let deviation = (list.iter().map(|c| (c.1 - mean).powi(2)).sum::<f64>() / count).sqrt();
    let bar = list.iter().fold(f64::NEG_INFINITY, |a, c| a.max(c.1)) - n * deviation;
    list.retain(|c| c.1 >= bar);
}

pub(crate) fn xtc(list: &mut List, threshold: f64, special: &[u32]) {
    let shares = shares(list);
    let good: Vec<usize> = by_rank(list).into_iter().filter(|&i| shares[i] >= threshold).collect();
    let Some((_, out)) = good.split_last() else { return };
    let out: Vec<u32> = out.iter().map(|&i| list[i].0).filter(|id| !special.contains(id)).collect();
    list.retain(|c| !out.contains(&c.0));
}

pub(crate) fn heat(list: &mut List, temperature: f64) {
    list.iter_mut().for_each(|c| c.1 /= temperature);
}

pub(crate) fn dynamic_heat(list: &mut List, t: f64, range: f64, exponent: f64) {
    let shares = shares(list);
    let entropy: f64 = shares.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
    let most = (list.len() as f64).ln();
    let (low, high) = ((t - range).max(0.0), t + range);
    heat(list, low + (high - low) * (entropy / most).powf(exponent));
}

pub(crate) fn mirostat(list: &mut List, bar: f64) {
    let shares = shares(list);
    let best = shares.iter().copied().fold(0.0, f64::max);
    *list = list.iter().zip(&shares).filter(|(_, s)| -s.log2() <= bar || **s == best).map(|(c, _)| *c).collect();
}

pub(crate) fn repetition(list: &mut List, window: &[u32], penalty: f64) {
    for c in list.iter_mut().filter(|c| window.contains(&c.0)) {
        c.1 = if c.1 > 0.0 { c.1 / penalty } else { c.1 * penalty };
    }
}

pub(crate) fn frequency_presence(list: &mut List, window: &[u32], frequency: f64, presence: f64) {
    for c in list {
        let count = window.iter().filter(|&&t| t == c.0).count();
        c.1 -= if count > 0 { count as f64 * frequency + presence } else { 0.0 };
    }
}

/// As the text-generation-webui has it: for every place where the last token stood before, how far back the texts agree.
pub(crate) fn dry(list: &mut List, window: &[u32], [multiplier, base]: [f64; 2], allowed: usize, breakers: &[u32]) {
    let Some(last) = window.last().filter(|t| !breakers.contains(t)) else { return };
    let mut longest = BTreeMap::<u32, usize>::new();
    for i in (0..window.len() - 1).filter(|&i| window[i] == *last) {
        let next = window[i + 1];
        if breakers.contains(&next) {
            continue;
        }
        let mut length = 1;
        while i >= length {
            let back = window[window.len() - 1 - length];
            if window[i - length] != back || breakers.contains(&back) {
                break;
            }
            length += 1;
        }
        let known = longest.entry(next).or_default();
        *known = length.max(*known);
    }
    for c in list {
        if let Some(&length) = longest.get(&c.0).filter(|length| **length >= allowed) {
            c.1 -= multiplier * base.powi((length - allowed) as i32);
        }
    }
}

/// A row of logits, normally distributed, each from twelve uniform numbers.
pub(crate) fn row(random: &mut Lcg, size: usize, spread: f64) -> Vec<f32> {
    let mut uniform = || f64::from(random.next()) / f64::from(1u32 << 31);
    (0..size).map(|_| ((0..12).map(|_| uniform()).sum::<f64>() - 6.0) * spread).map(|x| x as f32).collect()
}
