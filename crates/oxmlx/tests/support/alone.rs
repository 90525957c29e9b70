//! Tests that can't share a process.

/// Runs the test of this name in a process of its own and gives false; true in that process.
///
/// For those whose kernel waits for the test: MLX lets few tasks of all streams be under way, and past those a dispatch waits, with the lock
/// held. Behind such a kernel other tests would bring that about, and the test could not go on to release it.
pub(crate) fn alone(name: &str) -> bool {
    const CHILD: &str = "OXMLX_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{told}{}", String::from_utf8_lossy(&run.stderr));
    assert!(told.contains("1 passed"), "there is no test {name}: {told}");
    false
}
