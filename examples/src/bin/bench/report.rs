//! Prints the figures with their goals, and whether the goals are reached.

use crate::launch::{self, Bench};
use crate::sample::{Sample, Unit};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::process::Command;
use ultramarine::Result;

/// The figures of the benchmarks. Each is printed as soon as it is known. Figures with goals are
/// printed again at the end, as a table.
#[derive(Default)]
pub(crate) struct Report {
    benchmark: &'static str,
    summary: Vec<[String; 5]>,
}

/// The goal of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn shown(self, unit: Unit) -> String {
        match self {
            Goal::AtMost(limit) => format!("≤ {}", unit.shown_exactly(limit)),
            Goal::AtLeast(limit) => format!("≥ {}", unit.shown_exactly(limit)),
        }
    }

    fn is_reached(self, value: f64) -> bool {
        match self {
            Goal::AtMost(limit) => value <= limit,
            Goal::AtLeast(limit) => value >= limit,
        }
    }
}

impl Report {
    pub(crate) fn begin(&mut self, benchmark: &'static str, about: &str) {
        self.benchmark = benchmark;
        println!("{benchmark}: {about}");
    }

    /// Reports a figure without a goal.
    pub(crate) fn figure(&self, what: &str, sample: &Sample, unit: Unit) {
        self.line(what, &sample.shown(unit), "");
    }

    /// Reports a figure and its goal, if it has one, which the median reaches or not.
    pub(crate) fn goal(
        &mut self,
        what: &str,
        sample: &Sample,
        unit: Unit,
        goal: impl Into<Option<Goal>>,
    ) {
        let Some(goal) = goal.into() else { return self.figure(what, sample, unit) };
        let figure = sample.shown(unit);
        let verdict = if goal.is_reached(sample.median()) { "reached" } else { "not reached" };
        let goal = goal.shown(unit);
        self.line(what, &figure, &format!("goal {goal}: {verdict}"));
        self.enter(what, figure, goal, verdict);
    }

    /// Runs programs in turn that have the same result, as [`Bench::in_turn`] does; reports and
    /// returns their times, in seconds.
    pub(crate) fn contest<const N: usize>(
        &self,
        bench: &Bench,
        rounds: usize,
        work: &str,
        contenders: [(&str, Command); N],
        known: impl Into<Option<Value>>,
    ) -> Result<[Sample; N]> {
        let names = contenders.each_ref().map(|(name, _)| format!("{work}: {name}"));
        let programs = contenders.map(|(_, program)| program);
        let found = bench.in_turn(rounds, programs, known)?;
        let seconds = found.map(|printed| Sample::of(&printed, |printed| printed.seconds));
        for (name, seconds) in names.iter().zip(&seconds) {
            self.figure(name, seconds, Unit::SECONDS);
        }
        Ok(seconds)
    }

    /// The output of another program, if there is one. If it fails, that is reported, and it is not
    /// run again.
    pub(crate) fn other<T: DeserializeOwned>(
        &mut self,
        what: &str,
        program: &mut Option<Command>,
    ) -> Option<T> {
        let found = launch::run(program.as_mut()?).and_then(|done| done.json());
        if let Err(error) = &found {
            self.missing(what, &error.to_string());
            *program = None;
        }
        found.ok()
    }

    /// Reports figures that could not be measured.
    pub(crate) fn missing(&mut self, what: &str, reason: &str) {
        self.line(what, &format!("not measured: {reason}"), "");
        self.enter(what, "not measured".to_owned(), String::new(), "");
    }

    #[expect(clippy::unused_self, reason = "lines belong to the report")]
    pub(crate) fn text(&self, text: &str) {
        text.lines().for_each(|line| println!("    {line}"));
    }

    #[expect(clippy::unused_self, reason = "lines belong to the report")]
    fn line(&self, what: &str, figure: &str, goal: &str) {
        println!("{}", format!("  {what:<58} {figure:<28} {goal}").trim_end());
    }

    fn enter(&mut self, what: &str, figure: String, goal: String, verdict: &str) {
        let benchmark = self.benchmark.to_owned();
        self.summary.push([benchmark, what.to_owned(), figure, goal, verdict.to_owned()]);
    }

    pub(crate) fn print_summary(&self) {
        let head = ["benchmark", "figure", "measured", "goal", ""].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(&head).chain(&self.summary).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<_> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
        println!();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}
