//! Times as the protocols write them.

use std::time::{Duration, UNIX_EPOCH};

use crate::chat::strftime;

/// Seconds since 1970 as RFC 3339 has them, in UTC.
pub(super) fn rfc3339(seconds: u64) -> String {
    strftime("%Y-%m-%dT%H:%M:%SZ", UNIX_EPOCH + Duration::from_secs(seconds)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
    }
}
