//! Memory of this process, where the system tells.

/// Resident memory in bytes: now, and at its highest. `None` where the system doesn't tell (it does on Linux).
pub(super) fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_highest_is_at_least_what_is_resident_now() {
        let (now, highest) = super::resident().unwrap();
        assert!(now > 1 << 20 && highest >= now, "{now} {highest}");
    }
}
