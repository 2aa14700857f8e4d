//! Whether all hosts have the CPU features that rank 0 has.
//!
//! Processes of one program may run on CPUs that differ. Code for a feature that a CPU lacks ends
//! the process there; and a task may bring such code along: by the compiler's flags, or by a
//! captured value without bytes that stands for the feature. So rank 0 says at the start where CPUs
//! differ.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The features that the standard library detects and that programs are compiled for, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Features(u64);

macro_rules! detected_by {
    ($detected:ident: $($name:tt)*) => {
        const NAMES: &[&str] = &[$($name),*];

        fn detected() -> impl Iterator<Item = bool> {
            [$(std::arch::$detected!($name)),*].into_iter()
        }
    };
}

#[cfg(target_arch = "x86_64")]
detected_by!(is_x86_feature_detected:
    "sse3" "ssse3" "sse4.1" "sse4.2" "sse4a" "popcnt" "lzcnt" "bmi1" "bmi2" "tbm" "movbe" "adx"
    "cmpxchg16b" "aes" "pclmulqdq" "sha" "rdrand" "rdseed" "f16c" "fma" "avx" "avx2" "avx512f"
    "avx512cd" "avx512bw" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni"
    "avx512bitalg" "avx512vpopcntdq" "avx512bf16" "avx512fp16" "avx512vp2intersect" "gfni" "vaes"
    "vpclmulqdq" "avxvnni" "avxifma" "avxneconvert" "avxvnniint8" "avxvnniint16" "sha512" "sm3"
    "sm4" "rtm" "xsave" "xsaveopt" "xsavec" "xsaves");

#[cfg(target_arch = "aarch64")]
detected_by!(is_aarch64_feature_detected:
    "asimd" "fp16" "fhm" "bf16" "i8mm" "f32mm" "f64mm" "dotprod" "rdm" "fcma" "jsconv" "frintts"
    "sve" "sve2" "aes" "pmull" "sha2" "sha3" "sm4" "crc" "lse" "lse2" "rcpc" "rcpc2" "flagm" "dpb"
    "dpb2" "sb" "bti");

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const NAMES: &[&str] = &[];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detected() -> impl Iterator<Item = bool> {
    std::iter::empty()
}

const _: () = assert!(NAMES.len() <= 64, "each has a bit");

/// How many hosts are named that differ alike; of the others the number is said.
const HOSTS_NAMED: usize = 8;

impl Features {
    /// Those of this process's CPU.
    pub(super) fn own() -> Self {
        let bits = detected().enumerate().map(|(bit, is_there)| u64::from(is_there) << bit);
        Features(bits.fold(0, |all, bit| all | bit))
    }

    fn without(self, other: Self) -> Self {
        Features(self.0 & !other.0)
    }

    /// What these are called, after a word; `None` if there are none.
    fn list(self, word: &str) -> Option<String> {
        let has = |bit: &usize| self.0 >> bit & 1 == 1;
        let names: Vec<_> = (0..NAMES.len()).filter(has).map(|bit| NAMES[bit]).collect();
        (!names.is_empty()).then(|| format!("{word} {}", names.join(", ")))
    }
}

/// What to say if not all CPUs are like rank 0's: of the host and the features of each process, by
/// rank.
pub(super) fn differences<'a>(
    mut all: impl Iterator<Item = (&'a str, Features)>,
) -> Option<String> {
    let (first_host, first) = all.next()?;
    // By features, each host once, in the order of ranks.
    let mut others: Vec<(Features, Vec<&str>)> = Vec::new();
    let mut seen = HashSet::new();
    for (host, own) in all.filter(|(host, own)| *own != first && seen.insert((*host, *own))) {
        match others.iter_mut().find(|(known, _)| *known == own) {
            Some((_, hosts)) => hosts.push(host),
            None => others.push((own, vec![host])),
        }
    }
    let said = others.iter().map(|(own, hosts)| {
        let lacks = first.without(*own).list("lacks");
        let has = own.without(first).list("has");
        let differs: Vec<_> = lacks.into_iter().chain(has).collect();
        format!("that of {} {}", named(hosts), differs.join(", and "))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    (!others.is_empty()).then(|| {
        format!(
            "not all CPUs are like that of {first_host}, where rank 0 is: {said}. A program that \
             is compiled for one CPU (`target-cpu=native`) may end on another with SIGILL; compile \
             it for features that all have, or detect them inside each task"
        )
    })
}

/// The first hosts by name, and the number of the others.
fn named(hosts: &[&str]) -> String {
    match hosts.split_at_checked(HOSTS_NAMED) {
        Some((few, more)) if !more.is_empty() => {
            format!("{} and {} others", few.join(", "), more.len())
        }
        _ => hosts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[(&str, u64)]) -> Option<String> {
        differences(all.iter().map(|(host, bits)| (*host, Features(*bits))))
    }

    #[test]
    fn alike_cpus_are_not_worth_a_word() {
        assert_eq!(said(&[("a", 5), ("a", 5), ("b", 5)]), None);
        assert_eq!(said(&[]), None);
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn each_host_is_named_once_with_what_it_lacks_and_has() {
        let all = [("a", 0b0011), ("b", 0b0001), ("b", 0b0001), ("c", 0b0110), ("d", 0b0001)];
        let text = said(&all).expect("they differ");
        let [zero, one, two] = [NAMES[0], NAMES[1], NAMES[2]];
        let expected = format!(
            "not all CPUs are like that of a, where rank 0 is: that of b, d lacks {one}; that of c \
             lacks {zero}, and has {two}. A program"
        );
        assert!(text.starts_with(&expected), "{text}");
    }

    #[test]
    fn many_hosts_are_counted() {
        let hosts: Vec<_> = (0..100).map(|host| format!("n{host}")).collect();
        let others = hosts.iter().map(|host| (&**host, Features(0)));
        let text = differences(std::iter::once(("a", Features(1))).chain(others));
        let text = text.expect("they differ");
        assert!(
            text.contains("that of n0, n1, n2, n3, n4, n5, n6, n7 and 92 others lacks"),
            "{text}"
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_feature_of_this_cpu_has_its_own_bit() {
        let bit = NAMES.iter().position(|name| *name == "avx2").expect("it is listed");
        let is_there = std::arch::is_x86_feature_detected!("avx2");
        assert_eq!(Features::own().0 >> bit & 1 == 1, is_there);
    }
}
