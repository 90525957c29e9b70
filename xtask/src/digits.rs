//! The handwritten digits that an example learns: a file that scikit-learn's wheel ships, fetched into the cache folder and checked.

use std::path::PathBuf;

use crate::error::Error;
use crate::mlx::pin::{Download, Model};
use crate::mlx::provision::{self, Pip};
use crate::mlx::world::{self, System};

/// One line of 64 grey values and a digit for each of 1,797 pictures. It is the same in every wheel of the release; this one
/// is fetched on every host.
fn digits() -> Model {
    Model {
        download: Download {
            package: "scikit-learn".to_owned(),
            version: "1.7.2".to_owned(),
            file: "scikit_learn-1.7.2-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl".to_owned(),
            bytes: 9_478_381,
            sha256: "e5bf3d930aee75a65478df91ac1225ff89cd28e9ac7bd1196853a9229b6adb0b".to_owned(),
        },
        member: "sklearn/datasets/data/digits.csv.gz".to_owned(),
        bytes: 57_523,
        sha256: "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22".to_owned(),
    }
}

/// The file, fetched unless it is there.
pub(crate) fn ready() -> Result<PathBuf, Error> {
    let host = world::this_host(&System)?;
    let model = digits();
    let target = world::cache(&System, host.os)?.join("data").join(model.file());
    provision::provision_model(&model, &target, &Pip)?;
    Ok(target)
}
