//! The device that tests run on: each program includes what it needs.

use oxmlx::{Device, Stream};

/// Makes the device of `OXMLX_TEST_DEVICE` that of the whole process, and gives it.
#[allow(dead_code, reason = "not every program that includes this wants it")]
pub(crate) fn choose() -> Device {
    static CHOSEN: std::sync::OnceLock<Device> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let chosen = device();
        chosen.set_default().unwrap();
        chosen
    })
}

/// Runs `f` on the CPU, where the body of a Rust kernel is, whatever the device of the other tests.
#[allow(dead_code, reason = "not every program that includes this wants it")]
pub(crate) fn on_cpu<T>(f: impl FnOnce() -> T) -> T {
    Device::Cpu.scope(f).unwrap()
}

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
#[allow(dead_code, reason = "not every program that includes this wants it")]
pub(crate) fn on_device<T>(f: impl FnOnce() -> T) -> T {
    match device() {
        chosen if chosen == Device::current().unwrap() => f(),
        chosen => Stream::new(chosen).unwrap().scope(f).unwrap(),
    }
}
