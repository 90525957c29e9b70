//! Prompt caches in files: mlx-lm's are read, ours are such as mlx-lm writes, and a sequence goes on from its own.

use std::collections::BTreeSet;

use oxmlx::quantize::Affine;
use oxmlx::{Array, io};
use oxmlx_lm::ErrorKind;
use oxmlx_lm::cache::saved::{load, save};
use oxmlx_lm::cache::{Cache, ChunkedKvCache, KvCache, Positions, QuantizedKvCache, RotatingKvCache};
use oxmlx_lm::engine::{CachePolicy, CachePool, Engine, PrefillOptions, Prefix, SequenceSpec};

use super::batch::{decode, feed, load as model};
use super::python;
use crate::support::fixture;

/// Rows whose values are their position plus one, as the fixtures have them.
fn numbered(from: usize, tokens: usize) -> Array {
    let values: Vec<f32> = (from..from + tokens).flat_map(|n| [n as f32 + 1.0; 32]).collect();
    Array::from_slice(&values, (1, 1, tokens as i32, 32)).unwrap()
}

fn fed(mut cache: Box<dyn Cache>, pieces: &[usize]) -> Box<dyn Cache> {
    for &piece in pieces {
        let rows = numbered(cache.offset(), piece);
        cache.append(&rows, &rows).unwrap();
    }
    cache
}

/// What the next token may see, every key checked to be that of its position.
fn next_sees(cache: &mut dyn Cache) -> BTreeSet<usize> {
    let rows = numbered(cache.offset(), 1);
    let visible = cache.append(&rows, &rows).unwrap();
    let positions: Vec<usize> = match visible.positions {
        Positions::Range(range) => range.collect(),
        Positions::List(list) => list,
    };
    let query = cache.offset() - 1;
    let seen = |position: usize| {
        position <= query && (position < cache.keep() || cache.window().is_none_or(|w| position + w > query))
    };
    let shown = [visible.keys, visible.values].map(|shown| shown.to_vec::<f32>().unwrap());
    positions
        .iter()
        .enumerate()
        .filter(|(_, position)| seen(**position))
        .map(|(i, &position)| {
            assert!(shown.iter().all(|rows| (rows[i * 32 + 5] - position as f32 - 1.0).abs() < 0.1), "{position}");
            position
        })
        .collect()
}

type Make = fn() -> Box<dyn Cache>;

/// The fixtures' caches: name, class, how ours is made, and what the next token sees.
fn kinds() -> [(&'static str, Make, &'static [usize], BTreeSet<usize>); 6] {
    let ring: Make = || Box::new(RotatingKvCache::new(8).unwrap().keeping(2).unwrap().with_slack(1).unwrap());
    let quantized: Make = || Box::new(QuantizedKvCache::new(Affine::new(32, 8).unwrap()));
    let window = || (0..2).chain(16..22).collect();
    [
        ("plain", || Box::new(KvCache::new()), &[5, 1, 1], (0..8).collect()),
        ("quantized", quantized, &[5, 1, 1], (0..8).collect()),
        ("rotating_short", ring, &[5, 1], (0..7).collect()),
        ("rotating_prefilled", ring, &[21], window()),
        ("rotating_decoded", ring, &[5, 16], window()),
        ("chunked", || Box::new(ChunkedKvCache::new(4).unwrap()), &[6, 5, 1], (8..13).collect()),
    ]
}

#[test]
fn caches_that_mlx_lm_saved_go_on_as_if_they_had_been_here() {
    for (name, _, pieces, sees) in kinds() {
        let (layers, metadata) = load(&fixture(&format!("prompt_caches/{name}.safetensors"))).unwrap();
        assert_eq!(metadata["note"], "by mlx-lm");
        assert_eq!(layers.len(), 2);
        for layer in layers {
            let mut cache = layer.open().unwrap();
            assert_eq!(cache.offset(), pieces.iter().sum::<usize>(), "{name}");
            assert_eq!(next_sees(cache.as_mut()), sees, "{name}");
            (0..20).for_each(|_| drop(next_sees(cache.as_mut())));
        }
    }
}

#[test]
fn caches_are_saved_as_mlx_lm_saves_them() {
    let folder = tempfile::tempdir().unwrap();
    for (name, make, pieces, sees) in kinds() {
        let path = folder.path().join(name);
        let path = path.with_extension("safetensors");
        let saved = fed(make(), pieces).saved().unwrap().unwrap();
        save(&path, &[saved.clone(), saved], &[("note", "by mlx-lm")]).unwrap();
        let (ours, theirs) = (
            io::load_safetensors(&path).unwrap(),
            io::load_safetensors(fixture(&format!("prompt_caches/{name}.safetensors"))).unwrap(),
        );
        let mut notes = [ours.metadata, theirs.metadata];
        notes.iter_mut().for_each(|notes| notes.sort());
        assert_eq!(notes[0], notes[1], "{name}");
        // Buffers have as many rows as each likes; the rest of a shape, the dtypes and the names are one.
        let facts = |arrays: &[(String, Array)]| -> Vec<_> {
            let without_rows =
                |a: &Array| a.shape().iter().enumerate().filter(|(i, _)| *i != 2).map(|(_, n)| *n).collect::<Vec<_>>();
            arrays.iter().map(|(name, a)| (name.clone(), a.dtype(), without_rows(a))).collect()
        };
        assert_eq!(facts(&ours.arrays), facts(&theirs.arrays), "{name}");
        let mut again = load(&path).unwrap().0.remove(1).open().unwrap();
        assert_eq!(next_sees(again.as_mut()), sees, "{name}");
    }
}

/// mlx-lm loads each file, appends a row and looks at which rows the cache holds.
#[test]
fn mlx_lm_goes_on_with_caches_that_were_saved_here() {
    if python::is_left_out() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec![fixture("../oracle/make_prompt_caches.py"), "--check".into()];
    for (name, make, pieces, _) in kinds() {
        let path = folder.path().join(name).with_extension("safetensors");
        let saved = fed(make(), pieces).saved().unwrap().unwrap();
        save(&path, &[saved.clone(), saved], &[("note", "by oxmlx")]).unwrap();
        arguments.push(path);
    }
    let printed = python::run_with(&arguments, folder.path());
    assert_eq!(printed.lines().count(), 2 * kinds().len(), "{printed}");
}

#[test]
fn a_sequence_goes_on_from_the_file_of_another_token_for_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefix.safetensors");
    let model = model("llama");
    let prompt: Vec<u32> = (0..40).map(|t| t * 7 % 300).collect();
    let quantized = CachePolicy::Rotating { max_size: 24, keep: 4 };
    for policy in [CachePolicy::Plain, quantized] {
        let mut engine = Engine::with_pool(&model, CachePool::new(policy));
        let cold = engine.open(SequenceSpec::new(10)).unwrap();
        let first = feed(&mut engine, cold, &prompt, PrefillOptions::default().boundary(Some(30)));
        let expected = decode(&mut engine, &[cold], vec![first]);

        let donor = engine.open(SequenceSpec::new(0)).unwrap();
        assert_eq!(engine.save_prefix(donor, &path, &[]).unwrap_err().kind(), ErrorKind::Unsupported);
        feed(&mut engine, donor, &prompt[..30], PrefillOptions::default());
        engine.save_prefix(donor, &path, &[("model", "tiny")]).unwrap();
        let prefix = Prefix::load(&path, None).unwrap();
        assert_eq!(prefix.tokens(), &prompt[..30]);
        let warm = engine.open(SequenceSpec::new(10)).unwrap();
        assert_eq!(engine.adopt(warm, &prefix, None).unwrap(), 30);
        let first = feed(&mut engine, warm, &prompt, PrefillOptions::default());
        assert_eq!(decode(&mut engine, &[warm], vec![first]), expected);
    }
    // A file of mlx-lm's does not know its tokens.
    let theirs = fixture("prompt_caches/plain.safetensors");
    assert_eq!(Prefix::load(&theirs, None).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(Prefix::load(&theirs, Some(&[1, 2, 3])).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(Prefix::load(&theirs, Some(&[1; 7])).unwrap().layers().len(), 2);
    let weights = fixture("models/llama/model.safetensors");
    assert_eq!(Prefix::load(weights, Some(&[1])).unwrap_err().kind(), ErrorKind::Format);
}
