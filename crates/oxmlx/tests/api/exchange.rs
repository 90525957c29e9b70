//! What goes in and out: traces as data, files in memory, `ndarray`.

use std::io::{self, Read};

use ndarray::{ArrayD, Axis, array, s};
use oxmlx::transforms::{ExportArgument, ExportStep, export_steps};
use oxmlx::{Array, Dtype, ErrorKind, Result, ops};

/// The steps that `mx.export_function` with a callback tells of the same function in Python MLX 0.32.4.
#[test]
fn a_trace_as_data_is_what_python_tells() -> Result<()> {
    let f = |x: &[Array], _: &[(String, Array)]| Ok(vec![ops::sum_axis(&(ops::exp(&x[0])? * &x[1])?, 0, false)?]);
    let steps = export_steps(f, &[Array::ones::<f32>((2, 3))?, Array::ones::<f32>(3)?], &[], false)?;
    let ExportStep::Inputs(inputs) = &steps[0] else { panic!("{steps:?}") };
    assert_eq!(
        inputs.iter().map(|t| (&t.name[..], &t.shape[..])).collect::<Vec<_>>(),
        [("A", &[2, 3][..]), ("B", &[3][..])]
    );
    assert!(matches!(&steps[1], ExportStep::Keywords(none) if none.is_empty()));
    assert!(matches!(&steps[2], ExportStep::Outputs(out) if out[0].shape == [3] && out[0].dtype == Dtype::Float32));
    assert!(matches!(&steps[3], ExportStep::Constants(none) if none.is_empty()));
    let told: Vec<(&str, &[ExportArgument])> = steps[4..]
        .iter()
        .map(|step| match step {
            ExportStep::Primitive { name, arguments, .. } => (&name[..], &arguments[..]),
            other => panic!("{other:?}"),
        })
        .collect();
    use ExportArgument::{Int, Ints};
    assert_eq!(
        told,
        [
            ("Exp", &[][..]),
            ("Broadcast", &[Ints(vec![2, 3])]),
            ("Multiply", &[]),
            ("Reduce", &[Int(2), Ints(vec![0])]),
            ("Squeeze", &[Ints(vec![0])]),
        ]
    );
    Ok(())
}

#[test]
fn a_trace_tells_constants_names_and_errors() -> Result<()> {
    let held = Array::vector(&[5.0f32, 6.0])?;
    let steps =
        export_steps(move |_, named| Ok(vec![(&named[0].1 * &held)?]), &[], &[("x", Array::ones::<f32>(2)?)], true)?;
    assert!(steps.iter().any(|s| matches!(s, ExportStep::Keywords(k) if k == &[("x".to_owned(), "A".to_owned())])));
    let constants = steps.iter().find_map(|s| match s {
        ExportStep::Constants(constants) => Some(constants[0].1.to_vec::<f32>()),
        _ => None,
    });
    assert_eq!(constants.unwrap()?, [5.0, 6.0]);
    let failing = |x: &[Array], _: &[(String, Array)]| Ok(vec![ops::reshape(&x[0], 7)?]);
    let error = export_steps(failing, &[Array::ones::<f32>(2)?], &[], false).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::InvalidArgument, "reshape"));
    Ok(())
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn files_in_memory_come_back_as_they_went() -> Result<()> {
    use oxmlx::io::{self, GgufValue};
    let x = Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?;
    let (mut npy, mut tensors, mut gguf) = (Vec::new(), Vec::new(), Vec::new());
    io::save_npy_to(&mut npy, &x)?;
    io::save_safetensors_to(&mut tensors, &[("x", x.clone())], &[("k", "v")])?;
    io::save_gguf_to(&mut gguf, &[("x", x.clone())], &[("by", GgufValue::Text("me".into()))])?;
    let values = x.to_vec::<f32>()?;
    assert_eq!(io::load_npy_from(&npy[..])?.to_vec::<f32>()?, values);
    assert_eq!(io::load_safetensors_from(&tensors[..])?.arrays[0].1.to_vec::<f32>()?, values);
    let read = io::load_gguf_from(&gguf[..])?;
    assert_eq!(read.arrays[0].1.to_vec::<f32>()?, values);
    assert!(read.metadata.iter().any(|(key, value)| key == "by" && matches!(value, GgufValue::Text(t) if t == "me")));
    assert_eq!(io::load_gguf_bytes(&gguf[..gguf.len() - 9]).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(io::load_gguf_bytes(b"nothing").unwrap_err().kind(), ErrorKind::Format);
    let kinds = [
        io::load_npy_from(Broken).unwrap_err().kind(),
        io::load_safetensors_from(Broken).unwrap_err().kind(),
        io::load_gguf_from(Broken).unwrap_err().kind(),
        io::save_npy_to(Broken, &x).unwrap_err().kind(),
        io::save_safetensors_to(Broken, &[("x", x.clone())], &[]).unwrap_err().kind(),
        io::save_gguf_to(Broken, &[("x", x)], &[]).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Io; 6]);
    Ok(())
}

#[test]
fn ndarrays_of_any_layout_cross_both_ways() -> Result<()> {
    let n = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let views = [n.view(), n.t(), n.slice(s![.., ..;-1]), n.slice(s![..;-1, 1..])];
    for view in views {
        let a = Array::try_from(&view)?;
        assert_eq!(ArrayD::<f32>::try_from(&a)?, view.into_dyn());
    }
    assert_eq!(Array::from_ndarray(&n.index_axis(Axis(0), 1))?.to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    assert_eq!(Array::scalar(7i64)?.to_ndarray::<i64>()?, ndarray::arr0(7i64).into_dyn());
    assert_eq!(Array::zeros::<f32>((0, 3))?.to_ndarray::<f32>()?.shape(), [0, 3]);
    assert_eq!(Array::scalar(7i64)?.to_ndarray::<i32>().unwrap_err().kind(), ErrorKind::Dtype);
    Ok(())
}
