//! Tokenizers against data made by the Python `tokenizers` library, and against slow definitions.

use std::collections::HashMap;

use oxmlx_lm::gguf::Gguf;
use oxmlx_lm::{ErrorKind, ModelFiles, StreamDecoder, Tokenizer};
use serde_json::json;

use crate::gguf_writer::{Val, Writer};
use crate::random::Lcg;
use crate::support::{json_fixture, smollm2, smollm2_is_left_out};

fn ids(value: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn smollm2_tokenizer() -> Tokenizer {
    ModelFiles::open(smollm2()).unwrap().tokenizer().unwrap()
}

#[test]
fn smollm2_encodes_and_decodes_all_rows_as_the_reference() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = smollm2_tokenizer();
    let rows = json_fixture("smollm2/tokenizer.json");
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 36);
    for row in rows {
        let text = row["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text).unwrap(), ids(&row["ids"]), "{text:?}");
        assert_eq!(tokenizer.decode_with_special(&ids(&row["ids"])).unwrap(), row["decoded"].as_str().unwrap());
    }
}

#[test]
fn smollm2_knows_its_special_tokens_and_can_read_them_as_plain_text() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = smollm2_tokenizer();
    assert_eq!((tokenizer.vocab_size(), tokenizer.bos_id()), (49152, Some(1)));
    assert_eq!(tokenizer.eos_ids(), [2, 0]);
    assert_eq!(
        (tokenizer.bos_token().as_deref(), tokenizer.eos_token().as_deref()),
        (Some("<|im_start|>"), Some("<|im_end|>"))
    );
    let text = "a<|im_end|>b";
    assert!(tokenizer.encode(text).unwrap().contains(&2));
    let literal = tokenizer.encode_literal(text).unwrap();
    assert!(!literal.iter().any(|&id| tokenizer.is_special(id)), "{literal:?}");
    assert_eq!(tokenizer.decode(&literal).unwrap(), text);
    assert_eq!(tokenizer.decode(&[1, 9690, 2]).unwrap(), "system");
    // The file says add_bos_token = false.
    assert_eq!(tokenizer.encode_prompt("system").unwrap(), [9690]);
    assert_eq!(tokenizer.decode(&[49152]).unwrap_err().kind(), ErrorKind::Tokenizer);
}

#[test]
fn e19_streamed_text_equals_decoding_at_once_and_never_cuts_a_character() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = smollm2_tokenizer();
    let mut sequences: Vec<Vec<u32>> =
        json_fixture("smollm2/tokenizer.json").as_array().unwrap().iter().map(|row| ids(&row["ids"])).collect();
    let mut random = Lcg(5);
    sequences.extend((0..300).map(|_| (0..40).map(|_| random.below(49152) as u32).collect()));
    for ids in &sequences {
        let whole = tokenizer.decode(ids).unwrap();
        for mut stream in [StreamDecoder::new(&tokenizer), StreamDecoder::after(&tokenizer, &[1])] {
            let mut text = String::new();
            for &id in ids {
                text += &stream.push(id).unwrap();
            }
            text += &stream.finish().unwrap();
            assert_eq!(text, whole);
        }
    }
    // Four bytes of one character in several tokens, then a space.
    let ids = tokenizer.encode("😀 a").unwrap();
    let mut stream = StreamDecoder::new(&tokenizer);
    let pieces: Vec<String> = ids.iter().map(|&id| stream.push(id).unwrap()).collect();
    assert!(pieces.len() >= 4 && pieces[0].is_empty(), "{pieces:?}");
    assert_eq!(pieces.concat(), "😀 a");
}

#[test]
fn a_token_that_the_tokenizer_lacks_has_no_text_and_ends_nothing() {
    if smollm2_is_left_out() {
        return;
    }
    let tokenizer = smollm2_tokenizer();
    let ids = tokenizer.encode("😀 a").unwrap();
    let mut stream = StreamDecoder::new(&tokenizer);
    let mut text = String::new();
    for &id in &ids {
        text += &stream.push(id).unwrap();
        text += &stream.push(49_152).unwrap();
    }
    assert_eq!((text + &stream.push(u32::MAX).unwrap()).as_str(), "😀 a");
    assert_eq!((stream.without_text(), stream.finish().unwrap().as_str()), (ids.len() + 1, ""));
}

/// The merges of the byte-level files below: only "ab" and "abc" exist beyond single bytes.
fn tiny_byte_level() -> (Vec<String>, Vec<&'static str>) {
    let mut tokens: Vec<String> = gpt2_characters().iter().map(char::to_string).collect();
    tokens.extend(["ab", "abc", "<|x y|>", "<|eot_id|>", "café"].map(String::from));
    (tokens, vec!["a b", "ab c"])
}

/// GPT-2's `bytes_to_unicode`, as it is published.
fn gpt2_characters() -> Vec<char> {
    let printable: Vec<u32> = (33..=126).chain(161..=172).chain(174..=255).collect();
    let mut next = 256;
    (0..256)
        .map(|byte| {
            let code = if printable.contains(&byte) {
                byte
            } else {
                next += 1;
                next - 1
            };
            char::from_u32(code).unwrap()
        })
        .collect()
}

fn tiny_gguf(pre: &str) -> Writer {
    let (tokens, merges) = tiny_byte_level();
    let kinds = (0..tokens.len())
        .map(|i| {
            Val::I32(if i < 258 {
                1
            } else if i == 260 {
                4
            } else {
                3
            })
        })
        .collect();
    Writer::default()
        .key("tokenizer.ggml.model", Val::str("gpt2"))
        .key("tokenizer.ggml.pre", Val::str(pre))
        .key("tokenizer.ggml.tokens", Val::strs(tokens))
        .key("tokenizer.ggml.token_type", Val::Arr(5, kinds))
        .key("tokenizer.ggml.merges", Val::strs(merges))
        .key("tokenizer.ggml.bos_token_id", Val::U32(258))
}

#[test]
fn control_and_user_defined_tokens_are_whole_and_only_control_ones_are_left_out() {
    let file = tiny_gguf("llama-bpe").build();
    let tokenizer = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    let ids = tokenizer.encode("abc<|x y|>café").unwrap();
    assert_eq!(ids, [257, 258, 260]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "abccafé");
    assert_eq!(tokenizer.decode_with_special(&ids).unwrap(), "abc<|x y|>café");
    assert_eq!(tokenizer.eos_ids(), [259]);
    // llama-bpe adds a begin-of-text token where the file doesn't say, gpt-2 doesn't; never a second one.
    assert_eq!(tokenizer.encode_prompt("ab").unwrap(), [258, 256]);
    assert_eq!(tokenizer.encode_prompt("<|x y|>ab").unwrap(), [258, 256]);
    let file = tiny_gguf("gpt-2").build();
    let tokenizer = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    assert_eq!(tokenizer.encode_prompt("ab").unwrap(), [256]);
}

#[test]
fn unusable_tokenizer_metadata_are_errors_that_name_the_key() {
    let (tokens, _) = tiny_byte_level();
    let base = || Writer::default().key("tokenizer.ggml.model", Val::str("gpt2"));
    let full = || base().key("tokenizer.ggml.tokens", Val::strs(tokens.clone()));
    let cases = [
        ("tokenizer.ggml.pre", ErrorKind::Unsupported, tiny_gguf("martian")),
        ("tokenizer.ggml.model", ErrorKind::Unsupported, {
            Writer::default()
                .key("tokenizer.ggml.model", Val::str("rwkv"))
                .key("tokenizer.ggml.tokens", Val::strs(["a"]))
        }),
        ("tokenizer.ggml.tokens", ErrorKind::Tokenizer, base()),
        ("tokenizer.ggml.tokens", ErrorKind::Config, base().key("tokenizer.ggml.tokens", Val::U32(1))),
        ("tokenizer.ggml.merges", ErrorKind::Tokenizer, full()),
        ("tokenizer.ggml.merges", ErrorKind::Tokenizer, full().key("tokenizer.ggml.merges", Val::strs(["ab"]))),
        ("tokenizer.ggml.merges", ErrorKind::Tokenizer, full().key("tokenizer.ggml.merges", Val::strs(["a zz"]))),
        ("tokenizer.ggml.token_type", ErrorKind::Tokenizer, {
            full().key("tokenizer.ggml.token_type", Val::Arr(5, vec![Val::I32(1)]))
        }),
        ("tokenizer.ggml.eos_token_id", ErrorKind::Tokenizer, {
            tiny_gguf("gpt-2").key("tokenizer.ggml.eos_token_id", Val::U32(9999))
        }),
    ];
    for (key, kind, writer) in cases {
        let file = writer.build();
        let error = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap_err();
        assert_eq!((error.field(), error.kind()), (Some(key), kind), "{error:?}");
    }
}

/// A SentencePiece vocabulary: `<unk>`, two control tokens, all bytes, then pieces with falling scores.
fn sentence_piece(pieces: &[&str], add_space: bool) -> Writer {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).to_vec();
    tokens.extend((0..=255u8).map(|b| format!("<0x{b:02X}>")));
    let first_piece = tokens.len();
    tokens.extend(pieces.iter().map(|p| p.to_string()));
    let kind = |i| match i {
        0 => 2,
        1 | 2 => 3,
        _ if i < first_piece => 6,
        _ => 1,
    };
    let score = |i: usize| if i < first_piece { 0.0 } else { -((i - first_piece) as f32) };
    Writer::default()
        .key("tokenizer.ggml.model", Val::str("llama"))
        .key("tokenizer.ggml.token_type", Val::Arr(5, (0..tokens.len()).map(|i| Val::I32(kind(i))).collect()))
        .key("tokenizer.ggml.scores", Val::Arr(6, (0..tokens.len()).map(|i| Val::F32(score(i))).collect()))
        .key("tokenizer.ggml.tokens", Val::strs(tokens))
        .key("tokenizer.ggml.add_space_prefix", Val::Bool(add_space))
        .key("tokenizer.ggml.bos_token_id", Val::U32(1))
        .key("tokenizer.ggml.eos_token_id", Val::U32(2))
}

/// SentencePiece's definition: join the neighbours whose union scores best, the leftmost of equals, until none is a piece;
/// what is no piece then becomes its bytes.
fn sentence_piece_reference(pieces: &[&str], text: &str) -> Vec<u32> {
    let rank: HashMap<&str, usize> = pieces.iter().enumerate().map(|(i, &p)| (p, i)).collect();
    let mut symbols: Vec<String> = text.replace(' ', "▁").chars().map(String::from).collect();
    loop {
        let joined = |i: usize| format!("{}{}", symbols[i], symbols[i + 1]);
        let best = (0..symbols.len().saturating_sub(1)).filter_map(|i| Some((*rank.get(&*joined(i))?, i))).min();
        let Some((_, i)) = best else { break };
        symbols[i] = joined(i);
        symbols.remove(i + 1);
    }
    let id = |s: &String| match rank.get(s.as_str()) {
        Some(&r) => vec![3 + 256 + r as u32],
        None => s.bytes().map(|b| 3 + u32::from(b)).collect(),
    };
    symbols.iter().flat_map(id).collect()
}

#[test]
fn sentence_piece_encodes_by_score_with_byte_fallback_and_decodes_back() {
    // Pieces are made by random joining, so that each is the union of two others, as training makes them.
    let mut random = Lcg(11);
    let mut made: Vec<String> = ["▁", "a", "b", "c", "d", "é"].map(String::from).to_vec();
    while made.len() < 60 {
        let new = format!("{}{}", made[random.below(made.len())], made[random.below(made.len())]);
        let periodic = (1..new.len()).any(|n| new.is_char_boundary(n) && new.starts_with(&new[n..]));
        // A piece that begins as it ends can be cut in two ways that compete for one text, where merges and scores may differ.
        if new.chars().count() <= 6 && !made.contains(&new) && !periodic {
            made.push(new);
        }
    }
    // Longer pieces first: merges made late in training score worst, single characters worst of all.
    let mut pieces: Vec<&str> = made[6..].iter().map(String::as_str).collect();
    pieces.extend(made[..6].iter().map(String::as_str));
    let file = sentence_piece(&pieces, true).build();
    let tokenizer = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    for _ in 0..2000 {
        let text: String =
            (0..1 + random.below(25)).map(|_| ['a', 'b', 'c', 'd', 'é', ' ', '語'][random.below(7)]).collect();
        let ids = tokenizer.encode(&text).unwrap();
        assert_eq!(ids, sentence_piece_reference(&pieces, &format!(" {text}")), "{text:?}");
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
    }
    assert_eq!(tokenizer.encode_prompt("").unwrap(), [1]);
}

/// `make_sentencepiece.py` says how the data were made.
#[test]
fn sentence_piece_gives_the_librarys_ids_for_a_trained_vocabulary() {
    let data: serde_json::Value = serde_json::from_str(include_str!("sentencepiece.json")).unwrap();
    let list = |name: &str| data[name].as_array().unwrap().iter();
    let file = Writer::default()
        .key("tokenizer.ggml.model", Val::str("llama"))
        .key("tokenizer.ggml.tokens", Val::strs(list("tokens").map(|t| t.as_str().unwrap())))
        .key(
            "tokenizer.ggml.scores",
            Val::Arr(6, list("scores").map(|s| Val::F32(s.as_f64().unwrap() as f32)).collect()),
        )
        .key(
            "tokenizer.ggml.token_type",
            Val::Arr(5, list("kinds").map(|k| Val::I32(k.as_i64().unwrap() as i32)).collect()),
        )
        .build();
    let tokenizer = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    assert!(list("rows").len() > 300);
    for row in list("rows") {
        let text = row["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode_literal(text).unwrap(), ids(&row["ids"]), "{text:?}");
        assert_eq!(tokenizer.decode(&ids(&row["ids"])).unwrap(), row["decoded"].as_str().unwrap());
    }
}

#[test]
fn a_stream_after_a_prompt_keeps_the_first_space_and_one_at_the_start_drops_it() {
    let file = sentence_piece(&["▁a", "▁", "a"], true).build();
    let tokenizer = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    let a = tokenizer.id_of("▁a").unwrap();
    assert_eq!(StreamDecoder::new(&tokenizer).push(a).unwrap(), "a");
    assert_eq!(StreamDecoder::after(&tokenizer, &[a]).push(a).unwrap(), " a");
    assert_eq!(tokenizer.decode(&[1, a, a]).unwrap(), "a a");
    let byte = |b: u32| 3 + b;
    let mut stream = StreamDecoder::new(&tokenizer);
    let pieces: Vec<String> = [byte(0xe2), byte(0x82), byte(0xac), a].map(|id| stream.push(id).unwrap()).to_vec();
    assert_eq!(pieces, ["", "", "€", " a"]);
}

/// The same tiny vocabulary as a folder's files, with each decoder kind.
fn folder(decoder: serde_json::Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (tokens, merges) = tiny_byte_level();
    let vocab: serde_json::Map<String, serde_json::Value> =
        tokens[..258].iter().enumerate().map(|(i, t)| (t.clone(), json!(i))).collect();
    let added = |id: u32, content: &str, special: bool| json!({"id": id, "content": content, "special": special, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
    let tokenizer = json!({
        "version": "1.0",
        "truncation": {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": null,
        "added_tokens": [added(258, "<|x y|>", true), added(259, "<|eot_id|>", true), added(260, "café", false)],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|x y|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|x y|>": {"id": "<|x y|>", "ids": [258], "tokens": ["<|x y|>"]}}},
        "decoder": decoder,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    });
    let write =
        |name: &str, value: serde_json::Value| std::fs::write(dir.path().join(name), value.to_string()).unwrap();
    write("tokenizer.json", tokenizer);
    write("tokenizer_config.json", json!({"bos_token": {"content": "<|x y|>"}, "eos_token": "<|eot_id|>"}));
    write("generation_config.json", json!({"eos_token_id": [259, 7]}));
    write("config.json", json!({"eos_token_id": 8}));
    dir
}

#[test]
fn a_folder_gives_the_same_ids_and_its_special_tokens_from_all_files() {
    let dir = folder(json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}));
    let tokenizer = Tokenizer::from_folder(dir.path()).unwrap();
    assert_eq!((tokenizer.bos_id(), tokenizer.eos_ids()), (Some(258), &[259, 7, 8][..]));
    assert_eq!(tokenizer.encode("abc<|x y|>café abc").unwrap().len(), 5, "truncation of training is off");
    assert_eq!(tokenizer.encode_prompt("ab").unwrap(), [258, 256]);
    assert_eq!(tokenizer.encode_prompt("<|x y|>ab").unwrap(), [258, 256]);
    assert_eq!(tokenizer.decode(&[258, 257, 260]).unwrap(), "abccafé");
    let file = tiny_gguf("gpt-2").build();
    let twin = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    // Random bytes are mostly no UTF-8; id 260, "café" as plain text, is what the library garbles.
    let library = tokenizers::Tokenizer::from_file(dir.path().join("tokenizer.json")).unwrap();
    let mut random = Lcg(6);
    for _ in 0..500 {
        let ids: Vec<u32> = (0..12).map(|_| random.below(260) as u32).collect();
        assert_eq!(tokenizer.decode(&ids).unwrap(), library.decode(&ids, true).unwrap());
        assert_eq!(tokenizer.decode_with_special(&ids).unwrap(), library.decode(&ids, false).unwrap());
    }
    for text in ["abc ab café", "x<|eot_id|>y", "žluťoučký\n\n"] {
        assert_eq!(tokenizer.encode(text).unwrap(), twin.encode(text).unwrap());
        assert_eq!(tokenizer.encode_literal(text).unwrap(), twin.encode_literal(text).unwrap());
    }
}

#[test]
fn decoders_of_other_kinds_stream_as_the_library_decodes() {
    for decoder in
        [json!({"type": "Metaspace", "replacement": "c", "prepend_scheme": "always", "split": true}), json!(null)]
    {
        let dir = folder(decoder);
        let tokenizer = Tokenizer::from_folder(dir.path()).unwrap();
        let library = tokenizers::Tokenizer::from_file(dir.path().join("tokenizer.json")).unwrap();
        let ids = [257, 256, 98, 99, 100, 257];
        let whole = library.decode(&ids, true).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), whole);
        let mut stream = StreamDecoder::new(&tokenizer);
        let text: String = ids.iter().map(|&id| stream.push(id).unwrap()).collect();
        assert_eq!(text + &stream.finish().unwrap(), whole);
        let mut stream = StreamDecoder::after(&tokenizer, &ids[..2]);
        let text: String = ids[2..].iter().map(|&id| stream.push(id).unwrap()).collect();
        assert_eq!(library.decode(&ids[..2], true).unwrap() + &text + &stream.finish().unwrap(), whole);
    }
}

#[test]
fn folders_without_a_usable_tokenizer_are_errors_that_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = Tokenizer::from_folder(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    std::fs::write(dir.path().join("tokenizer.model"), b"x").unwrap();
    assert!(Tokenizer::from_folder(dir.path()).unwrap_err().to_string().contains("tokenizer.model"));
    for text in ["{", "{}", r#"{"added_tokens": [{"id": 4294967295}]}"#, r#"{"model": {"type": "Martian"}}"#] {
        std::fs::write(dir.path().join("tokenizer.json"), text).unwrap();
        let error = Tokenizer::from_folder(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tokenizer, "{text}");
        assert!(error.path().unwrap().ends_with("tokenizer.json"));
    }
    let dir = folder(json!(null));
    for (name, text, field) in [
        ("tokenizer_config.json", json!({"eos_token": "<nowhere>"}), "eos_token"),
        ("tokenizer_config.json", json!({"bos_token": 7}), "bos_token"),
        ("generation_config.json", json!({"eos_token_id": ["x"]}), "eos_token_id"),
    ] {
        let path = dir.path().join(name);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, text.to_string()).unwrap();
        let error = Tokenizer::from_folder(dir.path()).unwrap_err();
        assert_eq!((error.field(), error.path()), (Some(field), Some(&*path)), "{error}");
        std::fs::write(&path, before).unwrap();
    }
}
