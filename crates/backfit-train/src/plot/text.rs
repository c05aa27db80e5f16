//! A plot as text.

use super::Plot;
use super::ticks::Axis;

/// What the lines are drawn with, in turn.
const MARKS: [char; 4] = ['•', '◦', '+', '×'];

/// Rows around the drawing: title, axis, labels of x, legend.
const OTHER_ROWS: usize = 4;

/// Draws a plot into about `width` × `height` characters; never less than a few.
pub(super) fn draw(plot: &Plot, width: usize, height: usize) -> String {
    let rows = height.saturating_sub(OTHER_ROWS).max(3);
    let y = Axis::new(plot.range(|p| p.1), (rows / 2).clamp(2, 8), true);
    let margin = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0) + 1;
    let columns = width.saturating_sub(margin + 1).max(8);
    let x = Axis::new(plot.range(|p| p.0), (columns / 12).clamp(2, 8), false);
    let row_of = |value: f64| ((1.0 - y.place(value)) * (rows - 1) as f64).round() as usize;

    let mut canvas = vec![vec![' '; columns]; rows];
    for (i, line) in plot.lines.iter().enumerate() {
        for (column, value) in sampled(&line.points, &x, columns) {
            canvas[row_of(value)][column] = MARKS[i % MARKS.len()];
        }
    }
    let mut out = String::new();
    if !plot.title.is_empty() {
        out += &format!("{:margin$} {}\n", "", cut(&plot.title, columns));
    }
    for (row, cells) in canvas.iter().enumerate() {
        let tick = y.ticks.iter().find(|(value, _)| row_of(*value) == row);
        let (label, edge) = tick.map_or(("", '│'), |(_, label)| (label.as_str(), '┤'));
        let cells: String = cells.iter().collect();
        out += &format!("{label:>width$} {edge}{}\n", cells.trim_end(), width = margin - 1);
    }
    out += &format!("{:margin$}└{}\n", "", "─".repeat(columns));
    out += &format!("{:margin$} {}\n", "", x_labels(&x, columns));
    out += &format!("{:margin$} {}\n", "", cut(&legend(plot), columns));
    out
}

/// A value for every column that a line crosses, between its points on the straight line.
fn sampled(points: &[(f64, f64)], x: &Axis, columns: usize) -> Vec<(usize, f64)> {
    let place = |value: f64| x.place(value) * (columns - 1) as f64;
    let mut samples = Vec::new();
    for pair in points.windows(2) {
        let (from, to) = (place(pair[0].0), place(pair[1].0));
        for column in from.ceil() as usize..=to.floor() as usize {
            let part = if to > from { (column as f64 - from) / (to - from) } else { 0.0 };
            samples.push((column, pair[0].1 * (1.0 - part) + pair[1].1 * part));
        }
    }
    // Points closer together than columns: each marks the column it is nearest to.
    samples.extend(points.iter().map(|&(px, py)| (place(px).round() as usize, py)));
    samples
}

fn x_labels(x: &Axis, columns: usize) -> String {
    let mut row = vec![' '; columns];
    let mut free = 0;
    for (value, label) in &x.ticks {
        let label: Vec<char> = label.chars().collect();
        let at = (x.place(*value) * (columns - 1) as f64).round() as usize;
        let start = at.saturating_sub(label.len() / 2).min(columns.saturating_sub(label.len()));
        if start >= free && start + label.len() <= columns {
            row[start..start + label.len()].copy_from_slice(&label);
            free = start + label.len() + 1;
        }
    }
    row.into_iter().collect::<String>().trim_end().to_string()
}

fn legend(plot: &Plot) -> String {
    let entry = |(i, line): (usize, &super::Line)| format!("{} {}", MARKS[i % MARKS.len()], line.name);
    let lines: Vec<String> = plot.lines.iter().enumerate().map(entry).collect();
    let axes = [&plot.y_label, &plot.x_label].map(String::as_str);
    let axes =
        if axes.iter().any(|a| a.is_empty()) { String::new() } else { format!("   {} over {}", axes[0], axes[1]) };
    lines.join("   ") + &axes
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}
