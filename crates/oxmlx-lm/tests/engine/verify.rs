//! Tiny checkpoints of each kind: logits and greedy tokens as mlx-lm has them.

use oxmlx_lm::verify::Reference;
use oxmlx_lm::{ModelFiles, models};

use crate::support::fixture;

fn check(name: &str, tolerance: f32) {
    let folder = fixture("models").join(name);
    let files = ModelFiles::open(&folder).unwrap();
    let model = models::load(&files, &mut |_| ()).unwrap();
    let reference = Reference::open(folder.join("expected.safetensors")).unwrap();
    let difference = reference.compare(&*model).unwrap();
    assert!(difference.largest() <= tolerance, "{name}: {difference:?}");
    assert_eq!(difference.token, None, "{name}");
}

macro_rules! same_as_mlx_lm {
    ($($name:ident: $tolerance:expr;)+) => {$(
        #[test]
        fn $name() {
            check(stringify!($name), $tolerance);
        }
    )+};
}

same_as_mlx_lm! {
    llama: 2e-4;
    llama_untied_bias: 2e-4;
    llama_rope3: 2e-4;
    llama_traditional_rope: 2e-4;
    llama_q4: 2e-3;
    llama_q8: 2e-3;
    mistral: 2e-4;
}
