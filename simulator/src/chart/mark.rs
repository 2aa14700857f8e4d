//! How series look: colours that colour-blind readers can tell apart, and a mark for each.

use plotters::coord::Shift;
use plotters::prelude::*;

/// The palette of Okabe and Ito (*Color Universal Design*, 2008), without its yellow and black:
/// yellow is faint on white, and black is for what others have published.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The most series that look different from each other.
const LOOKS: usize = COLOURS.len();

/// How a series is drawn.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    mark: usize,
    is_filled: bool,
}

impl Look {
    /// That of the series with this number.
    pub(super) fn of_series(number: usize) -> Self {
        Look { colour: COLOURS[number % LOOKS], mark: number % LOOKS, is_filled: true }
    }

    /// That of the reference with this number: black and hollow.
    pub(super) fn of_reference(number: usize) -> Self {
        Look { colour: BLACK, mark: number % LOOKS, is_filled: false }
    }

    /// Draws the mark at a pixel.
    pub(super) fn draw<DB: DrawingBackend>(
        self,
        area: &DrawingArea<DB, Shift>,
        (x, y): (i32, i32),
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let corner = |(dx, dy): (i32, i32)| (x + dx, y + dy);
        let polygon = |corners: &[(i32, i32)]| -> Vec<(i32, i32)> {
            corners.iter().copied().map(corner).collect()
        };
        let outline = match self.mark {
            0 => {
                if !self.is_filled {
                    area.draw(&Circle::new((x, y), 5, WHITE.filled()))?;
                    return area.draw(&Circle::new((x, y), 5, self.colour.stroke_width(2)));
                }
                return area.draw(&Circle::new((x, y), 4, self.colour.filled()));
            }
            1 => polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
            2 => polygon(&[(0, -5), (5, 4), (-5, 4)]),
            3 => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
            4 => polygon(&[(0, 5), (5, -4), (-5, -4)]),
            _ => polygon(&[(-5, -2), (0, -6), (5, -2), (3, 4), (-3, 4)]),
        };
        let fill = if self.is_filled { self.colour } else { WHITE };
        area.draw(&Polygon::new(outline.clone(), fill.filled()))?;
        let closed = outline.iter().chain(&outline[..1]).copied().collect::<Vec<_>>();
        area.draw(&PathElement::new(closed, self.colour.stroke_width(2)))
    }
}
