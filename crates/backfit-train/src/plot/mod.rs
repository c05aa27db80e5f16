//! Training curves as SVG and as text.

mod svg;
mod text;
mod ticks;

use crate::atomic_file;
use backfit_ir::Result;
use std::io::Write;
use std::path::Path;

/// Lines over a common axis, such as training and test loss over steps.
///
/// ```
/// use backfit_train::plot::Plot;
/// let plot = Plot::new("digits", "epoch", "loss")
///     .line("train", [(0.0, 2.3), (1.0, 0.5), (2.0, 0.2)])
///     .line("test", [(0.0, 2.3), (1.0, 0.6), (2.0, 0.4)]);
/// assert!(plot.to_svg().starts_with("<svg"));
/// assert!(plot.to_text(60, 12).contains("• train"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    title: String,
    x_label: String,
    y_label: String,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

impl Plot {
    /// A plot without lines.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Plot { title: title.into(), x_label: x_label.into(), y_label: y_label.into(), lines: Vec::new() }
    }

    /// The same with one more line through points sorted by x. Points that are not finite are left out.
    pub fn line(mut self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        let mut points: Vec<(f64, f64)> = points.into_iter().filter(finite).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.lines.push(Line { name: name.into(), points });
        self
    }

    /// The plot as an SVG document that follows the reader's light or dark scheme.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }

    /// The plot as text of about `width` × `height` characters.
    pub fn to_text(&self, width: usize, height: usize) -> String {
        text::draw(self, width, height)
    }

    /// Writes [`Plot::to_svg`] to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_svg(&self, file: &Path) -> Result<()> {
        let svg = self.to_svg();
        atomic_file::replace(file, |out: &mut dyn Write| out.write_all(svg.as_bytes()))
    }

    /// The least and greatest of a coordinate; 0 to 1 where there are no points.
    fn range(&self, coordinate: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let values = || self.lines.iter().flat_map(|line| &line.points).map(&coordinate);
        let (least, greatest) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if least > greatest { (0.0, 1.0) } else { (least, greatest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> Plot {
        let train = (0..50).map(|i| (f64::from(i), 2.3 * (-f64::from(i) / 10.0).exp()));
        let test = (0..50).map(|i| (f64::from(i), 0.2 + 2.1 * (-f64::from(i) / 12.0).exp()));
        Plot::new("loss of <digits> & co", "epoch", "loss").line("train", train).line("test", test)
    }

    #[test]
    fn svg_is_well_formed_and_has_both_lines_axes_title_and_legend() {
        let svg = curves().to_svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        for part in
            ["loss of &lt;digits&gt; &amp; co", ">train<", ">test<", ">epoch<", ">loss<", "prefers-color-scheme: dark"]
        {
            assert!(svg.contains(part), "{part} missing in {svg}");
        }
        let mut open: Vec<&str> = Vec::new();
        for tag in svg.split('<').skip(1).map(|t| t.split('>').next().unwrap()) {
            let name = tag.split([' ', '\n']).next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty());
    }

    #[test]
    fn text_shows_a_falling_line_within_the_asked_size() {
        let text = curves().to_text(70, 16);
        println!("{text}");
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows.len() <= 16 && rows.iter().all(|row| row.chars().count() <= 70), "{text}");
        let column = |row: &str| row.chars().position(|c| c == '•' || c == '◦');
        let places: Vec<usize> =
            rows.iter().filter(|r| r.contains('┤') || r.contains('│')).filter_map(|r| column(r)).collect();
        assert!(places.is_sorted() && places.len() > 5, "{text}");
    }

    #[test]
    fn no_points_one_point_and_wild_points_are_drawn_all_the_same() {
        let plots = [
            Plot::new("", "", ""),
            Plot::new("t", "x", "y").line("a", []),
            Plot::new("t", "x", "y").line("a", [(3.0, 7.0)]),
            Plot::new("t", "x", "y").line("a", [(0.0, f64::NAN), (f64::INFINITY, 1.0), (1.0, 2.0)]),
            Plot::new("t", "x", "y").line("a", [(0.0, -1e300), (1.0, 1e300)]),
            Plot::new("t", "x", "y").line("a", [(-1.7e308, -1.7e308), (1.7e308, 1.7e308)]),
            Plot::new("t", "x", "y").line("a", [(0.0, 5e-324), (1e-320, 0.0)]),
            Plot::new("t", "x", "y").line("a", [(1e15, 1e15), (1e15 + 1.0, 1e15 + 0.5)]),
        ];
        for plot in plots {
            let svg = plot.to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            for (width, height) in [(0, 0), (1, 1), (20, 5), (80, 20), (3, 300)] {
                plot.to_text(width, height);
            }
        }
    }
}
