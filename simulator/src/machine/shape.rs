//! The description of a machine: how many of each level there are.

use super::{MachineError, PES_MAX, WORKERS_MAX};
use std::str::FromStr;

/// How a machine is built: `[GROUPSx]RACKSxHOSTSxPESxWORKERS`.
///
/// Numbers are read from the right, and levels that are not named exist once. A PE is one process,
/// bound to one processor package, and each of its worker threads has a core.
///
/// | text | racks | hosts | PEs | cores |
/// |---|---|---|---|---|
/// | `16` | 1 | 1 | 1 | 16 |
/// | `4x16` | 1 | 1 | 4 | 64 |
/// | `32x4x16` | 1 | 32 | 128 | 2,048 |
/// | `64x32x4x16` | 64 | 2,048 | 8,192 | 131,072 |
/// | `8x8x32x4x16` | 64, in 8 groups | 2,048 | 8,192 | 131,072 |
///
/// Groups are a second level of switches above the racks, such as the groups of a dragonfly network
/// or the islands of a fat tree.
///
/// ```
/// use ultramarine_simulator::machine::Shape;
/// let shape: Shape = "64x32x4x16".parse()?;
/// assert_eq!((shape.hosts(), shape.pes()), (2_048, 8_192));
/// let error = "64x0x4x16".parse::<Shape>().unwrap_err().to_string();
/// assert_eq!(error, "the machine `64x0x4x16` has a level of 0; each number is at least 1");
/// # Ok::<(), ultramarine_simulator::machine::MachineError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Groups of racks.
    pub(super) groups: u32,
    /// Racks a group.
    pub(super) racks: u32,
    /// Hosts a rack.
    pub(super) hosts: u32,
    /// PEs a host.
    pub(super) host_pes: u32,
    /// Worker threads a PE.
    pub(super) workers: u32,
}

impl Shape {
    /// The number of hosts.
    pub fn hosts(&self) -> u32 {
        self.groups * self.racks * self.hosts
    }

    /// The number of PEs.
    pub fn pes(&self) -> u32 {
        self.hosts() * self.host_pes
    }
}

impl FromStr for Shape {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let owned = || text.to_owned();
        let number = |part: &str| {
            part.trim()
                .parse()
                .map_err(|_| MachineError::NotANumber(owned(), part.trim().to_owned()))
        };
        let numbers = text.split('x').map(number).collect::<Result<Vec<u32>, _>>()?;
        if numbers.len() > 5 {
            return Err(MachineError::TooManyNumbers(owned(), numbers.len()));
        }
        if numbers.contains(&0) {
            return Err(MachineError::Zero(owned()));
        }
        let mut levels = [1; 5];
        levels[5 - numbers.len()..].copy_from_slice(&numbers);
        let [groups, racks, hosts, host_pes, workers] = levels;
        // Four factors of 32 bits fit.
        let pes: u128 = levels[..4].iter().map(|number| u128::from(*number)).product();
        if pes > u128::from(PES_MAX) {
            return Err(MachineError::TooManyPes(owned(), pes));
        }
        if workers > WORKERS_MAX {
            return Err(MachineError::Workers(workers.into()));
        }
        Ok(Shape { groups, racks, hosts, host_pes, workers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Shape>().expect_err(text).to_string()
    }

    #[test]
    fn numbers_are_read_from_the_right() {
        let sizes = |text: &str| {
            let shape: Shape = text.parse().expect(text);
            (shape.hosts(), shape.pes(), shape.workers)
        };
        assert_eq!(sizes("16"), (1, 1, 16));
        assert_eq!(sizes("4x16"), (1, 4, 16));
        assert_eq!(sizes("32x4x16"), (32, 128, 16));
        assert_eq!(sizes("64x32x4x16"), (2_048, 8_192, 16));
        assert_eq!(sizes("8x8x32x4x16"), (2_048, 8_192, 16));
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        assert_eq!(
            refusal("4xx16"),
            "`` in the machine `4xx16` is no number; a machine is written as numbers with an x \
             between them, RACKSxHOSTSxPESxWORKERS, such as 64x32x4x16"
        );
        for text in ["", "x", "-1", "4 16", "4*16", "1.5x2", "99999999999x2"] {
            assert!(refusal(text).contains("is no number"), "{text}");
        }
        assert_eq!(
            refusal("1x2x3x4x5x6"),
            "the machine `1x2x3x4x5x6` has 6 numbers, and at most 5 have a meaning: \
             GROUPSxRACKSxHOSTSxPESxWORKERS"
        );
        assert!("4194304x16".parse::<Shape>().is_ok());
        assert!(refusal("4194305x16").ends_with("at most 4194304 can be simulated"));
        let most = "4294967295";
        assert!(refusal(&[most; 5].join("x")).ends_with("at most 4194304 can be simulated"));
        assert!(refusal("65537").ends_with("1 to 65536 are allowed"));
    }
}
