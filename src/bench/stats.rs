//! Distributions: the mean, and percentiles as MaskBench takes them, `sorted[int(n * p / 100)]`.

use serde_json::{Map, Value, json};

/// Percentiles of reports, in tenths of a percent.
const PERCENTILES: [(usize, &str); 7] =
    [(250, "p25"), (500, "p50"), (750, "p75"), (900, "p90"), (950, "p95"), (990, "p99"), (999, "p99.9")];

/// Sorted values.
#[derive(Debug, Clone, Default)]
pub(super) struct Distribution(Vec<f64>);

impl Distribution {
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn mean(&self) -> Option<f64> {
        // Counts stay far below 2^53.
        #[expect(clippy::cast_precision_loss, reason = "as above")]
        let count = self.0.len() as f64;
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / count)
    }

    /// The percentile, in tenths of a percent.
    pub(super) fn at(&self, tenths: usize) -> Option<f64> {
        let index = (self.0.len() * tenths / 1000).min(self.0.len().saturating_sub(1));
        self.0.get(index).copied()
    }

    /// `n`, `avg`, the percentiles and `max`; `n` alone where there is nothing.
    pub(super) fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("n".into(), json!(self.len()));
        if let Some(mean) = self.mean() {
            object.insert("avg".into(), rounded(mean));
            for (tenths, name) in PERCENTILES {
                object.insert(name.into(), rounded(self.at(tenths).unwrap_or_default()));
            }
            object.insert("max".into(), rounded(self.0.last().copied().unwrap_or_default()));
        }
        Value::Object(object)
    }

    /// Points of the cumulative distribution for a plot: `[share, value]`, denser towards the end.
    pub(super) fn curve(&self) -> Value {
        let tenths = (0..990).step_by(10).chain(990..1000);
        let point = |tenths: usize| json!([tenths, rounded(self.at(tenths).unwrap_or_default())]);
        if self.0.is_empty() { json!([]) } else { tenths.map(point).collect() }
    }
}

/// To hundredths.
pub(super) fn rounded(value: f64) -> Value {
    json!((value * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_official_runner() {
        let hundred = Distribution::of((0..100).rev().map(f64::from));
        assert_eq!((hundred.at(500), hundred.at(999), hundred.at(250)), (Some(50.0), Some(99.0), Some(25.0)));
        let three = Distribution::of([3.0, 1.0, 2.0]);
        assert_eq!((three.at(250), three.at(500), three.at(750)), (Some(1.0), Some(2.0), Some(3.0)));
        assert_eq!(three.to_json()["avg"], json!(2.0));
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Distribution::default().to_json(), json!({"n": 0}));
        assert_eq!(Distribution::default().at(500), None);
    }
}
