//! Finds out which MPI the environment names now. `transport/mpi/version.rs` compares it with the
//! one that rsmpi's bindings were made for: cargo keeps those when `MPICC` changes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "mpi")]
    mpi::note_version();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// By these rsmpi chooses an MPI.
    const VARIABLES: [&str; 3] = ["MPI_PKG_CONFIG", "CRAY_MPICH_DIR", "MPICC"];

    /// What `mpi.h` may define as a number. In the order of `version.rs`.
    const NUMBERS: [&str; 4] =
        ["MPICH_NUMVERSION", "OMPI_MAJOR_VERSION", "OMPI_MINOR_VERSION", "OMPI_RELEASE_VERSION"];

    /// Writes constants for `version.rs`.
    pub(super) fn note_version() {
        VARIABLES.iter().for_each(|name| println!("cargo::rerun-if-env-changed={name}"));
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
        let set = VARIABLES.iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
        let named = set.map_or("mpicc".to_owned(), |(name, value)| format!("{name}={value}"));
        // Where there is no MPI any more, the bindings will do.
        let numbers = numbers(&out).map_or("BOUND".to_owned(), |numbers| format!("{numbers:?}"));
        let refusal = format!(
            "this folder has bindings to another MPI than {named} stands for, and cargo does not \
             make them anew by itself: run `cargo clean{} -p mpi-sys` and build again, or give \
             each MPI a folder of its own (CARGO_TARGET_DIR)",
            profile(&out)
        );
        let text = format!(
            "#[allow(clippy::unreadable_literal)]\n\
             const WANTED: [u32; 4] = {numbers};\n\
             const REFUSAL: &str = {refusal:?};\n"
        );
        std::fs::write(out.join("mpi_version.rs"), text).expect("cargo gives the folder");
    }

    /// What the preprocessor makes of the names.
    fn numbers(out: &Path) -> Option<[u32; 4]> {
        let library = build_probe_mpi::probe().ok()?;
        let source = out.join("mpi_version.c");
        std::fs::write(&source, format!("#include <mpi.h>\n{}\n", NUMBERS.join(" "))).ok()?;
        let mut compiler = Command::new(library.mpicc.as_deref().unwrap_or("cc"));
        compiler.args(library.include_paths.iter().map(|path| format!("-I{}", path.display())));
        let output = compiler.args(["-E", "-P"]).arg(source).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        let last = text.lines().rfind(|line| !line.trim().is_empty())?;
        // A name that is not defined stays as it is.
        let numbers = last.split_whitespace().map(|word| word.parse().unwrap_or(0));
        numbers.collect::<Vec<u32>>().try_into().ok()
    }

    /// What `cargo clean` has to be told for this profile, which is called as its folder:
    /// `target/NAME/build/PACKAGE/out`.
    fn profile(out: &Path) -> String {
        match out.ancestors().nth(3).and_then(Path::file_name).and_then(|name| name.to_str()) {
            None | Some("debug") => String::new(),
            Some(name) => format!(" --profile {name}"),
        }
    }
}
