//! Metal kernels compiled for the host and run: `metal_emulator.h` with the function around a body that MLX would write.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use oxmlx::kernel::{GpuLanguage, Kernel, TemplateValue};
use oxmlx::{Array, Dtype, Element};

/// The attributes that MLX looks for in a source, with their types (`mlx/backend/common/metal_kernel.cpp`).
const ATTRIBUTES: [(&str, &str); 20] = [
    ("dispatch_quadgroups_per_threadgroup", "uint"),
    ("dispatch_simdgroups_per_threadgroup", "uint"),
    ("dispatch_threads_per_threadgroup", "uint3"),
    ("grid_origin", "uint3"),
    ("grid_size", "uint3"),
    ("quadgroup_index_in_threadgroup", "uint"),
    ("quadgroups_per_threadgroup", "uint"),
    ("simdgroup_index_in_threadgroup", "uint"),
    ("simdgroups_per_threadgroup", "uint"),
    ("thread_execution_width", "uint"),
    ("thread_index_in_quadgroup", "uint"),
    ("thread_index_in_simdgroup", "uint"),
    ("thread_index_in_threadgroup", "uint"),
    ("thread_position_in_grid", "uint3"),
    ("thread_position_in_threadgroup", "uint3"),
    ("threadgroup_position_in_grid", "uint3"),
    ("threadgroups_per_grid", "uint3"),
    ("threads_per_grid", "uint3"),
    ("threads_per_simdgroup", "uint"),
    ("threads_per_threadgroup", "uint3"),
];

/// An input or an output: row-major memory.
#[derive(Clone)]
pub(crate) struct Buffer {
    pub(crate) shape: Vec<i32>,
    pub(crate) dtype: Dtype,
    pub(crate) bytes: Vec<u8>,
}

impl Buffer {
    /// The values of an array.
    pub(crate) fn of(array: &Array) -> Self {
        fn bytes<T: Element>(array: &Array) -> Vec<u8> {
            bytemuck::cast_slice(&array.to_vec::<T>().unwrap()).to_vec()
        }
        let bytes = match array.dtype() {
            Dtype::Float32 => bytes::<f32>(array),
            Dtype::Float16 => bytes::<oxmlx::f16>(array),
            Dtype::Bfloat16 => bytes::<oxmlx::bf16>(array),
            Dtype::Uint32 => bytes::<u32>(array),
            Dtype::Int32 => bytes::<i32>(array),
            other => panic!("no {other} in these tests"),
        };
        Self { shape: array.shape().to_vec(), dtype: array.dtype(), bytes }
    }

    /// The elements of an output as f64.
    pub(crate) fn to_f64(&self) -> Vec<f64> {
        let of = |width: usize, read: &dyn Fn(&[u8]) -> f64| self.bytes.chunks_exact(width).map(read).collect();
        match self.dtype {
            Dtype::Float32 => of(4, &|b| f32::from_ne_bytes(b.try_into().unwrap()).into()),
            Dtype::Float16 => of(2, &|b| oxmlx::f16::from_ne_bytes(b.try_into().unwrap()).into()),
            Dtype::Bfloat16 => of(2, &|b| oxmlx::bf16::from_ne_bytes(b.try_into().unwrap()).into()),
            Dtype::Int32 => of(4, &|b| i32::from_ne_bytes(b.try_into().unwrap()).into()),
            other => panic!("no {other} in these tests"),
        }
    }
}

/// What the emulator said in place of results.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read by tests of Linux"))]
pub(crate) struct Refused(pub(crate) String);

/// Runs the kernel's Metal source over each list of inputs, all of the same dtypes, in one program; gives the outputs of each.
/// `atomic` kernels have outputs of `atomic<T>`, whose sums may depend on the order of threads.
pub(crate) fn run(kernel: &Kernel, launches: &[Vec<Buffer>], atomic: bool) -> Result<Vec<Vec<Buffer>>, Refused> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("metal_emulator.h"), include_str!("metal_emulator.h")).unwrap();
    let (program, launch_file, outputs) = describe(kernel, launches, atomic);
    fs::write(at("kernel.cpp"), program).unwrap();
    fs::write(at("launches"), launch_file).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    // Contraction would give other roundings than the text asks for.
    let flags = ["-std=c++20", "-O1", "-w", "-ffp-contract=off", "-o", "kernel", "kernel.cpp"];
    let compiled = step(Command::new(compiler).args(flags).current_dir(folder.path()));
    assert!(compiled.status.success(), "{}: {}", kernel.name(), String::from_utf8_lossy(&compiled.stderr));
    let ran = step(Command::new(at("kernel")).args(["launches", "results"]).current_dir(folder.path()));
    if !ran.status.success() {
        return Err(Refused(format!("{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr))));
    }
    let results = fs::read(at("results")).unwrap();
    let mut rest = &results[..];
    let take = |mut out: Buffer, rest: &mut &[u8]| {
        let (bytes, after) = rest.split_at(out.shape.iter().product::<i32>() as usize * width(out.dtype));
        (out.bytes, *rest) = (bytes.to_vec(), after);
        out
    };
    Ok(outputs.into_iter().map(|of| of.into_iter().map(|out| take(out, &mut rest)).collect()).collect())
}

fn step(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{}: {e}", Path::new(command.get_program()).display()))
}

/// The program, the file that it reads, and the outputs of each launch, without values.
fn describe(kernel: &Kernel, launches: &[Vec<Buffer>], atomic: bool) -> (String, Vec<u8>, Vec<Vec<Buffer>>) {
    let mut file = (launches.len() as u64).to_ne_bytes().to_vec();
    let (mut outputs, mut template) = (Vec::new(), None);
    for inputs in launches {
        let described: Vec<(&[i32], Dtype)> = inputs.iter().map(|x| (&x.shape[..], x.dtype)).collect();
        let launch = kernel.launch(&described).unwrap();
        assert_eq!(*template.get_or_insert(launch.template.clone()), launch.template, "one program has one template");
        file.extend(launch.grid.iter().chain(&launch.thread_group).flat_map(|n| n.to_ne_bytes()));
        for input in inputs {
            // A scalar has an axis, as in the node.
            let shape = if input.shape.is_empty() { vec![1] } else { input.shape.clone() };
            file.extend((shape.len() as u64).to_ne_bytes());
            file.extend(shape.iter().flat_map(|n| n.to_ne_bytes()));
            let strides = (0..shape.len()).map(|d| shape[d + 1..].iter().map(|&n| i64::from(n)).product::<i64>());
            file.extend(strides.flat_map(i64::to_ne_bytes));
            file.extend((input.bytes.len() as u64).to_ne_bytes());
            file.extend(&input.bytes);
        }
        for (shape, dtype) in &launch.outputs {
            let count = shape.iter().product::<i32>() as usize;
            file.extend(((count * width(*dtype)) as u64).to_ne_bytes());
            let init = launch.init.map_or(Vec::new(), |value| initial(*dtype, value).repeat(count));
            file.extend((init.len() as u64).to_ne_bytes());
            file.extend(init);
        }
        let out = |(shape, dtype)| Buffer { shape, dtype, bytes: Vec::new() };
        outputs.push(launch.outputs.into_iter().map(out).collect::<Vec<_>>());
    }
    (program(kernel, &launches[0], &outputs[0], &template.unwrap_or_default(), atomic), file, outputs)
}

fn initial(dtype: Dtype, value: f32) -> Vec<u8> {
    match dtype {
        Dtype::Float32 => value.to_ne_bytes().to_vec(),
        Dtype::Int32 => (value as i32).to_ne_bytes().to_vec(),
        other => panic!("no {other} in these tests"),
    }
}

/// The function as MLX writes it, and a `main` that runs it over the launches of a file.
fn program(
    kernel: &Kernel,
    inputs: &[Buffer],
    outputs: &[Buffer],
    template: &[(String, TemplateValue)],
    atomic: bool,
) -> String {
    let source = kernel.source(GpuLanguage::Metal).expect("the kernel has a Metal source");
    let (mut parameters, mut arguments) = (Vec::new(), Vec::new());
    for (i, (name, input)) in kernel.input_names().iter().zip(inputs).enumerate() {
        let ty = type_name(input.dtype);
        parameters.push(format!("const device {ty}* {name}"));
        arguments.push(format!("launch.in<{ty}>({i})"));
        for (suffix, parameter, argument) in [
            ("_shape", "const constant int* ", "shape.data()"),
            ("_strides", "const constant int64_t* ", "strides.data()"),
            ("_ndim", "const constant int& ", "ndim"),
        ] {
            if source.body().contains(&format!("{name}{suffix}")) {
                parameters.push(format!("{parameter}{name}{suffix}"));
                arguments.push(format!("launch.input({i}).{argument}"));
            }
        }
    }
    for (i, (name, output)) in kernel.output_names().iter().zip(outputs).enumerate() {
        let ty = type_name(output.dtype);
        let ty = if atomic { format!("metal::atomic<{ty}>") } else { ty.to_owned() };
        parameters.push(format!("device {ty}* {name}"));
        arguments.push(format!("launch.out<{ty}>({i})"));
    }
    for (name, ty) in ATTRIBUTES.iter().filter(|(name, _)| source.body().contains(name)) {
        parameters.push(format!("{ty} {name}"));
        arguments.push(format!("t.{name}"));
    }
    let of_template = |value: &TemplateValue| match value {
        TemplateValue::Int(n) => ("int", n.to_string()),
        TemplateValue::Bool(b) => ("bool", b.to_string()),
        TemplateValue::Dtype(dtype) => ("typename", type_name(*dtype).to_owned()),
        TemplateValue::DtypeOfInput(_) => panic!("a launch has resolved them"),
    };
    let declared: Vec<String> =
        template.iter().map(|(name, value)| format!("{} {name}", of_template(value).0)).collect();
    let given: Vec<String> = template.iter().map(|(_, value)| of_template(value).1).collect();
    let (declared, given) = match template {
        [] => (String::new(), String::new()),
        _ => (format!("template <{}>\n", declared.join(", ")), format!("<{}>", given.join(", "))),
    };
    format!(
        "#include \"metal_emulator.h\"\n{}\n{declared}[[kernel]] void custom_kernel({}) {{\n{}\n}}\n\
         int main(int, char** files) {{\n\
           std::FILE* from = std::fopen(files[1], \"rb\");\n\
           std::FILE* to = std::fopen(files[2], \"wb\");\n\
           uint64_t launches = 0;\n\
           if (std::fread(&launches, 8, 1, from) != 1) emulator::fail(\"no launches\");\n\
           for (; launches > 0; --launches) {{\n\
             emulator::Launch launch(from, {}, {});\n\
             launch.run([&](const emulator::Thread& t) {{ custom_kernel{given}({}); }}, {}, to);\n\
           }}\n\
           return std::fclose(to);\n\
         }}\n",
        shared_memory(source.header_text()),
        parameters.join(", "),
        shared_memory(source.body()),
        inputs.len(),
        outputs.len(),
        arguments.join(", "),
        !atomic,
    )
}

/// `threadgroup` before a variable becomes `static`, of which there is one for all fibers of the group that runs; before what points or
/// refers to such memory it is dropped.
fn shared_memory(source: &str) -> String {
    let (mut out, mut rest) = (String::new(), source);
    while let Some(at) = rest.find("threadgroup") {
        let (before, from) = rest.split_at(at);
        let after = &from["threadgroup".len()..];
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        out.push_str(before);
        if before.ends_with(is_part) || after.starts_with(is_part) {
            out.push_str("threadgroup");
        } else {
            let declarator = after.split(|c| ";,)=[{".contains(c)).next().unwrap_or(after);
            out.push_str(if declarator.contains(['*', '&']) { "" } else { "static" });
        }
        rest = after;
    }
    out + rest
}

fn width(dtype: Dtype) -> usize {
    match dtype {
        Dtype::Float16 | Dtype::Bfloat16 => 2,
        Dtype::Float32 | Dtype::Uint32 | Dtype::Int32 => 4,
        other => panic!("no {other} in these tests"),
    }
}

/// MLX's name of a dtype in Metal.
fn type_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "bool",
        Dtype::Uint8 => "uint8_t",
        Dtype::Uint16 => "uint16_t",
        Dtype::Uint32 => "uint32_t",
        Dtype::Uint64 => "uint64_t",
        Dtype::Int8 => "int8_t",
        Dtype::Int16 => "int16_t",
        Dtype::Int32 => "int32_t",
        Dtype::Int64 => "int64_t",
        Dtype::Float16 => "float16_t",
        Dtype::Float32 => "float",
        Dtype::Bfloat16 => "bfloat16_t",
        Dtype::Float64 | Dtype::Complex64 => panic!("Metal has no {dtype} here"),
    }
}
