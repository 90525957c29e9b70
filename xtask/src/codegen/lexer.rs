//! Tokens of a C++ header: words, numbers, literals and signs. Comments and preprocessor lines are dropped.
//!
//! A whole grammar (tree-sitter-cpp) would add 40 s of C compilation to every cold `cargo xtask`; declarations at namespace
//! scope need no more than balanced brackets.

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// An identifier or keyword.
    Word(String),
    /// A number, string or character literal, as written.
    Literal(String),
    /// One punctuation character; `::` is the only one of two.
    Sign(&'static str),
}

impl Token {
    /// The token's text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Literal(text) => text,
            Self::Sign(text) => text,
        }
    }

    /// Whether this is the given word or sign.
    pub(crate) fn is(&self, text: &str) -> bool {
        !matches!(self, Self::Literal(_)) && self.text() == text
    }
}

const SIGNS: [&str; 27] = [
    "::", "(", ")", "{", "}", "[", "]", "<", ">", ",", ";", ":", "=", "&", "*", "+", "-", "/", "%", "!", "|", "^", "~",
    "?", ".", "#", "\\",
];

/// Splits a header into tokens.
///
/// # Errors
/// A character that starts no token, or a comment or literal without an end, with its line.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut rest = source;
    let mut line_start = true;
    while let Some(first) = rest.chars().next() {
        let fail =
            |what: &str| format!("line {}: {what}", 1 + source[..source.len() - rest.len()].matches('\n').count());
        if first == '\n' {
            line_start = true;
            rest = &rest[1..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = &rest[rest.find("*/").ok_or_else(|| fail("a comment has no end"))? + 2..];
        } else if first == '#' && line_start {
            rest = &rest[directive_length(rest)..];
        } else {
            line_start = false;
            let (token, length) = one_token(rest).ok_or_else(|| fail(&format!("unexpected {first:?}")))?;
            out.push(token);
            rest = &rest[length..];
        }
    }
    Ok(out)
}

/// The length of a preprocessor line and the lines that continue it.
fn directive_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    length
}

fn one_token(text: &str) -> Option<(Token, usize)> {
    let first = text.chars().next()?;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    if first.is_ascii_digit() {
        // `1e-5`: a sign belongs to the number after an exponent.
        let mut length = 0;
        let mut before = ' ';
        for c in text.chars() {
            if !(word(c) || c == '.' || c == '\'' || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E'))) {
                break;
            }
            before = c;
            length += c.len_utf8();
        }
        return Some((Token::Literal(text[..length].to_owned()), length));
    }
    if word(first) {
        let length = text.find(|c| !word(c)).unwrap_or(text.len());
        return Some((Token::Word(text[..length].to_owned()), length));
    }
    if matches!(first, '"' | '\'') {
        let mut escaped = false;
        for (at, c) in text.char_indices().skip(1) {
            if c == first && !escaped {
                return Some((Token::Literal(text[..=at].to_owned()), at + 1));
            }
            escaped = c == '\\' && !escaped;
        }
        return None;
    }
    SIGNS.iter().find(|sign| text.starts_with(**sign)).map(|sign| (Token::Sign(sign), sign.len()))
}

/// Tokens as text with the blanks that C++ style puts: `const std::optional<array>& a`.
pub(crate) fn join(tokens: &[Token]) -> String {
    let mut out = String::new();
    for (i, token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|b| tokens.get(b));
        let wordy = matches!(token, Token::Word(_) | Token::Literal(_));
        let blank = before.is_some_and(|before| match before {
            Token::Word(_) | Token::Literal(_) => wordy,
            Token::Sign("," | "=") => true,
            Token::Sign("&" | "*" | ">") => wordy,
            Token::Sign(_) => false,
        });
        if blank || token.is("=") {
            out.push(' ');
        }
        out.push_str(token.text());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_directives_leave_no_token() {
        let found = tokens("#define A \\\n  B\nint /* x, */ f(); // g()\n/** h() */").unwrap();
        assert_eq!(join(&found), "int f();");
    }

    #[test]
    fn numbers_keep_their_exponent() {
        let found = tokens("1e-5 1.f -2 0x1F").unwrap();
        let texts: Vec<_> = found.iter().map(Token::text).collect();
        assert_eq!(texts, ["1e-5", "1.f", "-", "2", "0x1F"]);
    }

    #[test]
    fn strings_keep_what_looks_like_code() {
        let found = tokens(r#"f("a \" ) // b", 'c')"#).unwrap();
        assert_eq!(found.len(), 6);
        assert_eq!(found[2].text(), r#""a \" ) // b""#);
    }

    #[test]
    fn an_open_comment_is_named_with_its_line() {
        assert_eq!(tokens("int a;\n/* b").unwrap_err(), "line 2: a comment has no end");
    }
}
