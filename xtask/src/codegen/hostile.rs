//! The fuzzer's table: a call with drawn arguments for every function of the safe API, from the signatures in its sources.
//!
//! A parameter gets what [`RULES`] say of its type and name. A function with a parameter that no rule knows must be driven by hand in
//! `programs.rs` of the fuzzer, which then names it, or be left out for a reason: so no function is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::reach::Api;

/// Where the table lies.
pub(crate) const FILE: &str = "crates/oxmlx/tests/fuzz/table.rs";

/// What drives functions by hand: beside the programs the draws, with the types that they make, and the readers of files.
pub(crate) const BY_HAND: [&str; 3] =
    ["crates/oxmlx/tests/fuzz/programs.rs", "crates/oxmlx/tests/fuzz/draw.rs", "crates/oxmlx/tests/fuzz/files.rs"];

/// What is drawn for a parameter: the first rule whose function's start, name and type fit; an empty one fits all.
const RULES: &[(&str, &str, &str, &str)] = &[
    ("linalg::", "a", "&Array", "&d.square()"),
    ("fast::", "queries|keys|values|q|k|v", "&Array", "&d.image(2)"),
    ("fft::istft", "", "&Array", "&d.image(1)"),
    ("ops::conv1d|ops::conv_transpose1d", "", "&Array", "&d.image(1)"),
    ("ops::conv2d|ops::conv_transpose2d|ops::conv_general", "", "&Array", "&d.image(2)"),
    ("ops::conv3d|ops::conv_transpose3d", "", "&Array", "&d.image(3)"),
    ("", "indices|start|segments|offsets|targets", "&Array|&Self", "&d.indices()"),
    ("", "", "&Array|&Self", "&d.array()"),
    ("", "", "Array|Self", "d.array()"),
    ("", "key", "Option<&Array>|impl Into<Option<&Array>>", "d.key().as_ref()"),
    ("", "", "Option<&Array>", "d.maybe(Draw::array).as_ref()"),
    ("", "indices", "&[Array]", "&d.index_arrays()"),
    ("", "", "&[Array]|&[crate::Array]", "&d.arrays()"),
    ("", "shape", "&[i32]", "&d.shape()"),
    ("", "", "&[i32]", "&d.ints()"),
    ("", "", "Option<&[i32]>", "d.maybe(Draw::ints).as_deref()"),
    ("", "", "impl IntoShape", "d.shape()"),
    ("", "", "i32", "d.int()"),
    ("", "", "Option<i32>", "d.maybe(Draw::int)"),
    ("", "", "[i32;2]", "d.pair()"),
    ("", "", "Option<[i32;2]>", "d.maybe(Draw::pair)"),
    ("", "", "&[i64]", "&d.longs()"),
    ("", "", "&[(i32,i32)]", "&d.pairs()"),
    ("", "", "usize", "d.below(100)"),
    ("", "", "u64", "d.below(1 << 40) as u64"),
    ("", "", "bool", "d.flag()"),
    ("", "", "f32", "d.float32()"),
    ("", "", "Option<f32>", "d.maybe(Draw::float32)"),
    ("", "", "f64", "d.float()"),
    ("", "", "Dtype|crate::Dtype", "d.dtype()"),
    ("", "", "Option<Dtype>", "d.maybe(Draw::dtype)"),
    ("", "", "Device", "d.device()"),
    ("", "", "DtypeCategory", "d.category()"),
    ("", "", "&[T]", "&d.floats()"),
    ("", "", "&[u8]", "&d.bytes()"),
    ("", "subscripts", "&str", "d.subscripts()"),
    ("", "", "FftNorm", "d.fft_norm()"),
    ("", "", "&Stft", "&d.stft()"),
    ("", "", "Triangle", "d.triangle()"),
    ("", "", "Order", "d.order()"),
    ("", "", "PadMode", "d.pad_mode()"),
    ("", "", "Side", "d.side()"),
    ("", "", "Indexing", "d.indexing()"),
    ("", "", "Scan", "d.scan()"),
    ("", "", "Tolerance", "d.tolerance()"),
    ("", "", "Conv<1>", "d.conv::<1>()"),
    ("", "", "Conv<2>", "d.conv::<2>()"),
    ("", "", "Conv<3>", "d.conv::<3>()"),
    ("", "", "&ConvGeneral", "&d.conv_general()"),
    (
        "",
        "",
        "BlockMasks",
        "BlockMasks { out: d.maybe(Draw::array).as_ref(), lhs: d.maybe(Draw::array).as_ref(), rhs: None }",
    ),
    ("", "", "Format|impl Into<Format>", "d.format()?"),
    ("", "", "&Quantized", "&d.quantized()?"),
    ("", "", "Picks", "Picks::all().lhs(&d.indices()).rhs(&d.indices()).transpose(d.flag()).sorted(d.flag())"),
    ("", "", "&Rope", "&d.rope()"),
    ("", "", "Mask", "d.mask(&ops::zeros([], Dtype::Bool)?)"),
    ("", "", "Option<u8>", "d.maybe(|d| d.below(256) as u8)"),
];

/// What is not called, by the start of its name, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("build_info::", "reads what the build noted"),
    ("Capability", "no arguments"),
    ("Claim", "a locked file"),
    ("Identity", "no arguments"),
    ("Outcome", "no arguments"),
    ("distributed::clear_backends", "a setting of the process"),
    ("distributed::init_strict", "ends where there are no other processes"),
    ("memory::set_", "a setting of the process"),
    ("random::seed", "a setting of the process"),
    ("transforms::set_compile_mode", "a setting of the process; the fused one runs a C++ compiler a call"),
    ("storage::dlpack::dtype_from_dlpack", "a match over numbers"),
    ("Source", "text for a GPU, which unsafe functions alone take"),
    ("kernel::parallel", "the pool of the bodies, which has no arguments of its own"),
    ("Error", "what errors say"),
    ("Array::into_mlx_c", "gives a raw handle away"),
    ("Backend", "no arguments"),
    ("MappedSafetensors", "fields only"),
];

/// The text of the table.
///
/// # Errors
/// The functions that nothing calls.
pub(crate) fn table(api: &BTreeMap<String, Api<'_>>, by_hand: &str) -> Result<String, String> {
    let words = by_hand.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let words: BTreeSet<&str> = words.map(|word| word.trim_matches(':')).collect();
    let parts: BTreeSet<&str> = words.iter().flat_map(|word| word.split("::")).collect();
    let (mut rows, mut missing) = (String::new(), String::new());
    for (name, function) in api {
        let left_out = LEFT_OUT.iter().any(|(start, _)| name.starts_with(start));
        if function.is_unsafe || function.of_trait || left_out || words.contains(name.as_str()) {
            continue;
        }
        match call(name, function) {
            Ok(Some(call)) => {
                let draw = if call.contains("d.") { "d" } else { "_" };
                let _ = writeln!(rows, "    (\"{name}\", |{draw}| {call}),");
            }
            // A method of a type that is made by hand, or a function that is imported there.
            _ if function.method_of.is_some_and(|ty| ty != "Array" && parts.contains(ty)) => {}
            _ if name.rsplit("::").next().is_some_and(|last| words.contains(last)) => {}
            Ok(None) => drop(writeln!(missing, "  {name}: a method of a type that is made by hand")),
            Err(ty) => drop(writeln!(missing, "  {name}: no rule for the type {ty}")),
        }
    }
    if !missing.is_empty() {
        return Err(format!(
            "the fuzzer calls none of these; give the type a rule in xtask/src/codegen/hostile.rs, or call the function \
             in {}:\n{missing}",
            BY_HAND[0]
        ));
    }
    Ok(format!("{HEAD}{rows}];\n"))
}

const HEAD: &str = "\
//! @generated by cargo xtask coverage --markdown
//! Every function of the safe API, each with hostile arguments.

use oxmlx::ops::BlockMasks;
use oxmlx::quantize::Picks;
use oxmlx::*;

use crate::draw::Draw;
use crate::registry::{Entry, Outputs as _};

/// A function's name and a call of it with drawn arguments.
#[rustfmt::skip]
pub(crate) const TABLE: &[Entry] = &[
";

/// The call, or nothing for a method of something else than an array, or the type that has no rule.
fn call(name: &str, function: &Api<'_>) -> Result<Option<String>, String> {
    let mut arguments = Vec::new();
    let mut receiver = "";
    for (argument, ty) in function.inputs {
        if argument == "self" {
            receiver = ty;
        } else {
            arguments.push(drawn(name, argument, ty).ok_or(ty.as_str())?);
        }
    }
    let arguments = arguments.join(", ");
    let element = match function.generics {
        [] => "",
        [one] if one == "Element" => "::<f32>",
        more => return Err(more.join(" and ")),
    };
    let method = name.rsplit("::").next().unwrap_or(name);
    let call = match (function.method_of, receiver) {
        (None, _) | (Some("Array"), "") => format!("{name}{element}({arguments})"),
        (Some("Array"), "&self") => format!("d.array().{method}{element}({arguments})"),
        _ => return Ok(None),
    };
    let (inner, ask) = match function.output.strip_prefix("Result<").and_then(|rest| rest.strip_suffix('>')) {
        Some(inner) => (inner, "?"),
        None => (function.output, ""),
    };
    let words = inner.split(|c: char| !c.is_alphanumeric());
    let arrays = words.into_iter().any(|word| ["Array", "Self", "Unique", "Quantized"].contains(&word));
    Ok(Some(match (arrays, inner) {
        (true, _) => format!("Ok({call}{ask}.arrays())"),
        (false, "()") => format!("{{ {call}{ask}; Ok(vec![]) }}"),
        (false, _) => format!("{{ let _ = {call}{ask}; Ok(vec![]) }}"),
    }))
}

fn drawn(function: &str, name: &str, ty: &str) -> Option<&'static str> {
    let among = |list: &str, word: &str| list.is_empty() || list.split('|').any(|one| one == word);
    let starts = |list: &str| list.split('|').any(|start| function.starts_with(start));
    RULES
        .iter()
        .find(|(start, names, types, _)| starts(start) && among(names, name) && among(types, ty))
        .map(|rule| rule.3)
}

#[cfg(test)]
mod tests {
    use super::{Api, BTreeMap, table};

    fn of(inputs: &[(&str, &str)], output: &str, by_hand: &str) -> Result<String, String> {
        let inputs: Vec<(String, String)> = inputs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        let api = Api { method_of: None, of_trait: false, is_unsafe: false, generics: &[], inputs: &inputs, output };
        table(&BTreeMap::from([("ops::new_one".to_owned(), api)]), by_hand)
    }

    #[test]
    fn a_new_function_gets_a_row_by_itself() {
        let text = of(&[("a", "&Array"), ("axis", "i32")], "Result<Array>", "").unwrap();
        assert!(text.contains("(\"ops::new_one\", |d| Ok(ops::new_one(&d.array(), d.int())?.arrays())),\n"), "{text}");
        let text = of(&[("shape", "impl IntoShape")], "Result<usize>", "").unwrap();
        assert!(text.contains("|d| { let _ = ops::new_one(d.shape())?; Ok(vec![]) }"), "{text}");
    }

    #[test]
    fn a_function_of_unknown_types_must_be_called_by_hand() {
        let error = of(&[("how", "Strange")], "Result<Array>", "").unwrap_err();
        assert!(error.contains("ops::new_one: no rule for the type Strange"), "{error}");
        assert!(of(&[("how", "Strange")], "Result<Array>", "(\"ops::new_one\", new_one)").is_ok());
    }
}
