//! All places of the four areas, numbered from 1 in the order of their files.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::path::Path;

use super::find;
use super::site::{Site, Switched};
use crate::process::{Failure, Result};

/// Where mistakes are made: a crate, and a folder of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) name: &'static str,
    /// The folder of the crate.
    pub(crate) package: &'static str,
    /// The crates whose tests run it as well, as programs do.
    pub(crate) users: &'static [&'static str],
    /// The file that the area's modules are below.
    top: &'static str,
}

const fn area(
    name: &'static str,
    package: &'static str,
    users: &'static [&'static str],
    top: &'static str,
) -> Area {
    Area { name, package, users, top }
}

const BOTH: &[&str] = &["skeletons", "launch"];

pub(crate) const AREAS: [Area; 5] = [
    area("protocol", "runtime", BOTH, "runtime/src/protocol/mod.rs"),
    area("executor", "runtime", BOTH, "runtime/src/executor/mod.rs"),
    area("group", "group", BOTH, "group/src/lib.rs"),
    area("journal", "journal", BOTH, "journal/src/lib.rs"),
    area("graph", "skeletons", &["launch"], "skeletons/src/dag/mod.rs"),
];

/// The folders of all crates that have an area, or whose tests run one.
pub(crate) fn packages() -> BTreeSet<&'static str> {
    let of_area = |area: &Area| [&[area.package], area.users].concat();
    AREAS.iter().flat_map(of_area).collect()
}

/// A file of one of them.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Of the text.
    hash: u64,
    /// The index of its area.
    pub(crate) area: usize,
    /// The places in it have these numbers.
    pub(crate) numbers: Range<u32>,
    sites: Vec<Site>,
}

impl SourceFile {
    /// The numbers of its places, and these.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (u32, &Site)> {
        self.numbers.clone().zip(&self.sites)
    }
}

/// The places.
pub(crate) struct Catalogue {
    pub(crate) files: Vec<SourceFile>,
    /// The numbers of those whose mutants do not compile.
    pub(crate) refused: BTreeSet<u32>,
}

impl Catalogue {
    /// All places below this folder, which has the crates.
    ///
    /// # Errors
    /// A file cannot be read, or is not Rust.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut catalogue = Catalogue { files: Vec::new(), refused: BTreeSet::new() };
        for (area, Area { top, .. }) in AREAS.iter().enumerate() {
            catalogue.add(root, area, top)?;
        }
        catalogue.files.sort_by(|a, b| (a.area, &a.path).cmp(&(b.area, &b.path)));
        let mut next = 1;
        for file in &mut catalogue.files {
            file.numbers = next..next + file.sites.len() as u32;
            next = file.numbers.end;
        }
        Ok(catalogue)
    }

    /// Adds the file, and those of the modules that are compiled with it.
    fn add(&mut self, root: &Path, area: usize, path: &str) -> Result<()> {
        let text = fs::read_to_string(root.join(path))
            .map_err(|error| Failure(format!("{path}: cannot be read: {error}")))?;
        let find::Found { modules, sites } = find::find(path, &text)?;
        let (path, hash) = (path.to_owned(), hash(&text));
        self.files.push(SourceFile { path: path.clone(), text, hash, area, numbers: 0..0, sites });
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let below = if ["mod.rs", "lib.rs"].contains(&name) {
            folder.to_owned()
        } else {
            path.trim_end_matches(".rs").to_owned()
        };
        for module in modules {
            let single = format!("{below}/{module}.rs");
            let is_single = root.join(&single).is_file();
            self.add(
                root,
                area,
                &if is_single { single } else { format!("{below}/{module}/mod.rs") },
            )?;
        }
        Ok(())
    }

    /// The number after the last.
    pub(crate) fn end(&self) -> u32 {
        self.files.last().map_or(1, |file| file.numbers.end)
    }

    /// The file and the place with this number.
    pub(crate) fn get(&self, number: u32) -> Option<(&SourceFile, &Site)> {
        let file = self.files.iter().find(|file| file.numbers.contains(&number))?;
        Some((file, &file.sites[(number - file.numbers.start) as usize]))
    }

    /// The places whose mutants compile, as far as is known.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = (u32, &SourceFile, &Site)> {
        let all = self.files.iter().flat_map(|file| file.sites().map(move |(n, s)| (n, file, s)));
        all.filter(|(number, ..)| !self.refused.contains(number))
    }

    /// The file with a switch at each place that is not refused.
    pub(crate) fn switched(&self, file: &SourceFile) -> Switched {
        let accepted = file.sites().filter(|(number, _)| !self.refused.contains(number));
        let sites: Vec<_> = accepted.map(|(number, site)| (number as usize, site)).collect();
        Switched::new(&file.text, &sites, &|number| format!("crate::mutants::is({number})"))
    }

    /// The refused places in words that hold while their files stay as they are.
    pub(crate) fn refusals(&self) -> String {
        self.refused.iter().filter_map(|number| self.get(*number)).map(refusal).collect()
    }

    /// Refuses what was refused before, in files that have stayed as they were.
    pub(crate) fn remember(&mut self, refusals: &str) {
        let known: BTreeSet<&str> = refusals.split_inclusive('\n').collect();
        let all = self.files.iter().flat_map(|file| file.sites().map(move |(n, s)| (n, file, s)));
        let again = all.filter(|(_, file, site)| known.contains(&*refusal((file, site))));
        self.refused = again.map(|(number, ..)| number).collect();
    }
}

fn refusal((file, site): (&SourceFile, &Site)) -> String {
    let (start, end) = (site.range.start, site.range.end);
    format!("{} {:016x} {start} {end} {}\n", file.path, file.hash, site.change)
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
