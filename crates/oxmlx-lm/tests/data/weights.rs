//! Checkpoints: the same bytes as the `safetensors` library gives, and errors that name file and tensor.

use std::fs::write;
use std::path::Path;

use half::f16;
use oxmlx_lm::weights::{Checkpoint, Dtype, Matrix, TensorData};
use oxmlx_lm::{ErrorKind, ModelFiles};
use serde_json::{Value, json};

use crate::gguf_writer::{Val, Writer};
use crate::random::Lcg;
use crate::support::{fixture, smollm2, smollm2_is_left_out};

/// A SafeTensors file with this header and so many bytes of data.
fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..data).map(|i| i as u8));
    file
}

fn tensor(dtype: &str, shape: &[u64], from: u64, to: u64) -> Value {
    json!({"dtype": dtype, "shape": shape, "data_offsets": [from, to]})
}

fn open(bytes: &[u8]) -> Result<Checkpoint, oxmlx_lm::Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.safetensors");
    write(&path, bytes).unwrap();
    Checkpoint::open(path)
}

#[test]
fn fixtures_hold_what_the_safetensors_library_reads() {
    for name in ["llama", "llama_q4", "mistral", "gemma3"] {
        let folder = fixture(&format!("models/{name}"));
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
        let library = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(checkpoint.names().len(), library.len());
        for (name, view) in library.tensors() {
            let tensor = checkpoint.tensor(&name).unwrap();
            assert_eq!((tensor.shape(), &**tensor.data()), (view.shape(), view.data()), "{name}");
            assert_eq!(tensor.dtype().name(), view.dtype().to_string());
            assert!(matches!(tensor.data(), TensorData::Mapped { .. }));
        }
        assert!(checkpoint.warnings().is_empty());
    }
}

#[test]
fn f01_f02_damaged_safetensors_are_errors_that_name_the_tensor() {
    let header = |pairs: &[(&str, Value)]| {
        let members: Vec<String> = pairs.iter().map(|(n, v)| format!("{}: {v}", json!(n))).collect();
        format!("{{{}}}", members.join(", "))
    };
    let a = || ("a", tensor("F32", &[2], 0, 8));
    let cases: [(Option<&str>, &str, Vec<u8>); 15] = [
        (Some("big"), "4", safetensors(&header(&[("big", tensor("F32", &[1000, 1000], 0, 4))]), 4)),
        (Some("b"), "overlap", safetensors(&header(&[a(), ("b", tensor("F32", &[2], 4, 12))]), 12)),
        (Some("b"), "belong to no tensor", safetensors(&header(&[a(), ("b", tensor("F32", &[1], 12, 16))]), 16)),
        (Some("a"), "twice", safetensors(&header(&[a(), a()]), 8)),
        (Some("a"), "truncated", safetensors(&header(&[a()]), 7)),
        (None, "belong to none", safetensors(&header(&[a()]), 9)),
        (Some("a"), "too large", safetensors(&header(&[("a", tensor("F32", &[1 << 40, 1 << 40], 0, 8))]), 8)),
        (Some("a"), "offsets", safetensors(&header(&[("a", tensor("F32", &[2], 8, 0))]), 8)),
        (Some("a"), "wants dtype", safetensors(&header(&[("a", json!({"dtype": "F32", "shape": [2]}))]), 8)),
        (
            Some("a"),
            "wants dtype",
            safetensors(&header(&[("a", json!({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}))]), 8),
        ),
        (None, "4000 bytes, 40 are there", [&4000u64.to_le_bytes()[..], &[b'{'; 40]].concat()),
        (None, "at most 100000000", [&200_000_000u64.to_le_bytes()[..], &[b'{'; 40]].concat()),
        (None, "not utf-8", [&2u64.to_le_bytes()[..], b"\xff\xfe"].concat()),
        (None, "not the json", safetensors("[1, 2]", 0)),
        (None, "truncated", b"short".to_vec()),
    ];
    for (name, says, bytes) in cases {
        let error = open(&bytes).unwrap_err();
        assert_eq!((error.kind(), error.tensor()), (ErrorKind::Format, name), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.path().unwrap().ends_with("x.safetensors"));
    }
}

#[test]
fn whatever_the_safetensors_library_refuses_is_refused() {
    let (sound, _) = (
        safetensors(r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 8),
        (),
    );
    assert!(open(&sound).is_ok());
    let (mut both, mut ours) = (0, 0);
    let mut random = Lcg(3);
    for _ in 0..3000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = if random.below(2) == 0 { random.next() as u8 } else { b"0129,:{}[]\"- "[random.below(13)] };
        }
        match (safetensors::SafeTensors::deserialize(&bytes).is_err(), open(&bytes).is_err()) {
            (true, false) => panic!("accepted {}", String::from_utf8_lossy(&bytes)),
            (true, true) => both += 1,
            (false, true) => ours += 1,
            (false, false) => {}
        }
    }
    assert!(both > 1000 && ours < 20, "refused by both {both}, by us alone {ours}");
}

#[test]
fn f04_every_safetensors_dtype_is_read() {
    for &dtype in Dtype::ALL {
        let bytes = 8 * dtype.bits() / 8;
        let header = json!({"t": tensor(dtype.name(), &[2, 4], 0, bytes as u64)}).to_string();
        let checkpoint = open(&safetensors(&header, bytes)).unwrap();
        let tensor = checkpoint.tensor("t").unwrap();
        assert_eq!((tensor.dtype(), tensor.shape(), tensor.data().len()), (dtype, &[2, 4][..], bytes));
        if !dtype.is_weight() {
            let error = checkpoint.matrix("t", 2, 4).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Weights);
            let error = checkpoint.float("t", &[2, 4]).unwrap_err();
            assert!(error.to_string().contains(dtype.name()) && error.tensor() == Some("t"), "{error}");
        }
    }
    let header = json!({"t": tensor("F9", &[2], 0, 2)}).to_string();
    let error = open(&safetensors(&header, 2)).unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::Unsupported, Some("t")));
    assert!(error.to_string().contains("F9"));
}

/// Two shards with tensors `a` and `b`, and an index of what `map` says.
fn sharded(map: Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let header = json!({name: tensor("U8", &[4], 0, 4)}).to_string();
        write(dir.path().join(format!("{name}.safetensors")), safetensors(&header, 4)).unwrap();
    }
    write(dir.path().join("model.safetensors.index.json"), json!({"metadata": {}, "weight_map": map}).to_string())
        .unwrap();
    dir
}

#[test]
fn f05_an_index_joins_shards_and_others_are_left_out_with_a_warning() {
    let dir = sharded(json!({"a": "a.safetensors", "b": "b.safetensors"}));
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["a", "b"]);
    assert!(checkpoint.warnings().is_empty());
    let dir = sharded(json!({"a": "a.safetensors"}));
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["a"]);
    assert_eq!(checkpoint.warnings().len(), 1);
    assert!(checkpoint.warnings()[0].contains("b.safetensors"), "{:?}", checkpoint.warnings());
}

#[test]
fn f05_missing_shards_broken_links_and_wrong_indexes_are_errors() {
    let error = |dir: &Path| Checkpoint::open(dir).unwrap_err();
    let dir = sharded(json!({"a": "a.safetensors", "c": "c.safetensors"}));
    assert_eq!(error(dir.path()).kind(), ErrorKind::Io);
    assert!(error(dir.path()).to_string().contains("c.safetensors"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("c.safetensors")).unwrap();
        assert!(error(dir.path()).to_string().contains("broken symbolic link"));
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("model.safetensors")).unwrap();
        assert!(error(dir.path()).to_string().contains("broken symbolic link"));
    }
    let lost = sharded(json!({"a": "a.safetensors", "lost": "b.safetensors"}));
    assert_eq!((error(lost.path()).kind(), error(lost.path()).tensor()), (ErrorKind::Format, Some("lost")));
    for bad in [
        json!({"a": "../a.safetensors"}),
        json!({"a": "/etc/passwd"}),
        json!({"a": ".."}),
        json!({}),
        json!({"a": 1}),
        json!(3),
    ] {
        assert_eq!(error(sharded(bad.clone()).path()).kind(), ErrorKind::Format, "{bad}");
    }
    assert_eq!(error(tempfile::tempdir().unwrap().path()).kind(), ErrorKind::Io);
}

#[test]
fn unindexed_shards_are_joined_and_a_name_in_two_is_an_error() {
    let dir = sharded(json!({}));
    std::fs::remove_file(dir.path().join("model.safetensors.index.json")).unwrap();
    let rename = |from: &str, to: &str| std::fs::copy(dir.path().join(from), dir.path().join(to)).unwrap();
    rename("a.safetensors", "model-00001-of-00002.safetensors");
    rename("b.safetensors", "model-00002-of-00002.safetensors");
    assert_eq!(Checkpoint::open(dir.path()).unwrap().names().collect::<Vec<_>>(), ["a", "b"]);
    rename("a.safetensors", "model-00003.safetensors");
    assert_eq!(Checkpoint::open(dir.path()).unwrap_err().tensor(), Some("a"));
}

#[test]
fn f07_layers_are_loaded_by_their_own_shapes() {
    for (name, wanted) in [("llama", None), ("llama_q4", Some((32, 4))), ("llama_q8", Some((32, 8)))] {
        let checkpoint = Checkpoint::open(fixture(&format!("models/{name}"))).unwrap();
        for (module, rows, columns) in [("model.embed_tokens", 320, 64), ("model.layers.1.mlp.down_proj", 64, 160)] {
            let got = match checkpoint.matrix(module, rows, columns).unwrap() {
                Matrix::Plain(weight) => {
                    assert_eq!(weight.shape(), [rows, columns]);
                    None
                }
                Matrix::Affine { group_size, bits, .. } => Some((group_size, bits)),
            };
            assert_eq!(got, wanted);
            assert!(checkpoint.matrix(module, rows + 1, columns).is_err());
            assert!(checkpoint.matrix(module, rows, columns * 7).is_err());
        }
    }
    let checkpoint = Checkpoint::open(fixture("models/llama_untied_bias")).unwrap();
    assert!(checkpoint.linear("model.layers.0.self_attn.q_proj", 64, 64).unwrap().bias.is_some());
    assert!(checkpoint.linear("lm_head", 320, 64).unwrap().bias.is_none());
}

#[test]
fn f07_bits_that_differ_and_missing_biases_are_told_by_the_tensor() {
    // (weight, scales, biases) of a [4, 64] matrix, and what comes of it.
    let layer = |words: u64, groups: u64, biases: bool, scales: &str| {
        let size = if scales == "U8" { 1 } else { 2 };
        let (w, s) = (16 * words, 4 * groups * size);
        let mut header = json!({
            "m.weight": tensor("U32", &[4, words], 0, w),
            "m.scales": tensor(scales, &[4, groups], w, w + s),
        });
        if biases {
            header["m.biases"] = tensor(scales, &[4, groups], w + s, w + 2 * s);
        }
        open(&safetensors(&header.to_string(), (w + s * (1 + u64::from(biases))) as usize)).unwrap().matrix("m", 4, 64)
    };
    for (bits, words) in [(2, 4), (3, 6), (4, 8), (5, 10), (6, 12), (8, 16)] {
        for group in [32, 64] {
            let Matrix::Affine { group_size, bits: got, .. } = layer(words, 64 / group, true, "BF16").unwrap() else {
                panic!("quantized")
            };
            assert_eq!((group_size as u64, got), (group, bits));
        }
    }
    let error = layer(8, 2, false, "F16").unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::Unsupported, Some("m.biases")));
    assert_eq!(layer(8, 2, false, "U8").unwrap_err().tensor(), Some("m.biases"));
    assert_eq!(layer(7, 2, true, "F16").unwrap_err().tensor(), Some("m.weight"));
    assert_eq!(layer(8, 3, true, "F16").unwrap_err().tensor(), Some("m.scales"));
    assert_eq!(layer(8, 2, true, "I16").unwrap_err().tensor(), Some("m.scales"));
    let alone = json!({"m.weight": tensor("U32", &[4, 8], 0, 128)}).to_string();
    let error = open(&safetensors(&alone, 128)).unwrap().matrix("m", 4, 64).unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::Weights, Some("m.scales")));
}

#[test]
fn a_gguf_checkpoint_has_hugging_face_names_and_affine_triples() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.gguf");
    let q4 = [f16::from_f32(0.5).to_le_bytes().to_vec(), vec![0x21; 16]].concat();
    let file = Writer::default()
        .key("general.name", Val::str("x"))
        .tensor("blk.1.attn_q.weight", &[2, 32], 2, q4.repeat(2))
        .tensor("output_norm.weight", &[2], 0, vec![0; 8])
        .tensor("blk.0.ffn_up.weight", &[1, 32], 39, vec![0; 17])
        .tensor("rope_freqs.weight", &[2], 0, vec![0; 8])
        .build();
    write(&path, file).unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    let q = "model.layers.1.self_attn.q_proj";
    assert_eq!(
        checkpoint.names().collect::<Vec<_>>(),
        [
            "model.layers.0.mlp.up_proj.weight",
            &format!("{q}.biases"),
            &format!("{q}.scales"),
            &format!("{q}.weight"),
            "model.norm.weight",
            "rope_freqs.weight",
        ]
    );
    let Matrix::Affine { weight, scales, biases, group_size: 32, bits: 4 } = checkpoint.matrix(q, 2, 32).unwrap()
    else {
        panic!("quantized")
    };
    assert_eq!((weight.shape(), scales.shape(), biases.shape()), (&[2, 4][..], &[2, 1][..], &[2, 1][..]));
    let words = [0x1111_1111u32, 0x1111_1111, 0x2222_2222, 0x2222_2222].map(u32::to_le_bytes).concat();
    assert_eq!(**weight.data(), words.repeat(2));
    assert_eq!(**scales.data(), f16::from_f32(0.5).to_le_bytes().repeat(2));
    assert_eq!(**biases.data(), f16::from_f32(-4.0).to_le_bytes().repeat(2));
    let error = checkpoint.tensor("model.layers.0.mlp.up_proj.weight").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("blk.0.ffn_up.weight") && error.to_string().contains("MXFP4"), "{error}");
    let error = checkpoint.tensor("model.nothing").unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::Weights, Some("model.nothing")));
}

#[test]
fn smollm2_has_every_tensor_of_its_configuration() {
    if smollm2_is_left_out() {
        return;
    }
    let files = ModelFiles::open(smollm2()).unwrap();
    let (c, checkpoint) = (files.config(), files.checkpoint());
    let mut used = 0;
    let mut matrix = |module: &str, rows: usize, columns: usize, bits: usize| {
        let Matrix::Affine { group_size: 32, bits: got, .. } = checkpoint.matrix(module, rows, columns).unwrap() else {
            panic!("{module} is quantized")
        };
        assert_eq!(got, bits);
        used += 3;
    };
    matrix("model.embed_tokens", c.vocab_size, c.hidden_size, 8);
    for i in 0..c.layers {
        let layer = format!("model.layers.{i}");
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        matrix(&format!("{layer}.self_attn.q_proj"), q, c.hidden_size, 4);
        matrix(&format!("{layer}.self_attn.k_proj"), kv, c.hidden_size, 4);
        matrix(&format!("{layer}.self_attn.v_proj"), kv, c.hidden_size, 4);
        matrix(&format!("{layer}.self_attn.o_proj"), c.hidden_size, q, 4);
        matrix(&format!("{layer}.mlp.gate_proj"), c.intermediate_size, c.hidden_size, 4);
        matrix(&format!("{layer}.mlp.up_proj"), c.intermediate_size, c.hidden_size, 4);
        matrix(&format!("{layer}.mlp.down_proj"), c.hidden_size, c.intermediate_size, 4);
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            checkpoint.float(&format!("{layer}.{norm}.weight"), &[c.hidden_size]).unwrap();
        }
    }
    checkpoint.float("model.norm.weight", &[c.hidden_size]).unwrap();
    assert_eq!(checkpoint.names().len(), used + 2 * c.layers + 1);
    assert_eq!(checkpoint.file_bytes(), 96_576_768);
}
