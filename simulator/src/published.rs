//! What the papers have published, as data: the figures that a simulation is held against.
//!
//! Only numbers that stand in the text of a paper are here. Curves that are known from a drawing
//! alone are not: of most figures that leaves the last point.
//!
//! | paper | what |
//! |---|---|
//! | `SymGridPar2`: Maier, Stewart, Trinder, *Reliable Scalable Symbolic Computation: The Design of `SymGridPar2`* | [`SUM_EULER_STRONG`], [`SUM_EULER_WEAK`], [`weak_scaling`] |
//! | HdpH-RS: Stewart, *Reliable Massively Parallel Symbolic Computing: Fault Tolerance for a Distributed Haskell*, doctoral thesis, 2013 | [`LIOUVILLE`], [`FIBONACCI`], [`FIVE_DEATHS`] |
//!
//! HdpH-RS gives no speedup of Queens: it ran only with random deaths (table 6.5).
//!
//! This module must never know what our own figures are.

/// A result of a paper, on a number of cores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Published {
    /// The program and what ran it.
    pub name: &'static str,
    /// The machine.
    pub machine: &'static str,
    /// Paper and section or figure.
    pub source: &'static str,
    /// The number of cores.
    pub cores: u32,
    /// The speedup over one core, unless the constant says otherwise.
    pub value: f64,
}

impl Published {
    /// What to call it in a chart: name, machine and source.
    pub fn label(&self) -> String {
        format!("{}, {} ({})", self.name, self.machine, self.source)
    }
}

const RELAXED: &str = "parMap2LevelRelaxed";
const SECTION: &str = "SymGridPar2 §6.2";

/// Speedups of Sum Euler over one core: 96,000 integers, φ by a naive algorithm in Haskell
/// (figure 11). Sequential: [`SUM_EULER_SEQUENTIAL_S`].
pub const SUM_EULER_STRONG: [Published; 2] = [
    Published { name: RELAXED, machine: "Beowulf", source: SECTION, cores: 240, value: 169.0 },
    Published { name: RELAXED, machine: "HECToR", source: SECTION, cores: 256, value: 167.0 },
];

/// The same by random stealing, of which the text says that it is below this.
pub const SUM_EULER_STOLEN_BELOW: Published = Published {
    name: "random work stealing",
    machine: "Beowulf",
    source: "SymGridPar2 §6.2, note 3",
    cores: 240,
    value: 20.0,
};

/// Seconds that [`SUM_EULER_STRONG`] takes on one core of the Beowulf and of `HECToR`.
pub const SUM_EULER_SEQUENTIAL_S: [f64; 2] = [941.7, 780.2];

/// Efficiency of Sum Euler in percent of the estimated ideal, on 1,024 nodes of `HECToR` (figure
/// 12): "steadily declining, yet remains above 70 % even on 32K cores". The input is that of
/// [`weak_scaling`], φ by GAP.
pub const SUM_EULER_WEAK: Published = Published {
    name: "parMap2Level and parMap2LevelRelaxed",
    machine: "HECToR",
    source: "SymGridPar2 fig. 12",
    cores: 32_768,
    value: 70.0,
};

/// The time of the weak scaling experiment over the ideal one, on 32,768 cores: "within a factor of
/// 1.5" (§6.2).
pub const SUM_EULER_WEAK_TIME: f64 = 1.5;

/// How many integers the weak scaling experiment sums φ over on this many cores: 6.25 million on
/// 32, and twice as many on twice as many, to 6.4 billion on 32,768 (§6.2).
///
/// ```
/// use ultramarine_simulator::published::weak_scaling;
/// assert_eq!([32, 64, 32_768].map(weak_scaling), [6_250_000, 12_500_000, 6_400_000_000]);
/// ```
pub const fn weak_scaling(cores: u64) -> u64 {
    6_250_000 * cores / 32
}

const fn hdph_rs(name: &'static str, machine: &'static str, cores: u32, value: f64) -> Published {
    Published { name, machine, source: "HdpH-RS §6.4.2", cores, value }
}

/// Speedups of the Liouville function without supervision. `par` steals work lazily, `push` places
/// it eagerly.
///
/// For each skeleton, §6.4.2 does not say which of two numbers is the supervised one. The abstract
/// (757 and 340) gives the greater one as the supervised scheduler's; these are the others.
pub const LIOUVILLE: [Published; 2] = [
    hdph_rs("Liouville, pushMapSliced", "HECToR", 1_400, 751.4),
    hdph_rs("Liouville, parMapSliced", "HECToR", 1_400, 332.9),
];

/// Speedups of Fibonacci numbers, in the order of the text, "fault tolerant and non-fault
/// tolerant": a skeleton whose name ends in FT is supervised.
pub const FIBONACCI: [Published; 2] = [
    hdph_rs("Fibonacci, parDnCFT", "Beowulf", 196, 54.4),
    hdph_rs("Fibonacci, parDnC", "Beowulf", 196, 52.1),
];

/// 5 of the 20 nodes of the Beowulf die at once: when, in seconds, and how much longer the job
/// takes, in percent of [`FIVE_DEATHS_UNDISTURBED_S`]. Below 0: it takes less. Liouville,
/// `parMapSlicedFT`, 70 tasks (HdpH-RS §6.5.1, figures 6.8 and 6.9).
pub const FIVE_DEATHS: [(f64, f64); 6] =
    [(10.0, -14.0), (20.0, 2.0), (30.0, 13.0), (40.0, 18.0), (50.0, 22.0), (60.0, -3.0)];

/// The mean time of the same job without deaths and without supervision, in seconds.
pub const FIVE_DEATHS_UNDISTURBED_S: f64 = 66.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiencies_are_those_that_the_text_derives() {
        let percent = |published: Published| {
            (published.value * 100.0 / f64::from(published.cores)).round() as u32
        };
        assert_eq!(SUM_EULER_STRONG.map(percent), [70, 65]);
    }

    #[test]
    fn no_speedup_is_above_the_cores() {
        for published in SUM_EULER_STRONG.iter().chain(&LIOUVILLE).chain(&FIBONACCI) {
            let Published { cores, value, .. } = *published;
            assert!(value > 0.0 && value < f64::from(cores), "{}", published.label());
        }
    }

    #[test]
    fn labels_say_who() {
        assert_eq!(SUM_EULER_STRONG[1].label(), "parMap2LevelRelaxed, HECToR (SymGridPar2 §6.2)");
    }
}
