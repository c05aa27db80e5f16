//! The `backfit` binary: trains, judges, asks, inspects and exports models from the command line.
#![warn(missing_docs)]

mod allocations;
mod args;
mod commands;
mod console;
mod interface;
mod interrupt;
mod network;
mod progress;
mod recipe;
mod recorder;
mod run_folder;
mod samples;
mod session;
mod summary;
mod writer;

use args::{Arguments, Command};
use clap::Parser;
use console::Console;
use serde_json::json;
use std::process::exit;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// The exit code of everything that the user can put right.
const USER_ERROR: i32 = 2;

fn main() {
    // A wrong command line ends here, with exit code 2 as well.
    let arguments = Arguments::parse();
    let console = Console { json: arguments.json };
    match run(&arguments.command, console) {
        Ok(code) => exit(code),
        Err(error) => {
            console.event(&json!({"event": "error", "message": error.to_string()}));
            for problem in error.problems() {
                eprintln!("error: {problem}");
            }
            exit(USER_ERROR)
        }
    }
}

fn run(command: &Command, console: Console) -> backfit::Result<i32> {
    match command {
        Command::Train(args) => return commands::train::run(args, console),
        Command::Eval(args) => commands::eval::run(args, console)?,
        Command::Predict(args) => commands::predict::run(args, console)?,
        Command::Inspect(args) => commands::inspect::run(args, console)?,
        Command::Export(args) => commands::export::run(args, console)?,
        Command::Data(args) => commands::data::run(args, console)?,
    }
    Ok(0)
}
