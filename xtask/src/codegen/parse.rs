//! Finds the function declarations of a header: a recursive-descent reader of C++ at namespace scope.
//!
//! Classes, enums, aliases and variables are skipped whole; what cannot be read is an error, never a silent gap.

use super::ir::{Decl, Param};
use super::lexer::{Token, join, tokens};

/// Reads every function declared at namespace scope.
///
/// # Errors
/// What could not be read, with the header's name.
pub(crate) fn parse(header: &str, source: &str) -> Result<Vec<Decl>, String> {
    let tokens = tokens(source).map_err(|e| format!("mlx/{header}.h: {e}"))?;
    let mut parser = Parser { header, tokens: &tokens, at: 0, namespaces: Vec::new(), found: Vec::new() };
    parser.file().map_err(|e| format!("mlx/{header}.h: {e}"))?;
    Ok(parser.found)
}

struct Parser<'a> {
    header: &'a str,
    tokens: &'a [Token],
    at: usize,
    namespaces: Vec<String>,
    found: Vec<Decl>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn file(&mut self) -> Result<(), String> {
        let mut template = false;
        while let Some(token) = self.peek() {
            match token.text() {
                "namespace" if token.is("namespace") => self.namespace()?,
                "}" if token.is("}") => {
                    self.at += 1;
                    self.namespaces.pop().ok_or("a closing brace too many")?;
                }
                ";" => self.at += 1,
                "template" => {
                    self.at = balanced(self.tokens, self.at + 1)?;
                    template = true;
                    continue;
                }
                "using" | "typedef" | "static_assert" | "friend" => self.skip_statement()?,
                "class" | "struct" | "enum" | "union" => self.skip_statement()?,
                _ => self.declaration(template)?,
            }
            template = false;
        }
        if self.namespaces.is_empty() { Ok(()) } else { Err("a namespace has no end".to_owned()) }
    }

    fn namespace(&mut self) -> Result<(), String> {
        let open = self.tokens[self.at..].iter().position(|t| t.is("{")).ok_or("a namespace has no body")?;
        self.namespaces.push(join(&self.tokens[self.at + 1..self.at + open]));
        self.at += open + 1;
        Ok(())
    }

    /// Skips to the semicolon that ends a statement, over any braces.
    fn skip_statement(&mut self) -> Result<(), String> {
        while let Some(token) = self.peek() {
            if token.is(";") {
                self.at += 1;
                return Ok(());
            }
            self.at = if token.is("{") || token.is("(") { balanced(self.tokens, self.at)? } else { self.at + 1 };
        }
        Err("a statement has no semicolon".to_owned())
    }

    /// A function, or a variable, which is skipped.
    fn declaration(&mut self, template: bool) -> Result<(), String> {
        let start = self.at;
        let Some(open) = self.parameter_list()? else { return self.skip_statement() };
        let close = balanced(self.tokens, open)?;
        let head = &self.tokens[start..open];
        let params = params(&self.tokens[open + 1..close - 1])?;
        self.at = close;
        let forwards_to = self.body()?;

        let name_at = head.iter().position(|t| t.is("operator")).unwrap_or(head.len() - 1);
        let specifiers = ["inline", "MLX_API", "static", "constexpr", "extern"];
        let is_specifier = |t: &&Token| specifiers.iter().any(|s| t.is(s));
        let ret: Vec<Token> = head[..name_at].iter().filter(|t| !is_specifier(t)).cloned().collect();
        let has = |word: &str| head.iter().any(|t| t.is(word));
        self.found.push(Decl {
            header: self.header.to_owned(),
            namespace: self.namespaces.join("::"),
            name: head[name_at..].iter().map(Token::text).collect(),
            params,
            ret: join(&ret),
            marked: has("MLX_API"),
            inline: has("inline"),
            template,
            forwards_to,
        });
        Ok(())
    }

    /// Where the parameter list of the declaration at hand opens; `None` for a variable.
    fn parameter_list(&self) -> Result<Option<usize>, String> {
        let mut at = self.at;
        while let Some(token) = self.tokens.get(at) {
            match token.text() {
                // `operator()` has a pair of its own before the list.
                "operator" => {
                    let sign = at + 1;
                    let own = if self.tokens.get(sign).is_some_and(|t| t.is("(")) { 2 } else { 0 };
                    let open = self.tokens[sign + own..].iter().position(|t| t.is("("));
                    return Ok(open.map(|o| sign + own + o));
                }
                "<" => at = balanced(self.tokens, at)?,
                "(" => return Ok((at > self.at).then_some(at)),
                "=" | "{" | ";" => return Ok(None),
                _ => at += 1,
            }
        }
        Err("a declaration has no end".to_owned())
    }

    /// Steps over what follows the parameters, and says which function a body of one `return f(..);` calls.
    fn body(&mut self) -> Result<Option<String>, String> {
        while let Some(token) = self.peek() {
            if token.is(";") {
                self.at += 1;
                return Ok(None);
            }
            if token.is("{") {
                let end = balanced(self.tokens, self.at)?;
                let body = &self.tokens[self.at + 1..end - 1];
                self.at = end;
                return match body {
                    [ret, Token::Word(name), open, ..] if ret.is("return") && open.is("(") => {
                        let rest = &body[balanced(body, 2)?..];
                        Ok((rest.len() == 1).then(|| name.clone()))
                    }
                    _ => Ok(None),
                };
            }
            self.at += 1;
        }
        Err("a declaration has no end".to_owned())
    }
}

/// The place after the bracket that closes the one at `open`; `<` counts as a bracket only when it opens the walk or nests in one
/// that did, so that comparisons inside a body are no trouble.
fn balanced(tokens: &[Token], open: usize) -> Result<usize, String> {
    let closer = |t: &Token| match t {
        Token::Sign("(") => Some(")"),
        Token::Sign("{") => Some("}"),
        Token::Sign("[") => Some("]"),
        Token::Sign("<") => Some(">"),
        _ => None,
    };
    let mut at = open;
    let mut expected: Vec<&str> = Vec::new();
    while let Some(token) = tokens.get(at) {
        let angle_scope = expected.is_empty() || expected.last() == Some(&">");
        if expected.last().is_some_and(|e| token.is(e)) {
            expected.pop();
            if expected.is_empty() {
                return Ok(at + 1);
            }
        } else if let Some(end) = closer(token).filter(|end| *end != ">" || angle_scope) {
            expected.push(end);
        } else if expected.is_empty() {
            return Err(format!("{:?} is no bracket", token.text()));
        }
        at += 1;
    }
    Err("a bracket has no end".to_owned())
}

/// Splits a parameter list at its own commas: those of templates, braces and calls belong to types and defaults.
fn params(tokens: &[Token]) -> Result<Vec<Param>, String> {
    let mut out = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut equals = None;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.is(",") {
            out.push(param(&tokens[start..at], equals.map(|e: usize| e - start))?);
            (start, equals) = (at + 1, None);
            at += 1;
        } else if token.is("=") && equals.is_none() {
            equals = Some(at);
            at += 1;
        } else if token.is("(") || token.is("{") || token.is("[") || (token.is("<") && opens_template(tokens, at)) {
            at = balanced(tokens, at)?;
        } else {
            at += 1;
        }
    }
    if start < tokens.len() {
        out.push(param(&tokens[start..], equals.map(|e| e - start))?);
    }
    Ok(out)
}

/// Whether the `<` at `at` opens template arguments: a word before it, nothing but a type up to its `>`.
fn opens_template(tokens: &[Token], at: usize) -> bool {
    let after_word = at.checked_sub(1).is_some_and(|before| matches!(tokens[before], Token::Word(_)));
    let Ok(end) = balanced(tokens, at) else { return false };
    let typed = |t: &Token| match t {
        Token::Word(_) | Token::Literal(_) => true,
        Token::Sign(sign) => matches!(*sign, "::" | "<" | ">" | "," | "&" | "*" | "(" | ")"),
    };
    after_word && tokens[at..end].iter().all(typed)
}

fn param(tokens: &[Token], equals: Option<usize>) -> Result<Param, String> {
    let (declarator, default) = match equals {
        Some(at) => (&tokens[..at], Some(join(&tokens[at + 1..]))),
        None => (tokens, None),
    };
    // A function pointer keeps its name inside: `int (*f)(int)`.
    if let Some(at) = declarator.windows(2).position(|w| w[0].is("(") && w[1].is("*"))
        && let Some(Token::Word(name)) = declarator.get(at + 2)
    {
        let ty = [&declarator[..at + 2], &declarator[at + 3..]].concat();
        return Ok(Param { ty: join(&ty), name: name.clone(), default });
    }
    let named = match declarator {
        [.., before, Token::Word(name)] => {
            let ends_type = matches!(before, Token::Sign(">" | "&" | "*"))
                || (matches!(before, Token::Word(_)) && !before.is("const"));
            ends_type.then_some(name)
        }
        _ => None,
    };
    let (ty, name) = match named {
        Some(name) => (&declarator[..declarator.len() - 1], name.clone()),
        None => (declarator, String::new()),
    };
    if ty.is_empty() {
        return Err(format!("a parameter without a type: {:?}", join(tokens)));
    }
    Ok(Param { ty: join(ty), name, default })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
