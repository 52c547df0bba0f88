//! Metrics as JSON and in the text format of Prometheus (version 0.0.4).

use std::fmt::Write as _;

use serde_json::{Map, json};

use super::{Description, Histogram, MetricKind, Metrics, Sample, Value};
use crate::Json;

impl MetricKind {
    /// The name of the kind: `counter`, `gauge` or `histogram`.
    ///
    /// ```
    /// assert_eq!(townsquare::metrics::MetricKind::Gauge.as_str(), "gauge");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

impl Metrics {
    /// The metrics as a JSON object: by name the `kind`, the `unit` and the `samples`. A sample has its `labels` and a `value`, or,
    /// of a histogram, `count`, `sum` and `buckets`: pairs of an upper bound and how many values were at most as large.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let metrics = client.metrics()?.to_json();
    /// assert_eq!(metrics["townsquare_catalog_apps"]["samples"][0]["value"], 0.0);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn to_json(&self) -> Json {
        let of_metric = |(metric, samples): (&Description, &[Sample])| {
            let samples: Vec<_> = samples.iter().map(|sample| json_sample(metric, sample)).collect();
            (metric.name.to_owned(), json!({ "kind": metric.kind.as_str(), "unit": metric.unit, "samples": samples }))
        };
        Json::Object(self.iter().map(of_metric).collect())
    }

    /// The metrics in the text format of Prometheus, for an endpoint that it scrapes (`text/plain; version=0.0.4`).
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// assert!(client.metrics()?.to_prometheus().contains("# TYPE townsquare_catalog_apps gauge\ntownsquare_catalog_apps 0\n"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        for (metric, samples) in self.iter() {
            let Description { name, kind, about, .. } = metric;
            let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {}", kind.as_str());
            for Sample { labels, value } in samples {
                let labels: Vec<_> =
                    metric.labels.iter().zip(labels).map(|(name, value)| format!("{name}=\"{value}\"")).collect();
                write_value(&mut text, name, &labels, value);
            }
        }
        text
    }
}

fn json_sample(metric: &Description, sample: &Sample) -> Json {
    let labels = metric.labels.iter().zip(&sample.labels).map(|(name, value)| ((*name).to_owned(), json!(value)));
    let labels: Map<_, _> = labels.collect();
    match &sample.value {
        Value::Number(value) => json!({ "labels": labels, "value": value }),
        Value::Histogram(Histogram { count, sum, buckets }) => {
            json!({ "labels": labels, "count": count, "sum": sum, "buckets": buckets })
        }
    }
}

fn write_value(text: &mut String, name: &str, labels: &[String], value: &Value) {
    let with = |further: Option<String>| {
        let all: Vec<_> = labels.iter().cloned().chain(further).collect();
        if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
    };
    let _ = match value {
        Value::Number(number) => writeln!(text, "{name}{} {number}", with(None)),
        Value::Histogram(Histogram { count, sum, buckets }) => {
            for (bound, count) in buckets {
                let _ = writeln!(text, "{name}_bucket{} {count}", with(Some(format!("le=\"{bound}\""))));
            }
            let rest = with(None);
            let infinite = with(Some("le=\"+Inf\"".to_owned()));
            writeln!(text, "{name}_bucket{infinite} {count}\n{name}_sum{rest} {sum}\n{name}_count{rest} {count}")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{CATALOG_APPS, OPERATION_SECONDS, OPERATIONS};

    fn sample() -> Metrics {
        let mut metrics = Metrics::new();
        metrics.add_number(CATALOG_APPS, 40.0);
        metrics.add(OPERATIONS, &["get_space", "ok"], Value::Number(3.0));
        let histogram = Histogram { count: 3, sum: 1.5, buckets: vec![(0.000_001, 1), (0.5, 2)] };
        metrics.add(OPERATION_SECONDS, &["get_space"], Value::Histogram(histogram));
        metrics
    }

    #[test]
    fn prometheus_reads_the_text() {
        let text = sample().to_prometheus();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            lines,
            [
                "# TYPE townsquare_catalog_apps gauge",
                "townsquare_catalog_apps 40",
                "# TYPE townsquare_operation_seconds histogram",
                "townsquare_operation_seconds_bucket{operation=\"get_space\",le=\"0.000001\"} 1",
                "townsquare_operation_seconds_bucket{operation=\"get_space\",le=\"0.5\"} 2",
                "townsquare_operation_seconds_bucket{operation=\"get_space\",le=\"+Inf\"} 3",
                "townsquare_operation_seconds_sum{operation=\"get_space\"} 1.5",
                "townsquare_operation_seconds_count{operation=\"get_space\"} 3",
                "# TYPE townsquare_operations_total counter",
                "townsquare_operations_total{operation=\"get_space\",outcome=\"ok\"} 3",
            ]
        );
    }

    #[test]
    fn json_has_every_sample() {
        assert_eq!(
            sample().to_json(),
            json!({
                "townsquare_catalog_apps": { "kind": "gauge", "unit": "apps", "samples": [{ "labels": {}, "value": 40.0 }] },
                "townsquare_operation_seconds": { "kind": "histogram", "unit": "seconds", "samples": [
                    { "labels": { "operation": "get_space" }, "count": 3, "sum": 1.5, "buckets": [[0.000_001, 1], [0.5, 2]] }
                ] },
                "townsquare_operations_total": { "kind": "counter", "unit": "calls", "samples": [
                    { "labels": { "operation": "get_space", "outcome": "ok" }, "value": 3.0 }
                ] },
            })
        );
    }
}
