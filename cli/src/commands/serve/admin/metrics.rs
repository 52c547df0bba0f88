//! The metrics: plots of the last minutes, and every value as a table.

use std::fmt::Write as _;

use maud::{Markup, html};
use townsquare::metrics::{Histogram, Value};

use super::{
    Admin,
    page::{Page, number, table},
    page_error::PageError,
    samples::{INTERVAL, MOST_SAMPLES, SERIES, Sample},
};

/// The size of a plot, in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;

pub(super) async fn page(admin: &Admin) -> Result<Page, PageError> {
    let metrics = admin.client.metrics().await?;
    let samples = admin.samples.all();
    let minutes = INTERVAL.as_secs() * MOST_SAMPLES as u64 / 60;
    let mut rows = Vec::new();
    let mut times = Vec::new();
    for (metric, found) in metrics.iter() {
        for sample in found {
            let labels = html! {
                @for (name, value) in metric.labels.iter().zip(&sample.labels) { span.item { (name) "=" (value) } " " }
            };
            let name = html! { code title=(metric.about) { (metric.name.trim_start_matches("townsquare_")) } };
            match &sample.value {
                Value::Number(value) => {
                    rows.push(vec![name, labels, html! { (short(*value)) }, html! { (metric.unit) }]);
                }
                Value::Histogram(histogram) => times.push(vec![
                    name,
                    labels,
                    html! { (number(histogram.count)) },
                    html! { (milliseconds(mean(histogram))) },
                    html! { (bound(histogram, 0.95)) },
                ]),
            }
        }
    }
    let body = html! {
        p {
            "The last " (minutes) " minutes, measured every " (INTERVAL.as_secs()) " s. "
            "The admin page itself makes calls and has subscriptions. "
            code { "/metrics" } " has the same values for Prometheus."
        }
        div.plots { @for (place, (name, unit)) in SERIES.iter().enumerate() { (plot(name, unit, &samples, place)) } }
        h2 { "Values" }
        (table(&["Metric", "Labels", "Value", "Unit"], rows))
        h2 { "Times" }
        (table(&["Metric", "Labels", "Count", "Mean", "95 % at most"], times))
    };
    Ok(Page::new("Metrics", "Metrics", body).refreshed(5))
}

/// A plot of one series, with its last and its highest value as text.
fn plot(name: &str, unit: &str, samples: &[Sample], place: usize) -> Markup {
    let values: Vec<_> = samples.iter().map(|sample| sample[place]).collect();
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let last = values.last().copied().flatten();
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let highest_shown = format!("highest {}{unit}", short(highest));
    let label = format!("{name}, {highest_shown}");
    html! {
        figure {
            figcaption {
                span { (name) }
                strong { @match last { Some(value) => { (short(value)) (unit) } None => "–" } }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                line.axis x1="0" x2=(WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
                path.area d=(path(&values, highest, true)) {}
                path.line d=(path(&values, highest, false)) {}
            }
            small { (highest_shown) }
        }
    }
}

/// The path through the values, the last one at the right edge. A value that was not measured breaks the line.
fn path(values: &[Option<f64>], highest: f64, is_area: bool) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a place is at most MOST_SAMPLES")]
    let x = |place: usize| WIDTH - (values.len() - 1 - place) as f64 * WIDTH / (MOST_SAMPLES - 1) as f64;
    let y = |value: f64| if highest > 0.0 { HEIGHT - 1.0 - value / highest * (HEIGHT - 3.0) } else { HEIGHT - 1.0 };
    let mut path = String::new();
    let mut begun: Option<usize> = None;
    let end_area = |path: &mut String, begun: usize, end: usize| {
        let _ = write!(path, "L{:.1} {HEIGHT}L{:.1} {HEIGHT}Z", x(end), x(begun));
    };
    for (place, value) in values.iter().enumerate() {
        match (value, begun) {
            (Some(value), None) => {
                begun = Some(place);
                let _ = write!(path, "M{:.1} {:.1}", x(place), y(*value));
            }
            (Some(value), Some(_)) => {
                let _ = write!(path, "L{:.1} {:.1}", x(place), y(*value));
            }
            (None, Some(from)) => {
                if is_area {
                    end_area(&mut path, from, place - 1);
                }
                begun = None;
            }
            (None, None) => {}
        }
    }
    if let (true, Some(from)) = (is_area, begun) {
        end_area(&mut path, from, values.len() - 1);
    }
    path
}

fn mean(histogram: &Histogram) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a count beyond 2^53 is not reached")]
    let count = histogram.count.max(1) as f64;
    histogram.sum / count
}

/// The bound that this share of the values does not exceed.
fn bound(histogram: &Histogram, share: f64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a count beyond 2^53 is not reached")]
    let reaches = |count: u64| count as f64 >= histogram.count as f64 * share;
    let bound = histogram.buckets.iter().find(|(_, count)| reaches(*count));
    match (bound, histogram.buckets.last()) {
        (Some((bound, _)), _) => milliseconds(*bound),
        (None, Some((last, _))) => format!("over {}", milliseconds(*last)),
        (None, None) => "–".to_owned(),
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{} ms", short(seconds * 1_000.0))
}

/// A number with as many digits as a person reads.
fn short(value: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a metric is not negative and below 2^53"
    )]
    let whole = || number(value.round() as u64);
    match value {
        _ if value.fract() == 0.0 || value >= 100.0 => whole(),
        _ if value >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_at_the_right_edge_and_breaks_where_nothing_was_measured() {
        let values = [Some(1.0), Some(2.0), None, Some(0.0)];
        let line = path(&values, 2.0, false);
        assert_eq!(line.matches('M').count(), 2, "{line}");
        assert!(line.ends_with("M240.0 47.0"), "{line}");
        let area = path(&values, 2.0, true);
        assert_eq!(area.matches('Z').count(), 2, "{area}");
        assert_eq!(path(&[], 0.0, true), "");
        assert!(!path(&[Some(0.0), Some(0.0)], 0.0, true).contains("NaN"));
    }

    #[test]
    fn numbers_are_short() {
        for (value, shown) in [(0.0, "0"), (0.1234, "0.123"), (1.26, "1.3"), (123.4, "123"), (12_345.0, "12,345")] {
            assert_eq!(short(value), shown);
        }
    }
}
