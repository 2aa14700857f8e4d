//! What is in the text of a chart. How it looks is for eyes: `--svg` writes those of experiments.

use super::*;

/// Efficiency that falls by this much with each doubling.
fn falling(name: &str, by: f64) -> Series {
    let point = |n: i32| (2f64.powi(n), 100.0 - by * f64::from(n - 5) - f64::from(n % 3) * 0.3);
    Series::new(name, (5..=17).map(point).collect())
}

fn efficiency() -> Chart {
    let networks = [
        ("gemini", 1.2),
        ("slingshot", 0.8),
        ("hdr", 0.7),
        ("ethernet", 3.1),
        ("measured", 1.7),
        ("ideal", 0.1),
    ];
    let series = networks.map(|(name, by)| falling(name, by)).to_vec();
    let axes = (Axis::log2("cores"), Axis::percent("efficiency, %"));
    Chart {
        references: vec![
            Series::new("SymGridPar2 fig. 12, end (> 70 %)", vec![(32_768.0, 70.0)]),
            Series::new("a made-up curve", vec![(32.0, 88.0), (1_024.0, 80.0), (32_768.0, 72.0)]),
        ],
        goals: vec![("goal: 70 % at 32,768 cores".to_owned(), 70.0)],
        ..Chart::new("Sum Euler, weak scaling", axes, series)
    }
}

fn messages() -> Chart {
    let point = |n: i32| (2f64.powi(n), 800.0 * 1.7f64.powi(n - 5));
    let series = vec![Series::new("root", (5..=17).map(point).collect())];
    let axes = (Axis::log2("PEs"), Axis::log10("messages/s"));
    Chart {
        goals: vec![("the most that Gemini allows a PE".to_owned(), 2e6)],
        ..Chart::new("Messages of the busiest PE", axes, series)
    }
}

#[test]
fn a_chart_has_its_names_and_marks() {
    let chart = efficiency();
    let svg = chart.svg().expect("a chart");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for part in ["Sum Euler, weak scaling", "cores", "efficiency, %", "gemini", "131072", "100"] {
        assert!(svg.contains(part), "`{part}` is not in {svg}");
    }
    for name in chart.lines().map(|series| &series.name) {
        assert!(svg.contains(&name.replace('>', "&gt;")), "`{name}` is not in {svg}");
    }
    // The first series has 13 circles, the first reference one of two parts; and the legend.
    assert_eq!(svg.matches("<circle").count(), 13 + 2 + 1 + 2);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let mut chart = messages();
    chart.series[0].points.push((0.0, 5.0));
    assert_eq!(
        chart.svg().expect_err("no place").to_string(),
        "the chart `Messages of the busiest PE` cannot show the point (0, 5) of `root`: numbers \
         are finite, and above 0 on a logarithmic axis"
    );
    chart.series.clear();
    let error = chart.svg().expect_err("no points").to_string();
    assert_eq!(error, "the chart `Messages of the busiest PE` has no points");
    let goal = Chart { goals: vec![("none".to_owned(), 0.0)], ..messages() };
    assert!(goal.svg().is_err());
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let error = efficiency().write(Path::new("/nowhere/chart.svg")).expect_err("no folder");
    assert!(error.to_string().starts_with("cannot write the chart /nowhere/chart.svg: No such"));
}
