//! `ferroflow completions` and `ferroflow man`: what shells and `man` read, of the verbs and flags
//! themselves.

use super::{Arguments, Report};
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;
use std::{fs, path::PathBuf};

/// Arguments of the command `completions`.
#[derive(Args)]
pub(super) struct CompletionsArguments {
    /// The shell that reads the script.
    shell: Shell,
}

/// Arguments of the command `man`.
#[derive(Args)]
pub(super) struct ManArguments {
    /// A folder for the pages of all verbs; without it, the page of the program is printed.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn completions(arguments: CompletionsArguments) -> Result<Report> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "ferroflow", &mut script);
    let script = String::from_utf8(script).context("the script of the shell")?;
    let shell = arguments.shell.to_string();
    Ok(Report { json: json!({ "shell": shell, "script": script }), text: script })
}

pub(super) fn man(arguments: ManArguments) -> Result<Report> {
    let Some(folder) = arguments.folder else {
        let mut page = Vec::new();
        Man::new(Arguments::command()).render(&mut page)?;
        let page = String::from_utf8(page).context("the page")?;
        return Ok(Report { json: json!({ "page": page }), text: page });
    };
    let at = || format!("{}", folder.display());
    fs::create_dir_all(&folder).with_context(at)?;
    clap_mangen::generate_to(Arguments::command(), &folder).with_context(at)?;
    let entries = fs::read_dir(&folder).with_context(at)?;
    let mut pages = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    pages.retain(|page| page.extension().is_some_and(|kind| kind == "1"));
    pages.sort();
    let pages: Vec<String> = pages.iter().map(|page| page.display().to_string()).collect();
    Ok(Report { text: pages.join("\n"), json: json!({ "pages": pages }) })
}
