//! Sound GGUF files are read without loss.

use half::f16;
use oxmlx_lm::ErrorKind;
use oxmlx_lm::gguf::{Affine, Array, GgmlType, Gguf, Value, Values};
use oxmlx_lm::weights::Dtype;

use crate::gguf_writer::{Val, Writer};
use crate::random::Lcg;
use crate::support::{smollm2, smollm2_is_left_out};

#[test]
fn f08_every_scalar_type_is_read_with_its_exact_value() {
    let file = Writer::default()
        .key("u8", Val::U8(200))
        .key("i8", Val::I8(-100))
        .key("u16", Val::U16(60_000))
        .key("i16", Val::I16(-30_000))
        .key("u32", Val::U32(4_000_000_000))
        .key("i32", Val::I32(-2_000_000_000))
        .key("f32", Val::F32(0.1))
        .key("bool", Val::Bool(true))
        .key("string", Val::str("čeština\0\n"))
        .key("u64", Val::U64(u64::MAX))
        .key("i64", Val::I64(i64::MIN))
        .key("f64", Val::F64(0.1))
        .build();
    let gguf = Gguf::parse(&file).unwrap();
    let values: Vec<_> = gguf.metadata().iter().map(|(k, v)| (*k, v.clone())).collect();
    assert_eq!(
        values,
        [
            ("u8", Value::U8(200)),
            ("i8", Value::I8(-100)),
            ("u16", Value::U16(60_000)),
            ("i16", Value::I16(-30_000)),
            ("u32", Value::U32(4_000_000_000)),
            ("i32", Value::I32(-2_000_000_000)),
            ("f32", Value::F32(0.1)),
            ("bool", Value::Bool(true)),
            ("string", Value::Str("čeština\0\n")),
            ("u64", Value::U64(u64::MAX)),
            ("i64", Value::I64(i64::MIN)),
            ("f64", Value::F64(0.1)),
        ]
    );
}

#[test]
fn f08_arrays_of_strings_numbers_bools_and_arrays_are_read() {
    let inner = |v: Vec<Val>| Val::Arr(5, v);
    let file = Writer::default()
        .key("texts", Val::strs(["a", "", "é"]))
        .key("bools", Val::Arr(7, vec![Val::Bool(true), Val::Bool(false)]))
        .key("doubles", Val::Arr(12, vec![Val::F64(1e300), Val::F64(-0.0)]))
        .key("nested", Val::Arr(9, vec![inner(vec![Val::I32(1), Val::I32(-2)]), inner(vec![])]))
        .key("empty", Val::Arr(8, vec![]))
        .build();
    let gguf = Gguf::parse(&file).unwrap();
    let array = |key: &str| gguf.get(key).unwrap().as_array().unwrap();
    assert_eq!(*array("texts"), Array::Str(vec!["a", "", "é"]));
    assert_eq!(*array("bools"), Array::Bool(vec![true, false]));
    assert_eq!(*array("doubles"), Array::F64(vec![1e300, -0.0]));
    assert_eq!(*array("nested"), Array::Array(vec![Array::I32(vec![1, -2]), Array::I32(vec![])]));
    assert_eq!(*array("empty"), Array::Str(vec![]));
}

#[test]
fn typed_getters_widen_integers_and_name_the_key_of_a_wrong_type() {
    let file = Writer::default().key("n", Val::I64(7)).key("neg", Val::I32(-1)).key("s", Val::str("x")).build();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.usize("n").unwrap(), Some(7));
    assert_eq!(gguf.usize("none").unwrap(), None);
    for error in [gguf.usize("neg").unwrap_err(), gguf.usize("s").unwrap_err(), gguf.bool("n").unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.field().is_some(), "{error}");
    }
}

#[test]
fn both_versions_and_other_alignments_are_read() {
    for version in [2, 3] {
        for alignment in [8, 32, 4096] {
            let data = |n: u8| [n; 12].to_vec();
            let writer = Writer::new(version, alignment)
                .key("general.alignment", Val::U32(alignment as u32))
                .tensor("a", &[3], 0, data(1))
                .tensor("b", &[3], 0, data(2));
            let file = writer.build();
            let gguf = Gguf::parse(&file).unwrap();
            assert_eq!(gguf.version(), version);
            assert_eq!(gguf.tensor("a").unwrap().data(), data(1));
            assert_eq!(gguf.tensor("b").unwrap().data(), data(2));
        }
    }
}

#[test]
fn f08_plain_tensors_keep_their_type_and_get_row_major_shapes() {
    let types = [(0, Dtype::F32, 4), (1, Dtype::F16, 2), (30, Dtype::BF16, 2), (28, Dtype::F64, 8), (24, Dtype::I8, 1)];
    let types = types.into_iter().chain([(25, Dtype::I16, 2), (26, Dtype::I32, 4), (27, Dtype::I64, 8)]);
    for (id, dtype, size) in types {
        let data: Vec<u8> = (0..24 * size as u8).collect();
        let file = Writer::default()
            .tensor("t", &[4, 3, 2], id, data.clone())
            .tensor("scalar", &[], id, vec![9; size])
            .build();
        let gguf = Gguf::parse(&file).unwrap();
        let tensor = gguf.tensor("t").unwrap();
        assert_eq!(tensor.shape(), [4, 3, 2]);
        assert_eq!(tensor.values().unwrap(), Values::Plain(dtype, &data));
        assert_eq!(gguf.tensor("scalar").unwrap().shape(), [0usize; 0]);
    }
}

#[test]
fn f08_a_type_without_conversion_is_listed_and_an_error_names_it_when_asked_for() {
    let mut tried = 0;
    for &t in GgmlType::ALL {
        if t.dtype().is_some() || t.affine_bits().is_some() {
            continue;
        }
        let file = Writer::default()
            .tensor("blk.0.ffn_up.weight", &[2, t.block_len() as u64], t.id(), vec![0; 2 * t.block_bytes()])
            .build();
        let gguf = Gguf::parse(&file).unwrap();
        let tensor = &gguf.tensors()[0];
        assert_eq!((tensor.ggml_type(), tensor.data().len()), (t, 2 * t.block_bytes()));
        let error = tensor.values().unwrap_err();
        assert_eq!((error.kind(), error.tensor()), (ErrorKind::Unsupported, Some("blk.0.ffn_up.weight")));
        assert!(error.to_string().contains(t.name()), "{error}");
        tried += 1;
    }
    assert!(tried > 20);
}

/// ggml's own formulas, in single precision.
fn ggml_dequantized(t: GgmlType, block: &[u8]) -> Vec<f32> {
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let d = half(0);
    let mut out = vec![0.0; 32];
    for j in 0..32 {
        out[j] = match t {
            GgmlType::Q8_0 => f32::from(block[2 + j] as i8) * d,
            _ => {
                let header = if t == GgmlType::Q4_0 { 2 } else { 4 };
                let byte = block[header + j % 16];
                let q = if j < 16 { byte & 15 } else { byte >> 4 };
                if t == GgmlType::Q4_0 { (f32::from(q) - 8.0) * d } else { f32::from(q) * d + half(2) }
            }
        };
    }
    out
}

/// MLX's layout: value `i` of a row in bits `i * bits` of its words, scale and bias every 32.
fn affine_dequantized(a: &Affine) -> Vec<f32> {
    let per_word = 32 / a.bits;
    (0..a.weights.len() * per_word)
        .map(|i| {
            let q = a.weights[i / per_word] >> (i % per_word * a.bits) & ((1 << a.bits) - 1);
            let half = |v: &[u16]| f16::from_bits(v[i / 32]).to_f32();
            q as f32 * half(&a.scales) + half(&a.biases)
        })
        .collect()
}

#[test]
fn affine_triples_give_exactly_ggmls_values() {
    let mut random = Lcg(1);
    for t in [GgmlType::Q4_0, GgmlType::Q4_1, GgmlType::Q8_0] {
        // Biases of Q4_0 and Q8_0 are 8 and 128 times the scale, and that must be a float16 still.
        let limit = match t {
            GgmlType::Q4_0 => 8188.0,
            GgmlType::Q8_0 => 511.75,
            _ => f16::MAX.to_f32(),
        };
        let (rows, columns) = (500, 64);
        let mut data: Vec<u8> = (0..rows * columns / 32 * t.block_bytes()).map(|_| random.next() as u8).collect();
        for block in data.chunks_mut(t.block_bytes()) {
            for at in if t == GgmlType::Q4_1 { vec![0, 2] } else { vec![0] } {
                // Every kind of number up to the limit, subnormal and both zeros among them.
                let mut h = f16::from_bits(random.next() as u16);
                while h.is_nan() || h.to_f32().abs() > limit {
                    h = f16::from_bits(random.next() as u16);
                }
                block[at..at + 2].copy_from_slice(&h.to_le_bytes());
            }
        }
        let wanted: Vec<f32> = data.chunks(t.block_bytes()).flat_map(|b| ggml_dequantized(t, b)).collect();
        let file = Writer::default().tensor("w", &[rows as u64, columns as u64], t.id(), data).build();
        let gguf = Gguf::parse(&file).unwrap();
        let Values::Affine(affine) = gguf.tensor("w").unwrap().values().unwrap() else { panic!("{t} is affine") };
        assert_eq!(affine.weights.len(), rows * columns * affine.bits / 32);
        assert_eq!((affine.scales.len(), affine.biases.len()), (rows * columns / 32, rows * columns / 32));
        let got = affine_dequantized(&affine);
        assert!(got == wanted, "{t}: differs at {:?}", got.iter().zip(&wanted).position(|(a, b)| a != b));
    }
}

#[test]
fn a_scale_whose_bias_is_no_float16_is_an_error_that_names_tensor_and_block() {
    for (t, scale) in [(GgmlType::Q4_0, 8200.0), (GgmlType::Q8_0, 512.0), (GgmlType::Q8_0, f32::NAN)] {
        let mut data = vec![0; 2 * t.block_bytes()];
        data[t.block_bytes()..][..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
        let file = Writer::default().tensor("w", &[64], t.id(), data).build();
        let error = Gguf::parse(&file).unwrap().tensor("w").unwrap().values().unwrap_err();
        assert_eq!((error.kind(), error.tensor()), (ErrorKind::Format, Some("w")));
        assert!(error.to_string().contains("block 1"), "{error}");
    }
}

/// Facts of the published file, read from it by the `gguf` tools.
#[test]
fn smollm2_is_read_as_published() {
    if smollm2_is_left_out() {
        return;
    }
    let bytes = oxmlx_lm::Mapped::open(smollm2()).unwrap();
    let gguf = Gguf::parse(&bytes).unwrap();
    assert_eq!((gguf.version(), gguf.tensors().len(), gguf.metadata().len()), (3, 272, 33));
    assert_eq!(gguf.strs("tokenizer.ggml.merges").unwrap().unwrap()[..3], ["Ġ t", "Ġ a", "i n"]);
    let down = gguf.tensor("blk.0.ffn_down.weight").unwrap();
    assert_eq!((down.ggml_type(), down.shape()), (GgmlType::Q4_1, &[576, 1536][..]));
    assert_eq!(gguf.tensor("token_embd.weight").unwrap().ggml_type(), GgmlType::Q8_0);
    assert_eq!(down.offset() - gguf.tensor("token_embd.weight").unwrap().offset(), 30_083_328);
}
