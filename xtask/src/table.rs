//! Tables of text: columns of one width, and rows that are found again by what they are about.

/// The lines in columns, below these headings, which have `|` between them: the first columns to
/// the left, the others to the right.
pub(crate) fn aligned(headings: &str, lines: Vec<Vec<String>>, text_columns: usize) -> String {
    let headings: Vec<_> = headings.split('|').map(str::to_owned).collect();
    let columns = 0..headings.len();
    let lines: Vec<_> = [headings].into_iter().chain(lines).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = columns.map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < text_columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    lines.iter().map(line).collect()
}

/// The row about this, which is made if there is none.
pub(crate) fn row<K: PartialEq, R: Default>(rows: &mut Vec<(K, R)>, about: K) -> &mut R {
    let index = rows.iter().position(|(key, _)| *key == about).unwrap_or_else(|| {
        rows.push((about, R::default()));
        rows.len() - 1
    });
    &mut rows[index].1
}
