//! The device that tests run on.

use oxmlx::{Device, Stream};

/// The device of `OXMLX_TEST_DEVICE` (`cpu` or `gpu`); the default one when that is not set.
pub(crate) fn device() -> Device {
    match std::env::var("OXMLX_TEST_DEVICE").as_deref() {
        Err(_) | Ok("") => Device::current().unwrap(),
        Ok("cpu") => Device::Cpu,
        Ok("gpu") => Device::Gpu,
        Ok(other) => panic!("OXMLX_TEST_DEVICE is {other:?}: it takes cpu or gpu"),
    }
}

/// Runs `f` with this thread's operations going to that device.
pub(crate) fn on_device<T>(f: impl FnOnce() -> T) -> T {
    match device() {
        chosen if chosen == Device::current().unwrap() => f(),
        chosen => Stream::new(chosen).unwrap().scope(f).unwrap(),
    }
}
