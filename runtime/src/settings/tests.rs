use super::*;

fn texts(variables: &[(&str, &str)], changes: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let owned = |texts: &[(&str, &str)]| {
        texts.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
    };
    Settings::from_texts(4, owned(variables), &owned(changes), &["PES"])
}

fn from(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    texts(variables, &[])
}

#[test]
fn variables_set_what_they_name() {
    let settings = from(&[
        ("ULTRAMARINE_MAX_HOPS", "3"),
        ("ULTRAMARINE_SPIN", "70us"),
        ("ULTRAMARINE_SEED", "11"),
        ("ULTRAMARINE_PES", "not ours"),
        ("PATH", "/bin"),
    ])
    .expect("all are right");
    assert_eq!(settings.fishing.max_hops, 3);
    assert_eq!(settings.spin, Duration::from_micros(70));
    assert_eq!((settings.seed, settings.threads), (Some(11), 4));
}

#[test]
fn threads_from_the_environment_move_the_watermarks() {
    let settings =
        from(&[("ULTRAMARINE_MIN_SCHED", "1"), ("ULTRAMARINE_THREADS", "9")]).expect("right");
    assert_eq!((settings.fishing.max_fish, settings.fishing.min_sched), (9, 1));
}

#[test]
fn wrong_values_and_names_are_refused_by_name() {
    let text = |variable, value| from(&[(variable, value)]).expect_err("wrong").to_string();
    assert_eq!(
        text("ULTRAMARINE_THREADS", "0"),
        "ULTRAMARINE_THREADS = `0`: a PE needs at least one worker thread"
    );
    assert!(text("ULTRAMARINE_MAX_HOPS", "256").contains("ULTRAMARINE_MAX_HOPS = `256`"));
    assert!(text("ULTRAMARINE_SPIN", "soon").contains("50us"));
    assert!(text("ULTRAMARINE_MAX_HOP", "3").contains("ULTRAMARINE_MAX_HOPS"));
    assert!(text("ULTRAMARINE_MIN_FISH_DELAY", "1s").contains("longer than max_fish_delay"));
}

#[test]
fn the_order_of_changes_does_not_matter() {
    let (short, long) = (("min_fish_delay", "1s"), ("max_fish_delay", "2s"));
    for changes in [[short, long], [long, short]] {
        let settings = texts(&[], &changes).expect("right together");
        assert_eq!(settings.fishing.min_fish_delay, Duration::from_secs(1));
    }
    texts(&[("ULTRAMARINE_MIN_FISH_DELAY", "1s")], &[long]).expect("right together");
}

#[test]
fn every_limit_holds() {
    for (name, value) in [
        ("threads", "1025"),
        ("connections_max", "1"),
        ("message_bytes_max", "4095"),
        ("message_bytes_max", "4294967296"),
        ("fish_deadline", "0s"),
        ("fish_deadline", "99us"),
        ("resend_after", "0s"),
        ("start_deadline", "0s"),
        ("start_deadline", "25h"),
        ("shutdown_grace", "500000000000years"),
        ("spin", "2days"),
        ("poll_interval_max", "25h"),
        ("resend_after", "25h"),
        ("fish_deadline", "25h"),
        ("max_fish_delay", "25h"),
        ("heartbeat", "0s"),
        ("dead_after", "0s"),
        ("dead_after", "25h"),
        ("dead_after", "899ms"),
        ("stalled_after", "0s"),
        ("root_after", "25h"),
    ] {
        let error = texts(&[], &[(name, value)]).expect_err(name).to_string();
        assert!(error.starts_with(&format!("{name} = `")), "{error}");
    }
    for (name, value) in [
        ("threads", "1024"),
        ("message_bytes_max", "4096"),
        ("message_bytes_max", "4294967295"),
        ("shutdown_grace", "0s"),
        ("shutdown_grace", "24h"),
        ("dead_after", "900ms"),
        ("root_after", "24h"),
    ] {
        texts(&[], &[(name, value)]).expect(name);
    }
}

#[test]
fn sizes_may_have_units() {
    let longest = |text| {
        texts(&[], &[("message_bytes_max", text)]).map(|settings| settings.port.message_bytes_max)
    };
    for (text, bytes) in [("1GiB", 1 << 30), ("100 MB", 100_000_000), ("8KiB", 8192)] {
        assert_eq!(longest(text).ok(), Some(bytes));
    }
    for text in ["GiB", "1.5GiB", "1TB", "99999999999999GiB", "-1kB"] {
        assert!(longest(text).is_err(), "{text}");
    }
    assert!(texts(&[], &[("threads", "1KiB")]).is_err());
}

#[test]
fn the_backlog_follows_the_messages_unless_it_is_set() {
    let backlog = |changes: &[_]| texts(&[], changes).expect("right").port.backlog_bytes_max;
    let long = ("message_bytes_max", "1000000000");
    assert_eq!(backlog(&[]), 1 << 30);
    assert_eq!(backlog(&[long]), 4_000_000_000);
    assert_eq!(backlog(&[("backlog_bytes_max", "5000"), long]), 5000);
    let variables = [("ULTRAMARINE_BACKLOG_BYTES_MAX", "5000")];
    assert_eq!(texts(&variables, &[long]).expect("right").port.backlog_bytes_max, 5000);
}

#[test]
fn the_link_is_more_patient_than_the_watch() {
    let mut settings = Settings::for_threads(1);
    assert_eq!(settings.patient_port(), settings.port);
    settings.detector.dead_after = Duration::from_mins(1);
    let patient = settings.patient_port();
    assert_eq!(patient.resend_after * patient.resends_max, Duration::from_mins(2));
}

#[test]
fn a_pe_may_miss_a_heartbeat() {
    let text = texts(&[], &[("heartbeat", "1500ms")]).expect_err("too rare").to_string();
    assert_eq!(
        text,
        "dead_after = `2s`: at least two heartbeats, of 1.5s each, are expected: \
         raise dead_after, or lower heartbeat"
    );
    let slower = [("heartbeat", "1500ms"), ("dead_after", "3s")];
    assert_eq!(
        texts(&[], &slower).expect("right together").detector.heartbeat,
        Duration::from_millis(1500)
    );
}

#[test]
fn an_error_calls_a_setting_as_its_giver_did() {
    let variable = ("ULTRAMARINE_FISH_DEADLINE", "0s");
    let text =
        |variables: &[_], changes: &[_]| texts(variables, changes).expect_err("wrong").to_string();
    assert!(text(&[variable], &[]).starts_with("ULTRAMARINE_FISH_DEADLINE = `0ns`"));
    assert!(text(&[variable], &[("fish_deadline", "25h")]).starts_with("fish_deadline = "));
    let unknown = text(&[], &[("foo", "1")]);
    assert!(unknown.contains("are threads, max_fish,"), "{unknown}");
    assert!(!unknown.contains(PREFIX), "{unknown}");
    assert!(
        text(&[("ULTRAMARINE_FOO", "1")], &[])
            .contains("are ULTRAMARINE_PES, ULTRAMARINE_THREADS, ")
    );
}

#[test]
fn the_guide_has_a_row_for_every_setting() {
    let page = include_str!("../../../docs/guide/settings.md");
    let rows = NAMES.iter().filter(|name| **name != "threads");
    for name in rows {
        assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
    }
}
