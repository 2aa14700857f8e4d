//! Data that tasks change.

use std::thread;

use super::Place;
use crate::Result;

#[test]
fn cells_change_as_a_whole() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let changes = 500_u64;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let worker = arena.join().unwrap();
                let cell = worker.set("cells").unwrap().cell(4).unwrap();
                for _ in 0..changes {
                    // Long and short in turn: what a reader copies is freed, and written again.
                    cell.update(|old| {
                        let count =
                            old.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)) + 1;
                        count.to_le_bytes().repeat(if count % 2 == 0 { 1 } else { 3000 })
                    })
                    .unwrap();
                    let read = cell.read().unwrap();
                    assert!(read.chunks(8).all(|chunk| chunk == &read[..8]), "torn");
                }
            });
        }
    });
    let worker = arena.join()?;
    let read = worker.set("cells")?.cell(4)?.read()?;
    assert_eq!(read, (3 * changes).to_le_bytes());
    Ok(())
}

/// An update that is held up is not fooled by a cell whose word came to be as it was.
#[test]
fn versions_of_a_cell_do_not_come_again() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let cell = worker.set("cells")?.cell(1)?;
    cell.update(|_| vec![0])?;
    let mut calls = 0;
    cell.update(|old| {
        calls += 1;
        if calls == 1 {
            (0..1 << 16).for_each(|_| cell.update(|_| vec![1]).unwrap());
        }
        [old, &[2]].concat()
    })?;
    assert_eq!((cell.read()?, calls), (vec![1, 2], 2));
    Ok(())
}
