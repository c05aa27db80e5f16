//! A plot as an SVG document.

use super::Plot;
use super::ticks::Axis;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 52.0;

/// Colours that colour-blind readers can tell apart (Okabe and Ito), for a light and a dark background.
const COLOURS: [(&str, &str); 6] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e69f00"),
    ("#009e73", "#3ddbaa"),
    ("#a4478a", "#e3a1cd"),
    ("#7a6a00", "#f0e442"),
    ("#555555", "#bbbbbb"),
];

/// Draws a plot.
pub(super) fn draw(plot: &Plot) -> String {
    let x = Axis::new(plot.range(|p| p.0), 8, false);
    let y = Axis::new(plot.range(|p| p.1), 5, true);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\">\n<title>{}</title>\n{}",
        escape(&plot.title),
        style()
    );
    svg += &format!("<rect class=\"background\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n");
    svg += &text("title", LEFT, 26.0, "start", &plot.title);
    draw_axes(&mut svg, plot, &x, &y);
    let mut legend = LEFT;
    for (i, line) in plot.lines.iter().enumerate() {
        let class = format!("line line{}", i % COLOURS.len());
        draw_line(&mut svg, &class, &line.points, &x, &y);
        let (end, baseline) = (legend + 22.0, 48.0);
        svg += &format!("<path class=\"{class}\" d=\"M{legend:.1} 44H{end:.1}\"/>\n");
        svg += &text("label", end + 6.0, baseline, "start", &line.name);
        legend = end + 24.0 + 7.0 * line.name.chars().count() as f64;
    }
    svg + "</svg>\n"
}

fn style() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    for (i, (on_light, on_dark)) in COLOURS.iter().enumerate() {
        light += &format!(".line{i}{{stroke:{on_light}}}");
        dark += &format!(".line{i}{{stroke:{on_dark}}}");
    }
    format!(
        "<style>\n\
         text{{font:12px system-ui,sans-serif;fill:#444}}.title{{font-size:16px;font-weight:600;fill:#111}}\n\
         .background{{fill:#fff}}.grid{{stroke:#e4e4e4}}.axis{{stroke:#888}}\n\
         .line{{fill:none;stroke-width:2;stroke-linejoin:round}}.dot{{stroke-width:6;stroke-linecap:round}}{light}\n\
         @media (prefers-color-scheme: dark){{text{{fill:#bbb}}.title{{fill:#eee}}\
         .background{{fill:#16181c}}.grid{{stroke:#2c2f36}}.axis{{stroke:#777}}{dark}}}\n\
         </style>\n"
    )
}

fn draw_axes(svg: &mut String, plot: &Plot, x: &Axis, y: &Axis) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, label) in &y.ticks {
        let at = y_place(y, *value);
        *svg += &format!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\n");
        *svg += &text("label", LEFT - 8.0, at + 4.0, "end", label);
    }
    for (value, label) in &x.ticks {
        let at = x_place(x, *value);
        *svg += &format!("<path class=\"axis\" d=\"M{at:.1} {bottom}v5\"/>\n");
        *svg += &text("label", at, bottom + 20.0, "middle", label);
    }
    *svg += &format!("<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\n");
    *svg += &text("label", (LEFT + right) / 2.0, HEIGHT - 10.0, "middle", &plot.x_label);
    let middle = (TOP + bottom) / 2.0;
    *svg += &format!(
        "<text class=\"label\" transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        escape(&plot.y_label)
    );
}

fn draw_line(svg: &mut String, class: &str, points: &[(f64, f64)], x: &Axis, y: &Axis) {
    if let [(px, py)] = points {
        let (px, py) = (x_place(x, *px), y_place(y, *py));
        *svg += &format!("<path class=\"{class} dot\" d=\"M{px:.1} {py:.1}h0\"/>\n");
        return;
    }
    let mut path = String::new();
    for (px, py) in points {
        let separator = if path.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        write!(path, "{separator}{:.1},{:.1}", x_place(x, *px), y_place(y, *py)).ok();
    }
    *svg += &format!("<polyline class=\"{class}\" points=\"{path}\"/>\n");
}

fn x_place(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT)
}

fn y_place(axis: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.place(value) * (HEIGHT - TOP - BOTTOM)
}

fn text(class: &str, x: f64, y: f64, anchor: &str, content: &str) -> String {
    let content = escape(content);
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>\n")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
