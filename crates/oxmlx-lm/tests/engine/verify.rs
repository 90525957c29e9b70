//! Tiny checkpoints of each kind: logits and greedy tokens as mlx-lm has them.

use oxmlx::Array;
use oxmlx_lm::cache::{Cache, KvCache, RotatingKvCache};
use oxmlx_lm::verify::Reference;
use oxmlx_lm::{LanguageModel, Logits, ModelFiles, models};

use crate::support::fixture;

fn check(name: &str) {
    let folder = fixture("models").join(name);
    let files = ModelFiles::open(&folder).unwrap();
    let model = models::load(&files, &mut |_| ()).unwrap();
    let reference = Reference::open(folder.join("expected.safetensors")).unwrap();
    let difference = reference.compare(&*model).unwrap();
    assert!(difference.largest() <= 2e-4, "{name}: {difference:?}");
    assert_eq!(difference.token, None, "{name}");
}

macro_rules! same_as_mlx_lm {
    ($($name:ident)+) => {$(
        #[test]
        fn $name() {
            check(stringify!($name));
        }
    )+};
}

same_as_mlx_lm! {
    llama
    llama_untied_bias
    llama_rope3
    llama_traditional_rope
    llama_q4
    llama_q8
    mistral
    gemma3
    qwen3_moe
    qwen3_moe_q8
}

/// The logits of the last position after the prompt, in chunks, and after each of the tokens.
fn logits(model: &dyn LanguageModel, caches: &mut [Box<dyn Cache>], prompt: &[u32], chunk: usize) -> Vec<Vec<f32>> {
    let (head, tail) = prompt.split_at(20);
    let pieces = head.chunks(chunk).chain(tail.chunks(1));
    let pieces = pieces.map(|piece| {
        let tokens = Array::from_slice(piece, (1, piece.len() as i32)).unwrap();
        model.forward(&tokens, caches, Logits::Last).unwrap().to_vec::<f32>().unwrap()
    });
    pieces.collect()
}

#[test]
fn gemma3_gives_the_same_logits_from_rings_of_its_window() {
    let files = ModelFiles::open(fixture("models/gemma3")).unwrap();
    let model = models::load(&files, &mut |_| ()).unwrap();
    let windows: Vec<Option<usize>> = model.layer_caches().iter().map(|layer| layer.window).collect();
    assert_eq!(windows, [Some(8), Some(8), Some(8), Some(8), Some(8), None]);
    let prompt: Vec<u32> = (0..40).map(|i| i * 7 % 320).collect();
    let wanted = logits(&*model, &mut model.make_caches(), &prompt, 20);
    for chunk in [1, 3, 20] {
        let rings = windows.iter().map(|window| match window {
            Some(window) => Box::new(RotatingKvCache::new(*window).unwrap()) as Box<dyn Cache>,
            None => Box::new(KvCache::new()),
        });
        let got = logits(&*model, &mut rings.collect::<Vec<_>>(), &prompt, chunk);
        // The last piece of the prompt and the single tokens: earlier pieces end elsewhere.
        for (got, wanted) in got.iter().rev().zip(wanted.iter().rev()) {
            assert!(got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4), "{chunk}");
        }
    }
}

/// The fixture with its stacks of experts taken apart, as the model's authors publish it.
#[test]
fn experts_are_read_one_by_one_too() {
    use safetensors::SafeTensors;
    use safetensors::tensor::TensorView;
    let folder = fixture("models/qwen3_moe");
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut apart = Vec::new();
    for (name, tensor) in file.tensors() {
        let Some((module, part)) = name.split_once("switch_mlp.") else {
            apart.push((name, tensor));
            continue;
        };
        let shape = tensor.shape();
        for (n, data) in file.tensor(&name).unwrap().data().chunks(tensor.data().len() / shape[0]).enumerate() {
            let view = TensorView::new(tensor.dtype(), shape[1..].to_vec(), data).unwrap();
            apart.push((format!("{module}experts.{n}.{part}"), view));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("config.json"), dir.path().join("config.json")).unwrap();
    std::fs::write(dir.path().join("model.safetensors"), safetensors::serialize(apart, None).unwrap()).unwrap();
    let model = models::load(&ModelFiles::open(dir.path()).unwrap(), &mut |_| ()).unwrap();
    let difference = Reference::open(folder.join("expected.safetensors")).unwrap().compare(&*model).unwrap();
    assert!(difference.largest() <= 2e-4 && difference.token.is_none(), "{difference:?}");
}
