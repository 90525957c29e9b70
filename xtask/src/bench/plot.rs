//! Plots as SVG: lines over a doubling axis, and bars beside each other. Plain text out of numbers; a browser does the rest.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Where the plot itself lies: left, top, right, bottom.
const FRAME: [f64; 4] = [72.0, 48.0, 700.0, 340.0];
const COLOURS: [&str; 4] = ["#1f6feb", "#d1495b", "#2e8b57", "#8a6d3b"];

/// A line: its name and its points, `x` above 0.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

/// A bar: its name, its height, and the lowest and highest figure that it stands for.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) height: f64,
    pub(super) spread: [f64; 2],
}

/// Lines over an axis on which each step doubles.
pub(super) fn lines(title: &str, [x_label, y_label]: [&str; 2], lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let mut ticks: Vec<f64> = points().map(|point| point[0]).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let (first, last) = (ticks.first().copied().unwrap_or(1.0), ticks.last().copied().unwrap_or(2.0));
    let [left, top, right, bottom] = FRAME;
    let x = |value: f64| left + 24.0 + (value / first).log2() / (last / first).log2().max(1e-9) * (right - left - 48.0);
    let step = step(points().map(|point| point[1]).fold(0.0, f64::max));
    let y = |value: f64| bottom - value / (5.0 * step) * (bottom - top);

    let mut svg = start(title, y_label, step);
    for tick in ticks {
        let label = if tick >= 1024.0 { format!("{}k", tick / 1024.0) } else { tick.to_string() };
        text(&mut svg, [x(tick), bottom + 20.0], "middle", &label);
    }
    text(&mut svg, [(left + right) / 2.0, bottom + 44.0], "middle", x_label);
    for (n, line) in lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let path: Vec<String> = line.points.iter().map(|p| format!("{:.1},{:.1}", x(p[0]), y(p[1]))).collect();
        let _ =
            writeln!(svg, r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{}"/>"#, path.join(" "));
        for point in &line.points {
            let [cx, cy] = [x(point[0]), y(point[1])];
            let _ = writeln!(svg, r#"<circle cx="{cx:.1}" cy="{cy:.1}" r="3.5" fill="{colour}"/>"#);
            text(&mut svg, [cx, cy - 9.0], "middle", &figure(point[1]));
        }
        legend(&mut svg, n, &line.name);
    }
    svg + "</svg>\n"
}

/// Groups of bars. All groups have the same programs in the same order, and an axis of their own.
pub(super) fn bars(title: &str, y_label: &str, groups: &[(&str, Vec<Bar>)]) -> String {
    let [left, top, right, bottom] = FRAME;
    // Full height for the highest of each group: what is compared stands side by side.
    let mut svg = start(title, y_label, 0.0);
    let width = (right - left) / groups.len().max(1) as f64;
    for (g, (group, bars)) in groups.iter().enumerate() {
        let most = bars.iter().map(|bar| bar.spread[1].max(bar.height)).fold(0.0, f64::max).max(1e-9);
        let y = |value: f64| bottom - value / most * (bottom - top - 24.0);
        let from = left + g as f64 * width + 24.0;
        let each = (width - 48.0) / bars.len().max(1) as f64;
        for (n, bar) in bars.iter().enumerate() {
            let (x, colour) = (from + n as f64 * each, COLOURS[n % COLOURS.len()]);
            let (centre, at) = (x + each / 2.0, y(bar.height));
            let [low, high] = bar.spread.map(y);
            let _ = writeln!(
                svg,
                r#"<rect x="{:.1}" y="{at:.1}" width="{:.1}" height="{:.1}" fill="{colour}"/>"#,
                x + 6.0,
                each - 12.0,
                bottom - at
            );
            let _ = writeln!(svg, r##"<path d="M{centre:.1} {low:.1}V{high:.1}" stroke="#333"/>"##);
            text(&mut svg, [centre, high - 6.0], "middle", &figure(bar.height));
            if g == 0 {
                legend(&mut svg, n, &bar.name);
            }
        }
        text(&mut svg, [left + (g as f64 + 0.5) * width, bottom + 20.0], "middle", group);
    }
    svg + "</svg>\n"
}

/// A fifth of a round number that nothing is above.
fn step(most: f64) -> f64 {
    let most = if most > 0.0 { most * 1.05 / 5.0 } else { 1.0 };
    let power = 10f64.powf(most.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|n| n * power >= most).unwrap_or(10.0);
    nice * power
}

/// A figure with as many digits as mean something.
fn figure(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// The head, the title, the frame and the vertical axis; a `step` of 0 leaves the axis without figures.
fn start(title: &str, y_label: &str, step: f64) -> String {
    let [left, top, right, bottom] = FRAME;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
"##
    );
    let _ = writeln!(svg, r#"<text x="{left}" y="22" font-size="15">{}</text>"#, escaped(title));
    let (x, y) = (18.0, (top + bottom) / 2.0);
    let _ = writeln!(
        svg,
        r#"<text transform="translate({x},{y}) rotate(-90)" text-anchor="middle">{}</text>"#,
        escaped(y_label)
    );
    for n in 0..=5 {
        let y = bottom - f64::from(n) / 5.0 * (bottom - top);
        if n > 0 && step == 0.0 {
            break;
        }
        let colour = if n == 0 { "#333" } else { "#ddd" };
        let _ = writeln!(svg, r#"<path d="M{left} {y:.1}H{right}" stroke="{colour}"/>"#);
        if step > 0.0 {
            text(&mut svg, [left - 8.0, y + 4.0], "end", &figure(f64::from(n) * step));
        }
    }
    svg
}

fn text(svg: &mut String, [x, y]: [f64; 2], anchor: &str, words: &str) {
    let _ = writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#, escaped(words));
}

/// The name of series `n`, in a row under the title.
fn legend(svg: &mut String, n: usize, name: &str) {
    let x = FRAME[0] + 160.0 * n as f64;
    let _ = writeln!(svg, r#"<rect x="{x}" y="30" width="10" height="10" fill="{}"/>"#, COLOURS[n % COLOURS.len()]);
    text(svg, [x + 16.0, 39.0], "start", name);
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{Bar, Line, bars, lines, step};

    #[test]
    fn a_step_is_round_and_five_of_them_hold_the_largest() {
        for most in [0.004, 0.7, 1.0, 3.0, 9.0, 10.0, 77.0, 1234.5] {
            let step = step(most);
            assert!(5.0 * step >= most && 2.0 * step <= most * 1.3, "{most}: {step}");
        }
        assert_eq!(step(0.0), 1.0);
    }

    #[test]
    fn points_that_double_lie_equally_far_apart_and_larger_ones_higher() {
        let line = Line { name: "1 < 2 threads".to_owned(), points: vec![[32.0, 1.0], [64.0, 2.0], [128.0, 4.0]] };
        let svg = lines("time", ["context", "ms"], &[line]);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let numbers: Vec<f64> = points.split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
        let &[x1, y1, x2, y2, x3, y3] = &*numbers else { panic!("{points}") };
        assert!((x2 - x1 - (x3 - x2)).abs() < 0.2 && y1 > y2 && y2 > y3, "{points}");
        assert!(svg.contains("1 &lt; 2 threads") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn the_highest_bar_of_a_group_fills_it() {
        let bar = |height: f64| Bar { name: "x".to_owned(), height, spread: [height, height] };
        let svg = bars("speed", "tokens/s", &[("prefill", vec![bar(1000.0), bar(500.0)]), ("decode", vec![bar(10.0)])]);
        let heights: Vec<f64> = svg
            .split("<rect x=")
            .filter(|part| !part.contains("width=\"10\""))
            .filter_map(|part| part.split("height=\"").nth(1)?.split('"').next()?.parse().ok())
            .filter(|height| *height != 400.0)
            .collect();
        let &[full, half, other] = &*heights else { panic!("{svg}") };
        assert!((full - 2.0 * half).abs() < 0.3 && full == other, "{heights:?}");
    }
}
