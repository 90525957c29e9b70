//! What the parser finds in a header and everything later works on: one [`Decl`] a function declaration.

/// One parameter of a C++ function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// The type as written, with normalised blanks: `const std::optional<array>&`.
    pub(crate) ty: String,
    /// The name; empty when the header gives none.
    pub(crate) name: String,
    /// The text of the default argument.
    pub(crate) default: Option<String>,
}

/// One function declared at namespace scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decl {
    /// The header below `mlx/` without its extension: `ops`, `distributed/ops`.
    pub(crate) header: String,
    /// The namespace: `mlx::core::fast`.
    pub(crate) namespace: String,
    /// The name; an operator's holds its sign: `operator<<`.
    pub(crate) name: String,
    /// The parameters in order.
    pub(crate) params: Vec<Param>,
    /// The return type as written, without specifiers.
    pub(crate) ret: String,
    /// Marked `MLX_API`.
    pub(crate) marked: bool,
    /// Marked `inline`.
    pub(crate) inline: bool,
    /// Declared by a `template`.
    pub(crate) template: bool,
    /// The body is nothing but `return f(..);` and this is `f`.
    pub(crate) forwards_to: Option<String>,
}

impl Decl {
    /// The declaration on one line, defaults included.
    pub(crate) fn signature(&self) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| {
                let name = if p.name.is_empty() { String::new() } else { format!(" {}", p.name) };
                let default = p.default.as_ref().map(|d| format!(" = {d}")).unwrap_or_default();
                format!("{}{name}{default}", p.ty)
            })
            .collect();
        format!("{} {}({})", self.ret, self.name, params.join(", "))
    }

    /// The parameters that a caller gives: all but the stream.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| p.ty != "StreamOrDevice")
    }

    /// Whether the function is public API: marked `MLX_API`, or an inline function that is no template, in a namespace that is
    /// documented as API. `env` and `detail` are not: they lean on symbols that the library keeps to itself.
    pub(crate) fn is_public(&self) -> bool {
        const NAMESPACES: [&str; 6] = ["", "::fast", "::linalg", "::fft", "::random", "::distributed"];
        let known = self.namespace.strip_prefix("mlx::core").is_some_and(|rest| NAMESPACES.contains(&rest));
        known && !self.template && (self.marked || self.inline)
    }
}

/// A type without outer `const` and `&`: the key into the type maps.
pub(crate) fn bare(ty: &str) -> &str {
    ty.strip_prefix("const ").unwrap_or(ty).trim_end_matches('&').trim_end()
}
