//! Chat templates: the real one gives the reference's prompts, foreign ones behave as in Python or are errors.

use oxmlx_lm::template::RenderOptions;
use oxmlx_lm::{ChatTemplate, ErrorKind, Message, ModelFiles, Tokenizer};
use serde_json::json;

use crate::gguf_writer::{Val, Writer};
use crate::support::{json_fixture, smollm2, smollm2_is_left_out};

#[test]
fn smollm2_prompts_have_the_references_ids() {
    if smollm2_is_left_out() {
        return;
    }
    let files = ModelFiles::open(smollm2()).unwrap();
    let tokenizer = files.tokenizer().unwrap();
    let template = files.chat_template(&tokenizer).unwrap();
    let reference = json_fixture("smollm2/reference.json");
    let rows = reference["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    for row in rows {
        let user = row["user"].as_str().unwrap();
        let wanted: Vec<u32> = serde_json::from_value(row["prompt_ids"].clone()).unwrap();
        // The template itself puts the default system prompt first; giving it changes nothing.
        let system = Message::system(reference["system"].as_str().unwrap());
        for messages in [vec![Message::user(user)], vec![system, Message::user(user)]] {
            let text = template.render(&messages).unwrap();
            assert_eq!(tokenizer.encode(&text).unwrap(), wanted, "{user}");
        }
    }
}

fn render(source: &str, messages: &[Message]) -> Result<String, oxmlx_lm::Error> {
    ChatTemplate::new(source)?.render(messages)
}

/// Expected texts are what Jinja2 3.1 prints with `trim_blocks`, `lstrip_blocks` and transformers' `tojson`.
#[test]
fn templates_render_as_in_python() {
    let messages =
        [Message::user(" Hi  "), Message::assistant("a</think>b").with("n", json!({"k": [1, 2.5, null, "é<"]}))];
    let cases = [
        (
            "{% for m in messages %}\n    {% if loop.first %}\n[{{ m.role }}]\n    {% endif %}\n{% endfor %}\n",
            "[user]\n",
        ),
        ("{{ messages[0].content.strip() }}|{{ messages[0]['content'] | trim }}", "Hi|Hi"),
        ("{{ messages[1].content.split('</think>')[-1].upper() }}", "B"),
        ("{{ messages[1].n | tojson }}", r#"{"k": [1, 2.5, null, "é<"]}"#),
        ("{{ messages[1].n | tojson(indent=2) }}", "{\n  \"k\": [\n    1,\n    2.5,\n    null,\n    \"é<\"\n  ]\n}"),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}", r#"{"a":2,"b":1}"#),
        (
            "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "013",
        ),
        (
            "{%- set ns = namespace(x=0) -%}{%- for m in messages -%}{%- set ns.x = ns.x + 1 -%}{%- endfor -%}{{ ns.x }}",
            "2",
        ),
        ("{{ 'tools' if tools is not none else 'none' }}{{ 'T' if undefined_thing is defined else 'F' }}", "noneF"),
        ("{% generation %}a{%- endgeneration %}b{% if add_generation_prompt %}c{% endif %}", "abc"),
        ("{{ strftime_now('%Y') | int > 2024 }}", "True"),
        ("{{ messages[::-1][0].role }}{{ messages | length }}", "assistant2"),
        ("{{ messages[0].content is string }}{{ true }}{{ none }}", "TrueTrueNone"),
    ];
    for (source, wanted) in cases {
        assert_eq!(render(source, &messages).unwrap(), wanted, "{source}");
    }
}

#[test]
fn options_close_the_turn_and_set_variables() {
    let template = ChatTemplate::new("{{ tools[0].name }}{{ enable_thinking }}{{ add_generation_prompt }}").unwrap();
    let options = RenderOptions::default()
        .generation_prompt(false)
        .variable("tools", json!([{"name": "f"}]))
        .variable("enable_thinking", false);
    assert_eq!(template.render_with(&[], &options).unwrap(), "fFalseFalse");
}

#[test]
fn a_template_that_refuses_fails_or_does_not_end_is_an_error_with_its_own_words() {
    let ask = [Message::user("x")];
    let words = |source: &str| {
        let error = render(source, &ask).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Template);
        format!("{error:?}")
    };
    assert!(words("{{ raise_exception('roles must alternate') }}").contains("roles must alternate"));
    assert!(words("{% if %}").contains("syntax error"));
    assert!(words("{{ messages.nothing.deeper }}").contains("undefined"));
    assert!(words("{{ strftime_now('%') }}").contains("strftime_now"));
    let nested = "{% for i in range(10000) %}".repeat(4) + &"{% endfor %}".repeat(4);
    assert!(words(&nested).contains("too many steps"));
    let long = "{% set s = 'abcdefgh' * 100000 %}{% for i in range(9999) %}{{ s }}{% endfor %}";
    assert!(words(long).contains("writes too much"));
    let recursive = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert!(words(recursive).contains("Template"));
    assert!(render(&"{% if true %}".repeat(100_000), &ask).is_err());
    assert!(render(&"(".repeat(100_000), &ask).is_ok());
    assert!(render(&format!("{{{{ {} }}}}", "(".repeat(100_000)), &ask).is_err());
}

fn tokenizer_with(added: &[&str]) -> Tokenizer {
    let mut tokens: Vec<String> = (33u8..127).map(|b| char::from(b).to_string()).collect();
    let first = tokens.len();
    tokens.extend(added.iter().map(|t| t.to_string()));
    let kinds = (0..tokens.len()).map(|i| Val::I32(if i < first { 1 } else { 3 })).collect();
    let file = Writer::default()
        .key("tokenizer.ggml.model", Val::str("gpt2"))
        .key("tokenizer.ggml.tokens", Val::strs(tokens))
        .key("tokenizer.ggml.token_type", Val::Arr(5, kinds))
        .key("tokenizer.ggml.merges", Val::Arr(8, vec![]))
        .key("tokenizer.ggml.bos_token_id", Val::U32(first as u32))
        .build();
    Tokenizer::from_gguf(&oxmlx_lm::gguf::Gguf::parse(&file).unwrap()).unwrap()
}

#[test]
fn chatml_stands_in_only_where_the_vocabulary_has_its_tokens() {
    let empty = Writer::default().build();
    let gguf = oxmlx_lm::gguf::Gguf::parse(&empty).unwrap();
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer_with(&["<|im_start|>", "<|im_end|>"])).unwrap();
    assert_eq!(
        template.render(&[Message::system("s"), Message::user("u")]).unwrap(),
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n"
    );
    let error = ChatTemplate::from_gguf(&gguf, &tokenizer_with(&["<|im_start|>", "<s>"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    assert!(error.to_string().contains("<|im_end|>"), "{error}");
}

#[test]
fn a_folders_template_is_found_in_its_three_places() {
    let dir = tempfile::tempdir().unwrap();
    let tokenizer = tokenizer_with(&["<s>"]);
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let render = || ChatTemplate::from_folder(dir.path(), &tokenizer).and_then(|t| t.render(&[]));
    assert_eq!(render().unwrap_err().kind(), ErrorKind::Template);
    write("tokenizer_config.json", r#"{"chat_template": 5}"#);
    assert_eq!(render().unwrap_err().field(), Some("chat_template"));
    write(
        "tokenizer_config.json",
        r#"{"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]}"#,
    );
    assert_eq!(render().unwrap(), "d");
    write("tokenizer_config.json", r#"{"chat_template": null}"#);
    write("chat_template.json", r#"{"chat_template": "j"}"#);
    assert_eq!(render().unwrap(), "j");
    write("chat_template.jinja", "{{ bos_token }}x{{ eos_token }}");
    assert_eq!(render().unwrap(), "<s>x");
    write("chat_template.jinja", "{% broken");
    assert!(render().unwrap_err().path().unwrap().ends_with("chat_template.jinja"));
}
