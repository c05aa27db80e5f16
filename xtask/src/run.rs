//! Running steps one after another, and the account at the end.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// A command, or the reason why it is not run here.
pub struct Step {
    pub name: String,
    pub action: Action,
}

/// What a step does.
pub enum Action {
    /// Succeeds where the command does and its output passes the check.
    Run(Box<Command>, Check),
    /// Succeeds where the function does; it returns a note, or what went wrong.
    Do(fn() -> Result<String, String>),
    /// Nothing, and why.
    Skip(String),
}

/// What must hold of the lines that a command prints.
pub type Check = fn(&[String]) -> Result<String, String>;

/// Asks nothing.
pub fn anything(_: &[String]) -> Result<String, String> {
    Ok(String::new())
}

impl Step {
    /// A step of cargo.
    pub fn cargo(name: &str, arguments: &[&str]) -> Step {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments);
        Step::command(name, command)
    }

    /// A step of any program, run in the root of the repository.
    pub fn command(name: &str, mut command: Command) -> Step {
        command.current_dir(crate::root());
        Step { name: name.to_owned(), action: Action::Run(Box::new(command), anything) }
    }

    /// A step that is more than one command.
    pub fn of(name: &str, function: fn() -> Result<String, String>) -> Step {
        Step { name: name.to_owned(), action: Action::Do(function) }
    }

    /// A step that is not run here.
    pub fn skip(name: &str, why: impl Into<String>) -> Step {
        Step { name: name.to_owned(), action: Action::Skip(why.into()) }
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Step {
        if let Action::Run(command, _) = &mut self.action {
            command.env(name, value);
        }
        self
    }

    /// Also looks at what the command prints.
    pub fn check(mut self, check: Check) -> Step {
        if let Action::Run(_, old) = &mut self.action {
            *old = check;
        }
        self
    }
}

/// Tests that cargo counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tests {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tests {
    /// Adds what a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …` says.
    fn count(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// Runs every step, also after one has failed, and prints an account. The code tells whether all succeeded.
pub fn all(steps: Vec<Step>) -> ExitCode {
    let mut tests = Tests::default();
    let mut account = Vec::new();
    let mut failed = 0;
    for step in steps {
        let begun = Instant::now();
        let (word, note) = match step.action {
            Action::Skip(why) => ("skipped", why),
            action => match carry_out(&step.name, action, &mut tests) {
                Ok(note) => ("ok", note),
                Err(why) => {
                    failed += 1;
                    ("FAILED", why)
                }
            },
        };
        account.push(format!("{word:<8} {:>5.0} s  {:<32} {note}", begun.elapsed().as_secs_f64(), step.name));
    }
    println!("\n{}", account.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n"));
    println!("{failed} of {} steps failed", account.len());
    if tests != Tests::default() {
        println!("{} passed, {} failed, {} ignored", tests.passed, tests.failed, tests.ignored);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does what a step is made of.
fn carry_out(name: &str, action: Action, tests: &mut Tests) -> Result<String, String> {
    match action {
        Action::Run(mut command, check) => {
            println!("\n=== {name}: {}", describe(&command));
            stream(&mut command, tests).and_then(|lines| check(&lines))
        }
        Action::Do(function) => {
            println!("\n=== {name}");
            function()
        }
        Action::Skip(why) => Ok(why),
    }
}

/// A command as one would type it.
fn describe(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| Some(format!("{}={:?}", name.to_str()?, value?)));
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy().into_owned());
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// Runs a command, prints its lines as they come, and returns them.
fn stream(command: &mut Command, tests: &mut Tests) -> Result<Vec<String>, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    let mut lines = Vec::new();
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    for line in output.split(b'\n') {
        let line = line.map_err(|error| format!("its output cannot be read: {error}"))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        // Whoever reads may have gone away; the account is what counts.
        writeln!(std::io::stdout(), "{line}").ok();
        tests.count(&line);
        lines.push(line);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(lines) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rustc(argument: &str) -> Step {
        let mut command = Command::new("rustc");
        command.arg(argument);
        Step::command("rustc", command)
    }

    fn failed(steps: Vec<Step>) -> bool {
        format!("{:?}", all(steps)) != format!("{:?}", ExitCode::SUCCESS)
    }

    #[test]
    fn a_failing_step_fails_the_chore_wherever_it_stands() {
        assert!(!failed(vec![rustc("--version"), Step::skip("nothing", "it is not there")]));
        assert!(failed(vec![rustc("--version"), rustc("--no-such-option"), rustc("--version")]));
        assert!(failed(vec![Step::of("no luck", || Err("it is broken".to_owned()))]));
        assert!(failed(vec![Step::command("no such program", Command::new("no-such-program-anywhere"))]));
        assert!(failed(vec![rustc("--version").check(|_| Err("not what was expected".to_owned()))]));
    }

    #[test]
    fn checks_see_what_was_printed() {
        let check =
            |lines: &[String]| if lines[0].starts_with("rustc 1") { Ok(String::new()) } else { Err(String::new()) };
        assert!(!failed(vec![rustc("--version").check(check)]));
    }

    #[test]
    fn tests_are_counted() {
        let mut tests = Tests::default();
        tests.count("running 4 tests");
        tests.count("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        tests
            .count("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.00s");
        assert_eq!(tests, Tests { passed: 4, failed: 2, ignored: 1 });
    }
}
