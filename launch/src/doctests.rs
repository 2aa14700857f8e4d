//! The programs in the README, the guide and the cookbook: they must compile, and those that are
//! not marked `no_run` must run.

/// Makes the code blocks of a page doc tests.
macro_rules! pages {
    ($($name:ident: $path:literal),+ $(,)?) => {
        $(#[doc = include_str!(concat!("../../", $path))] struct $name;)+
    };
}

pages! {
    Readme: "README.md",
    FirstProgram: "docs/guide/first-program.md",
    Tasks: "docs/guide/tasks.md",
    Skeletons: "docs/guide/skeletons.md",
    Data: "docs/guide/data.md",
    Topology: "docs/guide/topology.md",
    Launching: "docs/guide/launching.md",
    Deaths: "docs/guide/deaths.md",
    Settings: "docs/guide/settings.md",
    Performance: "docs/guide/performance.md",
    Troubleshooting: "docs/guide/troubleshooting.md",
    Communication: "docs/guide/communication.md",
    TaskSets: "docs/guide/task-sets.md",
    Seeing: "docs/guide/seeing.md",
    Cookbook: "docs/COOKBOOK.md",
}
