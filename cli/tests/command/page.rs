//! The page of a report in a real browser: it fits narrow and wide screens, light and dark.

use crate::report::{page_of, row};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use ultramarine_testkit::finish;

/// Chromium, by the names that it has.
fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let named = |folder: PathBuf| ["chromium", "chromium-browser"].map(|name| folder.join(name));
    std::env::split_paths(&folders).flat_map(named).find(|file| file.exists())
}

/// What the page says of itself in the end, as words of an attribute: whether it is dark, the
/// colour of its text, whether it is wider than the window, and how many things keys can get to.
const LOOKS: &str = "<script>
const root = document.documentElement;
const keys = [...document.querySelectorAll('summary')].filter(it => it.tabIndex >= 0);
root.setAttribute('data-looks', [
    matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
    getComputedStyle(document.body).color.replaceAll(' ', ''),
    root.scrollWidth > innerWidth ? 'too-wide' : 'fits',
    keys.length,
    [...document.images].every(it => it.naturalWidth > 0) ? 'images' : 'no-images',
].join(' '));
</script>";

#[test]
fn the_page_fits_screens_of_any_width_in_light_and_dark() {
    let Some(browser) = browser() else {
        println!("skipped: there is no chromium");
        return;
    };
    let folder = tempfile::tempdir().expect("there is room");
    let long = "a_module::with::a_long_name::Of<alloc::vec::Vec<f64>>::and::one::more".repeat(3);
    let (short, long) = (row("map", 50, 1000), row(&long, 70, 1000));
    let page = page_of(&[("near", &short), ("far", &long)], 1000);
    let file = folder.path().join("page.html");
    fs::write(&file, page.replace("</body>", &format!("{LOOKS}</body>"))).expect("there is room");
    for (width, scheme) in [(400, 0), (1200, 1), (3840, 0)] {
        let mut command = Command::new(&browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.arg(format!("--window-size={width},1000"));
        command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
        command.arg(format!("file://{}", file.display()));
        let ended = finish(&mut command, Duration::from_mins(1));
        let shown = ended.succeeded();
        let looks = shown.split_once("data-looks=\"").and_then(|(_, rest)| rest.split_once('"'));
        let looks = looks.unwrap_or_else(|| panic!("the page was not shown: {shown}")).0;
        let expected = match scheme {
            0 => "dark rgb(255,255,255) fits",
            _ => "light rgb(0,0,0) fits",
        };
        assert!(looks.starts_with(expected), "{width} wide: {looks}");
        assert!(looks.ends_with(" images") && !looks.contains(" 0 "), "{looks}");
    }
}
