//! Figures of a run as a Markdown table: each row beside the fastest side.

use super::duration;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// The figures of a run, and the file that takes the table.
#[derive(Args)]
pub(super) struct Flags {
    /// The figures, as `--json` wrote them.
    figures: PathBuf,
    /// Replace the lines of a Markdown file between `<!-- rows: NAME -->` and `<!-- end of rows -->`.
    #[arg(long, value_name = "FILE", requires = "name")]
    into: Option<PathBuf>,
    /// The name of those lines.
    #[arg(long)]
    name: Option<String>,
}

pub(super) fn run(flags: &Flags) -> Result<()> {
    let read = |path: &Path| fs::read_to_string(path).with_context(|| path.display().to_string());
    let rows: Vec<Value> = serde_json::from_str(&read(&flags.figures)?)?;
    let table = markdown(&rows);
    let (Some(path), Some(name)) = (&flags.into, &flags.name) else {
        print!("{table}");
        return Ok(());
    };
    let text = replaced(&read(path)?, name, &table)
        .with_context(|| format!("{} has no rows named {name}", path.display()))?;
    Ok(fs::write(path, text)?)
}

/// A text with other lines between the marks of a name; `None` if it has no such marks.
fn replaced(text: &str, name: &str, lines: &str) -> Option<String> {
    let mark = format!("<!-- rows: {name} -->\n");
    let (before, rest) = text.split_once(&mark)?;
    let (_, after) = rest.split_once("<!-- end of rows -->")?;
    Some(format!("{before}{mark}\n{lines}\n<!-- end of rows -->{after}"))
}

/// Rows of which our time is up to this much longer than the best are not behind: that is noise.
const NOISE: f64 = 0.97;

/// The table: the time of TensorFlow (the side `tf`), of the fastest other side, ours, the part of ours that
/// the processor needs at least, and the time of the fastest by ours, bold where ours is behind; below it
/// those rows, worst first.
fn markdown(rows: &[Value]) -> String {
    let mut text =
        "| Row | TensorFlow | Best other | ferroflow | Roofline | Best / ours |\n".to_string();
    text.push_str("|---|---|---|---|---|---|\n");
    let mut behind: Vec<(f64, &str)> = Vec::new();
    for row in rows {
        let name = row["name"].as_str().unwrap_or("");
        let Some(sides) = row["sides"].as_object() else { continue };
        let seconds = |side: &str| sides.get(side).and_then(|side| side["seconds"].as_f64());
        let Some(ours) = seconds("ours") else { continue };
        let tensorflow = seconds("tf");
        let others = sides.keys().filter(|side| !matches!(side.as_str(), "ours" | "tf"));
        let other = others
            .filter_map(|side| Some((seconds(side)?, side)))
            .min_by(|(a, _), (b, _)| a.total_cmp(b));
        let best = tensorflow.into_iter().chain(other.map(|(time, _)| time)).reduce(f64::min);
        let Some(best) = best else { continue };
        let ratio = best / ours;
        let marked = match ratio < NOISE {
            true => format!("**{ratio:.2}**"),
            false => format!("{ratio:.2}"),
        };
        let tensorflow = tensorflow.map_or("–".into(), duration);
        let other = other.map_or("–".into(), |(time, side)| format!("{} {side}", duration(time)));
        let ours = duration(ours);
        let roofline = sides["ours"]["roofline"].as_f64();
        let roofline = roofline.map_or("–".into(), |part| format!("{:.0} %", 100.0 * part));
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "| `{name}` | {tensorflow} | {other} | {ours} | {roofline} | {marked} |"
        );
        if ratio < NOISE {
            behind.push((ratio, name));
        }
    }
    behind.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    if !behind.is_empty() {
        let list: Vec<String> =
            behind.iter().map(|(ratio, name)| format!("`{name}` {ratio:.2}")).collect();
        let _ = writeln!(text, "\nBehind, worst first: {}.", list.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_stand_beside_the_fastest() {
        let rows = [
            json!({ "name": "a.b", "sides": {
                "ours": { "seconds": 2e-3, "roofline": 0.734 }, "tf": { "seconds": 3e-3 },
                "torch": { "seconds": 1e-3 }, "ort": { "error": "not supported" },
            } }),
            json!({ "name": "c.d", "sides": { "ours": { "seconds": 2e-6 }, "tf": { "seconds": 5e-6 } } }),
            json!({ "name": "e.f", "sides": { "ours": { "seconds": 2e-6 } } }),
        ];
        let expected = "| Row | TensorFlow | Best other | ferroflow | Roofline | Best / ours |\n\
                        |---|---|---|---|---|---|\n\
                        | `a.b` | 3.00 ms | 1.00 ms torch | 2.00 ms | 73 % | **0.50** |\n\
                        | `c.d` | 5.00 us | – | 2.00 us | – | 2.50 |\n\
                        \nBehind, worst first: `a.b` 0.50.\n";
        assert_eq!(markdown(&rows), expected);
    }

    #[test]
    fn lines_between_the_marks_are_replaced() {
        let text = "x\n<!-- rows: one -->\n\nold\n\n<!-- end of rows -->\ny\n";
        let expected = "x\n<!-- rows: one -->\n\nnew\n\n<!-- end of rows -->\ny\n";
        assert_eq!(replaced(text, "one", "new\n").as_deref(), Some(expected));
        assert_eq!(replaced(text, "two", "new\n"), None);
    }
}
