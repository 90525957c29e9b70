//! Backends by name and wheels by system.

use crate::mlx::error::Error;
use crate::mlx::pin::Pin;
use crate::mlx::platform::{Arch, Backend, Host, Os, Platform, choose, version_in};
use crate::{LINUX, MAC};

fn chosen(backend: Backend, host: Host) -> Result<String, Error> {
    let pin = Pin::of_this_tree().expect("the committed pin");
    choose(&pin, backend, &host).map(|wheel| wheel.platform.tag.clone())
}

#[test]
fn newest_wheel_that_the_system_can_load_is_chosen() {
    use Backend::{Cpu, Cuda12, Cuda13, Metal};
    let linux = |arch, version| Host { arch, version, ..LINUX };
    let mac = |version| Host { version, ..MAC };
    for (backend, host, tag) in [
        (Cpu, linux(Arch::X86_64, Some((2, 35))), "manylinux_2_35_x86_64"),
        (Cpu, linux(Arch::X86_64, Some((2, 41))), "manylinux_2_35_x86_64"),
        (Cpu, linux(Arch::X86_64, None), "manylinux_2_35_x86_64"),
        (Cpu, linux(Arch::Aarch64, Some((3, 0))), "manylinux_2_35_aarch64"),
        (Cuda12, linux(Arch::X86_64, Some((2, 36))), "manylinux_2_35_x86_64"),
        (Cuda13, linux(Arch::Aarch64, Some((2, 36))), "manylinux_2_35_aarch64"),
        (Metal, mac(Some((14, 0))), "macosx_14_0_arm64"),
        (Metal, mac(Some((14, 7))), "macosx_14_0_arm64"),
        (Metal, mac(Some((15, 0))), "macosx_15_0_arm64"),
        (Metal, mac(Some((25, 9))), "macosx_15_0_arm64"),
        (Metal, mac(Some((26, 0))), "macosx_26_0_arm64"),
        (Metal, mac(Some((27, 1))), "macosx_26_0_arm64"),
        (Metal, mac(None), "macosx_14_0_arm64"),
    ] {
        assert_eq!(chosen(backend, host).expect("a wheel"), tag, "{backend} on {host}");
    }
}

#[test]
fn system_without_a_wheel_is_told_why() {
    let old = Host { version: Some((2, 31)), ..LINUX };
    let text = chosen(Backend::Cpu, old).expect_err("glibc 2.31").to_string();
    assert!(
        text.contains("manylinux_2_35_x86_64 needs glibc 2.35 or newer, this is Linux x86_64 with glibc 2.31"),
        "{text}"
    );
    assert!(text.contains("MLX_PREFIX"), "{text}");
    for (backend, host) in [
        (Backend::Metal, LINUX),
        (Backend::Cpu, MAC),
        (Backend::Cuda12, MAC),
        (Backend::Metal, Host { arch: Arch::X86_64, ..MAC }),
        (Backend::Metal, Host { version: Some((13, 6)), ..MAC }),
        (Backend::Cpu, Host { arch: Arch::Other, ..LINUX }),
        (Backend::Cpu, Host { musl: true, ..LINUX }),
    ] {
        assert!(matches!(chosen(backend, host), Err(Error::NoWheel { .. })), "{backend} on {host}");
    }
}

#[test]
fn backend_defaults_by_host_and_rejects_other_names() {
    let wanted = |variable, host: &Host| Backend::wanted(variable, host);
    assert_eq!(wanted(None, &LINUX).expect("default"), Backend::Cpu);
    assert_eq!(wanted(None, &MAC).expect("default"), Backend::Metal);
    assert_eq!(wanted(None, &Host { arch: Arch::X86_64, ..MAC }).expect("default"), Backend::Cpu);
    for backend in Backend::ALL {
        assert_eq!(wanted(Some(backend.name()), &LINUX).expect("a known name"), backend);
    }
    for name in ["gpu", "CPU", "cuda", "cpu "] {
        let text = wanted(Some(name), &LINUX).expect_err("an unknown name").to_string();
        assert_eq!(text, format!("OXMLX_BACKEND={name}: expected cpu, cuda12, cuda13 or metal"));
    }
}

#[test]
fn host_is_made_from_rusts_names() {
    assert_eq!(Host::new("linux", "x86_64", "gnu").expect("Linux"), Host { version: None, ..LINUX });
    assert_eq!(Host::new("macos", "aarch64", "").expect("macOS"), Host { version: None, ..MAC });
    assert!(Host::new("linux", "x86_64", "musl").expect("Linux").musl);
    let text = Host::new("windows", "x86_64", "msvc").expect_err("Windows").to_string();
    assert_eq!(text, "oxmlx runs on Linux and macOS, not on windows");
}

#[test]
fn platform_tags_are_read_or_refused() {
    let mac = Platform::parse("macosx_26_0_arm64").expect("a tag");
    assert_eq!((mac.os, mac.arch, mac.minimum), (Os::MacOs, Arch::Aarch64, (26, 0)));
    for tag in [
        "",
        "any",
        "manylinux",
        "manylinux_2",
        "manylinux_2_35",
        "manylinux_2_x_x86_64",
        "win_2_35_x86_64",
        "linux_x86_64",
    ] {
        assert_eq!(Platform::parse(tag), None, "{tag}");
    }
}

#[test]
fn versions_are_found_in_what_systems_print() {
    assert_eq!(version_in("glibc 2.36"), Some((2, 36)));
    assert_eq!(version_in("15.3.1\n"), Some((15, 3)));
    assert_eq!(version_in("26.0"), Some((26, 0)));
    assert_eq!(version_in("no version"), None);
    assert_eq!(version_in(""), None);
}
