//! A model folder with the shape of a published model and random weights: how fast a model is does not depend on what it says.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use oxmlx_lm::sampling::Rng;
use serde_json::{Map, Value, json};

use crate::bench_args::{Bits, Shape};

/// Weights that share a scale and a bias.
const GROUP: usize = 64;

struct Sizes {
    hidden: usize,
    intermediate: usize,
    layers: usize,
    heads: usize,
    kv_heads: usize,
    vocab: usize,
    theta: f64,
}

impl Shape {
    fn sizes(self) -> Sizes {
        let [hidden, intermediate, layers, heads, kv_heads, vocab] = match self {
            Self::Llama1B => [2048, 8192, 16, 32, 8, 128_256],
            Self::SmolLm2 => [576, 1536, 30, 9, 3, 49_152],
        };
        let theta = if self == Self::Llama1B { 5e5 } else { 1e5 };
        Sizes { hidden, intermediate, layers, heads, kv_heads, vocab, theta }
    }
}

/// What fills a tensor.
#[derive(Clone, Copy)]
enum Fill {
    /// Random bfloat16 numbers of a size that keeps activations in range.
    Numbers,
    /// Random bits.
    Words,
    /// One bfloat16 number.
    Constant(u16),
}

struct Tensor {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    fill: Fill,
}

impl Tensor {
    fn bytes(&self) -> usize {
        let width = if self.dtype == "U32" { 4 } else { 2 };
        width * self.shape.iter().product::<usize>()
    }
}

const ONE: u16 = 0x3f80;

/// Writes `config.json` and `model.safetensors`.
pub(super) fn write(folder: &Path, shape: Shape, bits: Bits) -> io::Result<()> {
    std::fs::write(folder.join("config.json"), config(shape, bits).to_string())?;
    let tensors = tensors(shape, bits);
    let (mut header, mut at) = (Map::new(), 0);
    for tensor in &tensors {
        let end = at + tensor.bytes();
        let entry = json!({ "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [at, end] });
        header.insert(tensor.name.clone(), entry);
        at = end;
    }
    let mut header = Value::Object(header).to_string();
    // The data begin where a page does, so that they can be used where they lie.
    let padding = (8 + header.len()).next_multiple_of(4096) - 8 - header.len();
    header.extend(std::iter::repeat_n(' ', padding));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(folder.join("model.safetensors"))?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let mut rng = Rng::new(1);
    for tensor in &tensors {
        fill(&mut file, tensor.fill, tensor.bytes(), &mut rng)?;
    }
    file.flush()
}

fn fill(out: &mut impl Write, fill: Fill, bytes: usize, rng: &mut Rng) -> io::Result<()> {
    let mut word = || match fill {
        // Of each number the sign and the fraction are random: 2^-7 to 2^-6.
        Fill::Numbers => rng.next_u64() & 0x807f_807f_807f_807f | 0x3c00_3c00_3c00_3c00,
        Fill::Words => rng.next_u64(),
        Fill::Constant(number) => u64::from(number) * 0x0001_0001_0001_0001,
    };
    let mut left = bytes;
    while left > 0 {
        let some = left.min(8);
        out.write_all(&word().to_le_bytes()[..some])?;
        left -= some;
    }
    Ok(())
}

fn config(shape: Shape, bits: Bits) -> Value {
    let sizes = shape.sizes();
    let mut config = json!({
        "model_type": "llama",
        "vocab_size": sizes.vocab,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "rms_norm_eps": 1e-5,
        "rope_theta": sizes.theta,
        "max_position_embeddings": 131_072,
        "tie_word_embeddings": true,
    });
    if let Some(bits) = packed(bits) {
        config["quantization"] = json!({ "group_size": GROUP, "bits": bits });
    }
    config
}

/// Bits of a packed weight.
fn packed(bits: Bits) -> Option<usize> {
    match bits {
        Bits::Four => Some(4),
        Bits::Eight => Some(8),
        Bits::Sixteen => None,
    }
}

fn tensors(shape: Shape, bits: Bits) -> Vec<Tensor> {
    let sizes = shape.sizes();
    let (hidden, intermediate) = (sizes.hidden, sizes.intermediate);
    let kv = hidden / sizes.heads * sizes.kv_heads;
    let mut tensors = Vec::new();
    let linear = |tensors: &mut Vec<Tensor>, module: String, rows: usize, columns: usize| {
        let mut add = |part: &str, dtype, columns, fill| {
            tensors.push(Tensor { name: format!("{module}.{part}"), dtype, shape: vec![rows, columns], fill });
        };
        // Scales and biases give values of the size of the unpacked ones, around 0.
        let (scale, bias) = match bits {
            Bits::Sixteen => return add("weight", "BF16", columns, Fill::Numbers),
            Bits::Four => (0x3b00, 0xbc70),
            Bits::Eight => (0x3900, 0xbc7f),
        };
        let width = packed(bits).unwrap_or(16);
        add("weight", "U32", columns * width / 32, Fill::Words);
        add("scales", "BF16", columns / GROUP, Fill::Constant(scale));
        add("biases", "BF16", columns / GROUP, Fill::Constant(bias));
    };
    let norm = |tensors: &mut Vec<Tensor>, module: String| {
        let name = format!("{module}.weight");
        tensors.push(Tensor { name, dtype: "BF16", shape: vec![hidden], fill: Fill::Constant(ONE) });
    };
    linear(&mut tensors, "model.embed_tokens".to_owned(), sizes.vocab, hidden);
    for layer in 0..sizes.layers {
        let at = |module: &str| format!("model.layers.{layer}.{module}");
        norm(&mut tensors, at("input_layernorm"));
        linear(&mut tensors, at("self_attn.q_proj"), hidden, hidden);
        linear(&mut tensors, at("self_attn.k_proj"), kv, hidden);
        linear(&mut tensors, at("self_attn.v_proj"), kv, hidden);
        linear(&mut tensors, at("self_attn.o_proj"), hidden, hidden);
        norm(&mut tensors, at("post_attention_layernorm"));
        linear(&mut tensors, at("mlp.gate_proj"), intermediate, hidden);
        linear(&mut tensors, at("mlp.up_proj"), intermediate, hidden);
        linear(&mut tensors, at("mlp.down_proj"), hidden, intermediate);
    }
    norm(&mut tensors, "model.norm".to_owned());
    tensors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(shape: Shape) -> usize {
        tensors(shape, Bits::Sixteen).iter().map(|tensor| tensor.shape.iter().product::<usize>()).sum()
    }

    #[test]
    fn models_have_the_published_numbers_of_parameters() {
        assert_eq!(parameters(Shape::Llama1B), 1_235_814_400);
        assert_eq!(parameters(Shape::SmolLm2), 134_515_008);
    }

    #[test]
    fn packed_weights_take_their_bits_and_a_scale_and_a_bias_a_group() {
        let bits = |bits| {
            let bytes: usize = tensors(Shape::SmolLm2, bits).iter().map(Tensor::bytes).sum();
            bytes as f64 * 8.0 / parameters(Shape::SmolLm2) as f64
        };
        assert!((bits(Bits::Four) - 4.5).abs() < 0.01 && (bits(Bits::Eight) - 8.5).abs() < 0.01);
    }
}
