//! `macro_rules` run on tokens: enough of the language for macros that declare functions.
//!
//! A call is matched against each arm in order, greedily, as rustc does; a fragment of several tokens (`ty`, `expr` ..) is read by syn.
//! Hygiene plays no part: names of items have none.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};

/// The arms of a macro.
pub(super) struct Macro(Vec<(Vec<Part>, Vec<Part>)>);

/// A part of a pattern or of a body.
enum Part {
    Token(TokenTree),
    /// The name, and in a pattern the kind of fragment.
    Variable(String, String),
    Repeat(Vec<Part>, Option<TokenTree>, char),
    Group(Delimiter, Vec<Part>),
}

/// What a variable stands for: tokens, or one for each turn of a repetition.
#[derive(Clone)]
enum Bound {
    One(TokenStream),
    Many(Vec<Bindings>),
}

type Bindings = BTreeMap<String, Bound>;

impl Macro {
    /// The macro that this definition's tokens declare.
    pub(super) fn parse(tokens: TokenStream) -> Option<Self> {
        let mut arms = Vec::new();
        let mut trees = tokens.into_iter();
        while let Some(TokenTree::Group(pattern)) = trees.next() {
            // `=>`
            trees.next()?;
            trees.next()?;
            let TokenTree::Group(body) = trees.next()? else { return None };
            arms.push((parts(pattern.stream(), true)?, parts(body.stream(), false)?));
            // `;`
            trees.next();
        }
        Some(Self(arms))
    }

    /// What a call with these tokens becomes; `None` when no arm takes them.
    pub(super) fn expand(&self, call: TokenStream) -> Option<TokenStream> {
        let trees: Vec<TokenTree> = call.into_iter().collect();
        self.0.iter().find_map(|(pattern, body)| {
            let mut bindings = Bindings::new();
            let used = matched(pattern, &trees, &mut bindings)?;
            (used == trees.len()).then(|| written(body, &bindings))
        })
    }
}

fn parts(tokens: TokenStream, pattern: bool) -> Option<Vec<Part>> {
    let mut out = Vec::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(p) if p.as_char() == '$' => match trees.next()? {
                TokenTree::Ident(name) if name == "crate" => out.push(Part::Token(TokenTree::Ident(name))),
                TokenTree::Ident(name) => {
                    let mut kind = String::new();
                    if pattern {
                        trees.next()?;
                        kind = trees.next()?.to_string();
                    }
                    out.push(Part::Variable(name.to_string(), kind));
                }
                TokenTree::Group(inner) => {
                    let mut separator = None;
                    let mut next = trees.next()?;
                    if !is_repeat(&next) || trees.peek().is_some_and(|after| is_adjacent_repeat(&next, after)) {
                        separator = Some(next);
                        next = trees.next()?;
                    }
                    let TokenTree::Punct(op) = next else { return None };
                    out.push(Part::Repeat(parts(inner.stream(), pattern)?, separator, op.as_char()));
                }
                other => out.push(Part::Token(other)),
            },
            TokenTree::Group(group) => out.push(Part::Group(group.delimiter(), parts(group.stream(), pattern)?)),
            other => out.push(Part::Token(other)),
        }
    }
    Some(out)
}

fn is_repeat(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(p) if "*+?".contains(p.as_char()))
}

/// `$(..)+*`: the plus separates.
fn is_adjacent_repeat(first: &TokenTree, second: &TokenTree) -> bool {
    matches!(first, TokenTree::Punct(p) if p.as_char() != '?')
        && matches!(second, TokenTree::Punct(p) if "*+".contains(p.as_char()))
}

/// How many trees the pattern takes from the front.
fn matched(pattern: &[Part], trees: &[TokenTree], bindings: &mut Bindings) -> Option<usize> {
    let mut at = 0;
    for part in pattern {
        at += match part {
            Part::Token(token) => (trees.get(at)?.to_string() == token.to_string()).then_some(1)?,
            Part::Variable(name, kind) => {
                let taken = fragment(kind, &trees[at..])?;
                bindings.insert(name.clone(), Bound::One(trees[at..at + taken].iter().cloned().collect()));
                taken
            }
            Part::Group(delimiter, inner) => {
                let TokenTree::Group(group) = trees.get(at)? else { return None };
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let taken = (group.delimiter() == *delimiter).then(|| matched(inner, &inside, bindings))??;
                (taken == inside.len()).then_some(1)?
            }
            Part::Repeat(inner, separator, op) => {
                let (taken, turns) = repeated(inner, separator.as_ref(), *op, &trees[at..]);
                if *op == '+' && turns.is_empty() {
                    return None;
                }
                for name in names(inner) {
                    bindings.insert(name, Bound::Many(turns.clone()));
                }
                taken
            }
        };
    }
    Some(at)
}

fn repeated(inner: &[Part], separator: Option<&TokenTree>, op: char, trees: &[TokenTree]) -> (usize, Vec<Bindings>) {
    let (mut at, mut turns) = (0, Vec::new());
    loop {
        let mut start = at;
        if let (Some(separator), false) = (separator, turns.is_empty()) {
            match trees.get(at) {
                Some(tree) if tree.to_string() == separator.to_string() => start += 1,
                _ => break,
            }
        }
        let mut turn = Bindings::new();
        match matched(inner, &trees[start..], &mut turn) {
            Some(taken) if taken > 0 => {
                at = start + taken;
                turns.push(turn);
            }
            _ => break,
        }
        if op == '?' {
            break;
        }
    }
    (at, turns)
}

fn names(parts: &[Part]) -> Vec<String> {
    parts
        .iter()
        .flat_map(|part| match part {
            Part::Token(_) => Vec::new(),
            Part::Variable(name, _) => vec![name.clone()],
            Part::Repeat(inner, ..) | Part::Group(_, inner) => names(inner),
        })
        .collect()
}

/// How many trees a fragment of this kind takes from the front.
fn fragment(kind: &str, trees: &[TokenTree]) -> Option<usize> {
    let first = trees.first();
    match kind {
        "tt" => first.map(|_| 1),
        "ident" => matches!(first?, TokenTree::Ident(_)).then_some(1),
        "literal" => match first? {
            TokenTree::Literal(_) => Some(1),
            TokenTree::Ident(word) if word == "true" || word == "false" => Some(1),
            TokenTree::Punct(minus) if minus.as_char() == '-' => {
                matches!(trees.get(1)?, TokenTree::Literal(_)).then_some(2)
            }
            _ => None,
        },
        "lifetime" => matches!(first?, TokenTree::Punct(p) if p.as_char() == '\'').then_some(2),
        "ty" => parsed(trees, |input| input.parse::<syn::Type>().map(drop)),
        "expr" => parsed(trees, |input| input.parse::<syn::Expr>().map(drop)),
        "path" => parsed(trees, |input| input.parse::<syn::Path>().map(drop)),
        "meta" => parsed(trees, |input| input.parse::<syn::Meta>().map(drop)),
        "vis" => parsed(trees, |input| input.parse::<syn::Visibility>().map(drop)),
        "block" => matches!(first?, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace).then_some(1),
        "item" => parsed(trees, |input| input.parse::<syn::Item>().map(drop)),
        _ => None,
    }
}

fn parsed(trees: &[TokenTree], read: impl FnOnce(ParseStream<'_>) -> syn::Result<()>) -> Option<usize> {
    let parser = |input: ParseStream<'_>| -> syn::Result<usize> {
        read(input)?;
        Ok(input.parse::<TokenStream>()?.into_iter().count())
    };
    let left = parser.parse2(trees.iter().cloned().collect()).ok()?;
    Some(trees.len() - left)
}

fn written(body: &[Part], bindings: &Bindings) -> TokenStream {
    let mut out = TokenStream::new();
    for part in body {
        match part {
            Part::Token(token) => out.extend([token.clone()]),
            Part::Variable(name, _) => match bindings.get(name) {
                Some(Bound::One(tokens)) => out.extend(tokens.clone()),
                _ => out.extend(format!("${name}").parse::<TokenStream>().unwrap_or_default()),
            },
            Part::Group(delimiter, inner) => {
                out.extend([TokenTree::Group(Group::new(*delimiter, written(inner, bindings)))]);
            }
            Part::Repeat(inner, separator, _) => {
                let turns = names(inner).iter().find_map(|name| match bindings.get(name) {
                    Some(Bound::Many(turns)) => Some(turns.clone()),
                    _ => None,
                });
                for (i, turn) in turns.unwrap_or_default().iter().enumerate() {
                    if let (Some(separator), true) = (separator, i > 0) {
                        out.extend([separator.clone()]);
                    }
                    let mut inside = bindings.clone();
                    inside.extend(turn.clone());
                    out.extend(written(inner, &inside));
                }
            }
        }
    }
    out
}
