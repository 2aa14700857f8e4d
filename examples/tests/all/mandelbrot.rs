//! `mandelbrot` as its user sees it: the checksum, the picture, and what happens when there can be
//! none.

use crate::common::MANDELBROT;
use std::fs;
use std::path::Path;
use ultramarine_testkit::{alone, folder, run};

const SKELETONS: [&str; 4] = ["par-map-reduce", "push-map-reduce", "rayon", "sequential"];

/// The checksum by the book: the sum of each pixel's count times its number.
fn checksum(width: u32, height: u32, depth: u32) -> u64 {
    let scale = (3.2 / f64::from(width)).max(2.4 / f64::from(height));
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let count = |(x, y): (u32, u32)| {
        let a = -0.65 + (f64::from(x) + 0.5 - f64::from(width) / 2.0) * scale;
        let b = (f64::from(y) + 0.5 - f64::from(height) / 2.0) * scale;
        let (mut re, mut im) = (0.0, 0.0);
        for count in 0..depth {
            if re * re + im * im > 4.0 {
                return u64::from(count);
            }
            (re, im) = (re * re - im * im + a, 2.0 * re * im + b);
        }
        u64::from(depth)
    };
    (1..).zip(pixels.map(count)).map(|(number, count): (u64, u64)| number * count).sum()
}

#[test]
fn the_checksum_is_the_same_for_all() {
    let expected = checksum(60, 45, 200);
    for lane in ["memory", "tcp"] {
        for skeleton in SKELETONS {
            for more in ["--pes 1", "--pes 3", "--pes 3 --supervised", "--pes 2 --threshold 0"] {
                let size = "--width 60 --height 45 --depth 200 --threads 1 --lane";
                let flags = format!("{size} {lane} {more}");
                let report = MANDELBROT.report(&format!("{flags} --skeleton {skeleton}"));
                assert_eq!(report["result"], expected, "{flags} {skeleton}");
                assert_eq!(report["skeleton"], skeleton);
            }
        }
    }
}

#[test]
fn the_smallest_and_the_flattest_pictures_are_right() {
    for (width, height, depth) in [(1, 1, 1), (20_000, 1, 3), (1, 20_000, 3), (3, 2, 200_000)] {
        let size = format!("--width {width} --height {height} --depth {depth}");
        let flags = format!("{size} --threshold 4294967295 --pes 2");
        assert_eq!(MANDELBROT.result(&flags), checksum(width, height, depth), "{size}");
    }
}

/// Width, height, and each pixel's colour in the palette.
fn decoded(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = fs::File::open(path).expect("it was written");
    let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().expect("it is a PNG file");
    let mut pixels = vec![0; reader.output_buffer_size().expect("it is small")];
    let info = reader.next_frame(&mut pixels).expect("all of it is there");
    assert_eq!(info.color_type, png::ColorType::Indexed);
    assert_eq!(reader.info().palette.as_ref().map(|palette| palette.len()), Some(256 * 3));
    (info.width, info.height, pixels)
}

#[test]
fn the_picture_is_the_same_for_all() {
    let folder = folder!("pictures");
    let path = folder.join("set.png");
    let mut pictures = Vec::new();
    for skeleton in SKELETONS {
        for more in ["--pes 3", "--pes 2 --supervised --lane tcp"] {
            let flags = format!("--width 64 --height 48 --depth 300 --threads 1 --json {more}");
            let mut command = MANDELBROT.command(&flags);
            let report = run(command.args(["--skeleton", skeleton, "--out"]).arg(&path)).report();
            assert_eq!(report["result"], checksum(64, 48, 300), "{flags} {skeleton}");
            // What is there already is replaced.
            pictures.push(decoded(&path));
        }
    }
    let (width, height, pixels) = &pictures[0];
    assert_eq!((*width, *height), (64, 48));
    assert!(pictures.iter().all(|picture| picture == &pictures[0]));
    // The middle is in the set; the corners are far from it; the picture is symmetric.
    assert_eq!(pixels[24 * 64 + 32], 0);
    assert!([0, 63, 47 * 64, 48 * 64 - 1].iter().all(|corner| (1..100).contains(&pixels[*corner])));
    assert_eq!(pixels[..64], pixels[47 * 64..]);
    let names: Vec<_> = fs::read_dir(&folder).expect("the folder is ours").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn where_no_picture_can_be_nothing_is_done() {
    let folder = folder!("no_pictures");
    fs::write(folder.join("file"), "").expect("the folder is ours");
    let here = folder.to_str().expect("its name is text");
    for (path, text) in [
        (format!("{here}/nowhere/set.png"), "No such file or directory"),
        (format!("{here}/file/set.png"), "Not a directory"),
        (format!("{here}/.."), "something else than a file is there"),
        (here.to_owned(), "something else than a file is there"),
        ("/dev/null".to_owned(), "something else than a file is there"),
        ("/proc/set.png".to_owned(), "cannot write the picture /proc/set.png: "),
    ] {
        // The work would take hours.
        let mut command =
            MANDELBROT.command("--width 20000 --height 20000 --depth 200000 --pes 2 --out");
        let ended = run(command.arg(&path));
        ended.fails_with(&format!("cannot write the picture {path}: "));
        ended.fails_with(text);
    }
    let names: Vec<_> = fs::read_dir(&folder).expect("the folder is ours").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

/// As when the disk is full by then.
#[test]
fn the_result_is_printed_though_the_picture_cannot_be_saved() {
    let folder = folder!("unsaved");
    // No file may have any content here, but an empty one can be made before the work.
    let mut command = alone("sh", "-c");
    command.args(["trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", MANDELBROT.0]);
    command.args("--width 64 --height 48 --depth 300 --pes 2 --json --out".split(' '));
    let path = folder.join("set.png");
    let ended = run(command.arg(&path));
    ended.fails_with(&format!("cannot write the picture {}: File too large", path.display()));
    let report: serde_json::Value = serde_json::from_str(&ended.out).expect("it is printed");
    assert_eq!(report["result"], checksum(64, 48, 300));
    assert_eq!(fs::read_dir(&folder).expect("the folder is ours").count(), 0);
}

#[test]
fn flags_that_cannot_be_are_refused() {
    MANDELBROT.refuses(&[
        ("--width 0", "invalid value '0' for '--width <W>': 0 is not in 1..=20000"),
        ("--width 20001", "'--width <W>': 20001 is not in 1..=20000"),
        ("--height 0", "'--height <H>': 0 is not in 1..=20000"),
        ("--height -5", "'--height <H>': -5 is not in 1..=20000"),
        ("--depth 0", "'--depth <D>': 0 is not in 1..=200000"),
        ("--depth 200001", "'--depth <D>': 200001 is not in 1..=200000"),
        ("--threshold -1", "'--threshold <T>': -1 is not in 0..=4294967295"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--out", "a value is required for '--out <FILE>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn only_the_root_writes() {
    let path = folder!("mandelbrot_of_ranks").join("set.png");
    for ranks in 1..=3 {
        let flags = "--width 64 --height 48 --depth 300 --supervised --json --out";
        let Some(mut command) = MANDELBROT.launched(ranks, flags) else { return };
        let report = run(command.arg(&path)).report();
        assert_eq!(report["result"], checksum(64, 48, 300));
        assert_eq!((decoded(&path).0, &report["pes"]), (64, &ranks.into()));
    }
}

mod points {
    use ultramarine_examples::programs::mandelbrot::{AROUND, SET, escape, palette};

    #[test]
    fn known_points_escape_when_they_should() {
        for (point, count) in [
            ((0.0, 0.0), 100),
            ((-2.0, 0.0), 100),
            ((1.0, 0.0), 3),
            ((0.5, 0.0), 5),
            ((3.0, 0.0), 1),
        ] {
            assert_eq!(escape(point, 100).0, count, "{point:?}");
        }
    }

    #[test]
    fn the_palette_has_all_colours_and_smooth_shades() {
        let palette = palette();
        assert_eq!(palette.len(), 256 * 3);
        assert_eq!((&palette[..3], &palette[3..6]), (&SET[..], &AROUND[0].1[..]));
        assert_eq!(&palette[255 * 3..], AROUND[5].1);
        for (one, next) in palette[3..].chunks(3).zip(palette[6..].chunks(3)) {
            assert!(one.iter().zip(next).all(|(a, b)| a.abs_diff(*b) < 8), "{one:?} {next:?}");
        }
    }
}
