mod common;
use common::*;
use ultramarine::prelude::*;
fn threads() -> Vec<String> {
    std::thread::sleep(std::time::Duration::from_millis(100));
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|t| std::fs::read_to_string(t.unwrap().path().join("comm")).unwrap().trim().to_owned())
        .filter(|n| n.starts_with("pe"))
        .collect()
}
#[test]
fn probe() {
    for round in 0..5 {
        for lane in LANES {
            for (pend, map) in [(false, false), (true, false), (false, true), (true, true)] {
                let before = threads().len();
                bounded(move || {
                    pes(3, lane).run(async move |cx: Context| {
                        if map {
                            assert_eq!(par_map(&cx, |n: u64| n, 0..50).await?.len(), 50);
                        }
                        if pend {
                            drop(cx.spawn_at(
                                Pe::new(1),
                                async |_, ()| std::future::pending::<()>().await,
                                (),
                            ));
                        }
                        Ok(())
                    })
                })
                .unwrap();
                let now = threads();
                println!("{round} {lane:?} pend {pend} map {map}: +{} {now:?}", now.len() - before);
            }
        }
    }
}
