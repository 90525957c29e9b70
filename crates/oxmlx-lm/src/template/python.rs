//! The Jinja environment that chat templates expect: that of Python's `transformers`.
//!
//! # Source
//! `transformers/utils/chat_template_utils.py`, `_compile_jinja_template`.

use std::io;

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", to_json);
    environment
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime_now(format: String) -> Result<String, Error> {
    jiff::fmt::strtime::format(&format, &jiff::Zoned::now())
        .map_err(|e| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {e}")))
}

/// Python's `json.dumps(value, ensure_ascii=False)`, with its `indent`, `sort_keys` and `separators`.
fn to_json(value: Value, options: Kwargs) -> Result<Value, Error> {
    let failed = |e: serde_json::Error| Error::new(ErrorKind::BadSerialization, "can't write json").with_source(e);
    let ensure_ascii: Option<bool> = options.get("ensure_ascii")?;
    let indent: Option<usize> = options.get("indent")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    options.assert_all_used()?;
    if ensure_ascii == Some(true) {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson with ensure_ascii isn't implemented"));
    }
    let mut json = serde_json::to_value(&value).map_err(failed)?;
    if sort_keys == Some(true) {
        json.sort_all_objects();
    }
    let mut out = Vec::new();
    match (indent, separators.as_deref()) {
        (Some(spaces @ 0..=64), None) => {
            let spaces = " ".repeat(spaces);
            let formatter = PrettyFormatter::with_indent(spaces.as_bytes());
            json.serialize(&mut Serializer::with_formatter(&mut out, formatter)).map_err(failed)?;
        }
        (None, None) => OneLine { item: ", ", key: ": " }.write(&json, &mut out).map_err(failed)?,
        (None, Some([item, key])) => OneLine { item, key }.write(&json, &mut out).map_err(failed)?,
        _ => return Err(Error::new(ErrorKind::InvalidOperation, "tojson: these options together aren't implemented")),
    }
    let text =
        String::from_utf8(out).map_err(|e| Error::new(ErrorKind::BadSerialization, "no utf-8").with_source(e))?;
    Ok(Value::from_safe_string(text))
}

/// JSON on one line with Python's separators.
struct OneLine<'a> {
    item: &'a str,
    key: &'a str,
}

impl OneLine<'_> {
    fn write(self, json: &serde_json::Value, out: &mut Vec<u8>) -> serde_json::Result<()> {
        json.serialize(&mut Serializer::with_formatter(out, self))
    }
}

impl Formatter for OneLine<'_> {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(self.item.as_bytes()) }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.key.as_bytes())
    }
}
