//! How each C++ type crosses the bridge. `$` stands for the parameter's name, or for the value in a return.

use super::ir::{Decl, Param, bare};
use super::table::Table;

/// How a parameter crosses.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// The type in the Rust wrapper.
    pub(crate) rust: String,
    /// Name, cxx type and C++ type of each bridge parameter.
    pub(crate) bridge: Vec<(&'static str, String, String)>,
    /// The wrapper's arguments to the bridge.
    pub(crate) send: &'static str,
    /// The shim's argument to MLX.
    pub(crate) take: &'static str,
}

impl Input {
    /// Whether a raw pointer crosses.
    pub(crate) fn is_pointer(&self) -> bool {
        self.bridge.iter().any(|(_, ty, _)| ty.starts_with('*'))
    }
}

/// How a result crosses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// The type in the Rust wrapper.
    pub(crate) rust: &'static str,
    /// The cxx type.
    pub(crate) bridge: &'static str,
    /// The C++ type.
    pub(crate) cpp: &'static str,
    /// The shim's conversion.
    pub(crate) give: &'static str,
    /// What the wrapper appends to the call.
    pub(crate) then: &'static str,
}

/// C++ type, wrapper type, cxx type, C++ bridge type, `send`, `take`.
type InputRow = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

/// The parameter that is no input.
pub(crate) const WRITER: &str = "std::shared_ptr<io::Writer>";

const INTS: &str = "rust::Slice<const std::int32_t>";
const INPUTS: [InputRow; 33] = [
    ("array", "&Array", "&Array", "const mlx::core::array&", "$", "$"),
    (
        "std::optional<array>",
        "Option<&Array>",
        "*const Array",
        "const mlx::core::array*",
        "opt($)",
        "oxmlx::to_optional($)",
    ),
    ("std::vector<array>", "&[Array]", "&[Array]", "rust::Slice<const mlx::core::array>", "$", "oxmlx::to_arrays($)"),
    ("Shape", "&[i32]", "&[i32]", INTS, "$", "oxmlx::to_shape($)"),
    ("Strides", "&[i64]", "&[i64]", "rust::Slice<const std::int64_t>", "$", "oxmlx::to_strides($)"),
    ("std::vector<int>", "&[i32]", "&[i32]", INTS, "$", "oxmlx::to_ints($)"),
    ("std::pair<int, int>", "IntPair", "IntPair", "IntPair", "$", "oxmlx::to_pair($)"),
    ("std::tuple<int, int, int>", "IntTriple", "IntTriple", "IntTriple", "$", "oxmlx::to_triple($)"),
    (
        "std::vector<std::pair<int, int>>",
        "&[IntPair]",
        "&[IntPair]",
        "rust::Slice<const IntPair>",
        "$",
        "oxmlx::to_pairs($)",
    ),
    ("bool", "bool", "bool", "bool", "$", "$"),
    ("int", "i32", "i32", "std::int32_t", "$", "$"),
    ("float", "f32", "f32", "float", "$", "$"),
    ("double", "f64", "f64", "double", "$", "$"),
    ("size_t", "usize", "usize", "std::size_t", "$", "$"),
    ("uint64_t", "u64", "u64", "std::uint64_t", "$", "$"),
    ("std::optional<int>", "Option<i32>", "OptInt", "OptInt", "$.into()", "oxmlx::to_optional($)"),
    ("std::optional<float>", "Option<f32>", "OptFloat", "OptFloat", "$.into()", "oxmlx::to_optional($)"),
    ("std::optional<bool>", "Option<bool>", "OptBool", "OptBool", "$.into()", "oxmlx::to_optional($)"),
    ("std::optional<Dtype>", "Option<Dtype>", "OptDtype", "OptDtype", "$.into()", "oxmlx::to_optional($)"),
    ("Dtype", "Dtype", "DtypeCode", "DtypeCode", "$.into()", "oxmlx::to_dtype($)"),
    ("Dtype::Kind", "DtypeKind", "DtypeKindCode", "DtypeKindCode", "$.into()", "oxmlx::to_kind($)"),
    ("Dtype::Category", "DtypeCategory", "DtypeCategoryCode", "DtypeCategoryCode", "$.into()", "oxmlx::to_category($)"),
    ("FFTNorm", "FftNorm", "FftNormCode", "FftNormCode", "$.into()", "oxmlx::to_fft_norm($)"),
    ("CompileMode", "CompileMode", "CompileModeCode", "CompileModeCode", "$.into()", "oxmlx::to_compile_mode($)"),
    ("Device", "Device", "DeviceCode", "DeviceCode", "$.into()", "oxmlx::to_device($)"),
    ("Device::DeviceType", "DeviceType", "bool", "bool", "$ == DeviceType::Gpu", "oxmlx::to_device_type($)"),
    ("Stream", "Stream", "StreamCode", "StreamCode", "$.into()", "oxmlx::to_stream($)"),
    (
        "ThreadLocalStream",
        "ThreadLocalStream",
        "StreamCode",
        "StreamCode",
        "$.into()",
        "oxmlx::to_thread_local_stream($)",
    ),
    ("PrintOptions", "i32", "i32", "std::int32_t", "$", "oxmlx::to_print_options($)"),
    (
        "std::optional<Group>",
        "Option<&Group>",
        "*const Group",
        "const mlx::core::distributed::Group*",
        "opt_group($)",
        "oxmlx::to_optional($)",
    ),
    ("std::string", "&str", "&str", "rust::Str", "$", "oxmlx::to_text($)"),
    (
        "std::shared_ptr<io::Reader>",
        "Vec<u8>",
        "Vec<u8>",
        "rust::Vec<std::uint8_t>",
        "$",
        "oxmlx::to_reader(std::move($))",
    ),
    (
        "std::unordered_map<std::string, GGUFMetaData>",
        "&[(String, Metadata)]",
        "&[MetadataParts]",
        "rust::Slice<const MetadataParts>",
        "&metadata_parts($)",
        "oxmlx::to_metadata($)",
    ),
];

/// C++ type and how it comes back.
const OUTPUTS: [(&str, Output); 23] = [
    ("void", Output { rust: "()", bridge: "()", cpp: "void", give: "$", then: "" }),
    ("array", Output { rust: "Array", bridge: "Array", cpp: "mlx::core::array", give: "$", then: "" }),
    (
        "std::vector<array>",
        Output {
            rust: "Vec<Array>",
            bridge: "Vec<Array>",
            cpp: "rust::Vec<mlx::core::array>",
            give: "oxmlx::from_arrays($)",
            then: "",
        },
    ),
    ("std::pair<array, array>", PAIR),
    ("std::tuple<array, array>", PAIR),
    ("bool", Output { rust: "bool", bridge: "bool", cpp: "bool", give: "$", then: "" }),
    ("int", Output { rust: "i32", bridge: "i32", cpp: "std::int32_t", give: "$", then: "" }),
    ("size_t", Output { rust: "usize", bridge: "usize", cpp: "std::size_t", give: "$", then: "" }),
    ("uint8_t", Output { rust: "u8", bridge: "u8", cpp: "std::uint8_t", give: "$", then: "" }),
    ("char*", Output { rust: "String", bridge: "String", cpp: "rust::String", give: "$", then: "" }),
    (
        "std::ostream",
        Output { rust: "String", bridge: "String", cpp: "rust::String", give: "oxmlx::printed($)", then: "" },
    ),
    (
        "Shape",
        Output {
            rust: "Vec<i32>",
            bridge: "Vec<i32>",
            cpp: "rust::Vec<std::int32_t>",
            give: "oxmlx::from_shape($)",
            then: "",
        },
    ),
    (
        "Dtype",
        Output { rust: "Dtype", bridge: "DtypeCode", cpp: "DtypeCode", give: "oxmlx::from_dtype($)", then: CLOSED },
    ),
    (
        "Dtype::Kind",
        Output {
            rust: "DtypeKind",
            bridge: "DtypeKindCode",
            cpp: "DtypeKindCode",
            give: "oxmlx::from_kind($)",
            then: CLOSED,
        },
    ),
    (
        "Device",
        Output { rust: "Device", bridge: "DeviceCode", cpp: "DeviceCode", give: "oxmlx::from_device($)", then: INTO },
    ),
    (
        "Stream",
        Output { rust: "Stream", bridge: "StreamCode", cpp: "StreamCode", give: "oxmlx::from_stream($)", then: INTO },
    ),
    (
        "ThreadLocalStream",
        Output {
            rust: "ThreadLocalStream",
            bridge: "StreamCode",
            cpp: "StreamCode",
            give: "oxmlx::from_stream($)",
            then: INTO,
        },
    ),
    (
        "std::optional<Stream>",
        Output {
            rust: "Option<Stream>",
            bridge: "OptStream",
            cpp: "OptStream",
            give: "oxmlx::from_optional($)",
            then: INTO,
        },
    ),
    (
        "std::vector<Stream>",
        Output {
            rust: "Vec<Stream>",
            bridge: "Vec<StreamCode>",
            cpp: "rust::Vec<StreamCode>",
            give: "oxmlx::from_streams($)",
            then: EACH,
        },
    ),
    (
        "PrintFormatter",
        Output {
            rust: "PrintFormat",
            bridge: "PrintCode",
            cpp: "PrintCode",
            give: "oxmlx::from_print_format($)",
            then: INTO,
        },
    ),
    (
        "Group",
        Output {
            rust: "Group",
            bridge: "UniquePtr<Group>",
            cpp: "std::unique_ptr<mlx::core::distributed::Group>",
            give: "oxmlx::from_group($)",
            then: INTO,
        },
    ),
    (
        "SafetensorsLoad",
        Output {
            rust: "Safetensors",
            bridge: "SafetensorsParts",
            cpp: "SafetensorsParts",
            give: "oxmlx::from_safetensors($)",
            then: INTO,
        },
    ),
    (
        "GGUFLoad",
        Output { rust: "Gguf", bridge: "GgufParts", cpp: "GgufParts", give: "oxmlx::from_gguf($)", then: INTO },
    ),
];
/// Types too long for a row.
const LONG_OUTPUTS: [(&str, Output); 2] = [
    (
        "std::pair<std::vector<std::vector<int>>, std::string>",
        Output {
            rust: "Contraction",
            bridge: "ContractionParts",
            cpp: "ContractionParts",
            give: "oxmlx::from_contraction($)",
            then: INTO,
        },
    ),
    (
        "std::unordered_map<std::string, std::variant<std::string, size_t>>",
        Output {
            rust: "Vec<(String, Fact)>",
            bridge: "Vec<FactParts>",
            cpp: "rust::Vec<FactParts>",
            give: "oxmlx::from_facts($)",
            then: EACH,
        },
    ),
];
const INTO: &str = ".map(Into::into)";
const EACH: &str = ".map(|all| all.into_iter().map(Into::into).collect())";
const CLOSED: &str = ".and_then(|code| closed(OP, code))";
const PAIR: Output =
    Output { rust: "(Array, Array)", bridge: "ArrayPair", cpp: "ArrayPair", give: "oxmlx::from_pair($)", then: INTO };

/// How `param` of `decl` crosses; `None` when nothing is known of its type.
pub(crate) fn input(decl: &Decl, param: &Param, table: &Table) -> Option<Input> {
    let key = bare(&param.ty);
    if key == "std::string"
        && let Some(mode) = table.mode(&decl.name, &param.name)
    {
        let code = format!("{mode}Code");
        return Some(Input {
            rust: mode.to_owned(),
            bridge: vec![("$", code.clone(), code)],
            send: "$.into()",
            take: "oxmlx::to_text($)",
        });
    }
    let many = |rust: &str, bridge: [(&'static str, &str, &str); 2], send, take| Input {
        rust: rust.to_owned(),
        bridge: bridge.map(|(name, cxx, cpp)| (name, cxx.to_owned(), cpp.to_owned())).to_vec(),
        send,
        take,
    };
    match key {
        "std::optional<std::vector<int>>" => Some(many(
            "Option<&[i32]>",
            [("$_given", "bool", "bool"), ("$", "&[i32]", INTS)],
            "$.is_some(), $.unwrap_or_default()",
            "oxmlx::to_ints($_given, $)",
        )),
        "std::unordered_map<std::string, array>" => Some(many(
            "(&[&str], &[Array])",
            [
                ("$_names", "&[&str]", "rust::Slice<const rust::Str>"),
                ("$", "&[Array]", "rust::Slice<const mlx::core::array>"),
            ],
            "$.0, $.1",
            "oxmlx::to_map<mlx::core::array>($_names, $)",
        )),
        "std::unordered_map<std::string, std::string>" => Some(many(
            "(&[&str], &[&str])",
            [("$_keys", "&[&str]", "rust::Slice<const rust::Str>"), ("$", "&[&str]", "rust::Slice<const rust::Str>")],
            "$.0, $.1",
            "oxmlx::to_map<std::string>($_keys, $)",
        )),
        _ => INPUTS.iter().find(|row| row.0 == key).map(|&(_, rust, cxx, cpp, send, take)| Input {
            rust: rust.to_owned(),
            bridge: vec![("$", cxx.to_owned(), cpp.to_owned())],
            send,
            take,
        }),
    }
}

/// How the result of `decl` crosses; `None` when nothing is known of its type. What a writer was given is a result.
pub(crate) fn output(decl: &Decl) -> Option<Output> {
    if decl.params.iter().any(|p| p.ty == WRITER) {
        return Some(Output {
            rust: "Vec<u8>",
            bridge: "Vec<u8>",
            cpp: "rust::Vec<std::uint8_t>",
            give: "oxmlx::written([&](std::shared_ptr<mlx::core::io::Writer> writer) { $; })",
            then: "",
        });
    }
    let key = bare(&decl.ret);
    OUTPUTS.iter().chain(&LONG_OUTPUTS).find(|row| row.0 == key).map(|row| row.1)
}

/// A C++ name as Rust and the shim have it: snake case, no keyword of either language.
pub(crate) fn ident(name: &str) -> String {
    match name.trim_end_matches('_') {
        "type" => "dtype".to_owned(),
        name @ ("in" | "where" | "ref" | "fn" | "move" | "default" | "new") => format!("{name}_"),
        name => name.to_lowercase(),
    }
}
