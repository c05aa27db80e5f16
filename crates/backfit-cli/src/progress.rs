//! How far a training is: a bar where stderr is a terminal, else a line per epoch.

use crate::console::number;
use backfit::{Event, Scalars};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often the bar is written anew.
const REDRAW: Duration = Duration::from_millis(60);
/// No more lines than this are written where stderr is no terminal.
const LINES: u64 = 100;

/// Shows events on stderr.
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    begun: Instant,
    drawn: Instant,
    samples: u64,
    epochs: u64,
    /// The last epoch, from one, and what there is to tell of it.
    last: Option<(u64, String)>,
}

impl Progress {
    /// Nothing is shown where `quiet`.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3}%  {msg}  ETA {eta}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let now = Instant::now();
        Progress { bar, quiet, begun: now, drawn: now, samples: 0, epochs: 0, last: None }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event) {
        match event {
            Event::Started { step, epoch, epochs, steps_per_epoch } => {
                (self.begun, self.epochs) = (Instant::now(), *epochs);
                if let Some(bar) = &self.bar {
                    bar.set_length(epochs.saturating_mul(*steps_per_epoch));
                    bar.set_position(*step);
                    bar.reset_eta();
                    bar.set_prefix(format!("epoch {}/{epochs}", epoch + 1));
                }
            }
            Event::Step { epoch, samples, output, .. } => {
                self.samples += *samples as u64;
                self.redraw(*epoch, output.step(), output.scalars());
            }
            Event::Epoch(report) => {
                let line = format!("epoch {}/{}  {}", report.epoch + 1, self.epochs, told(&report.scalars));
                let skipped = if report.skipped > 0 { format!("  skipped {}", report.skipped) } else { String::new() };
                self.tell_line();
                self.last = Some((report.epoch + 1, format!("{line}  {:.0} samples/s{skipped}", self.speed())));
            }
            Event::Validation { report, .. } => {
                if let Some((_, line)) = &mut self.last {
                    *line = format!("{line}  | held back: {}", told(&report.scalars));
                }
            }
            Event::Skipped { output, trace, .. } => {
                let row = match output.skipped_in_a_row() {
                    1 => String::new(),
                    n => format!(", the {n}th in a row"),
                };
                self.tell(&format!(
                    "a step after step {} was skipped{row}: its gradients are not finite",
                    output.step()
                ));
                trace.iter().for_each(|trace| self.tell(&trace.to_string()));
            }
            Event::Saved { .. } => {}
            Event::Finished(_) => {
                self.tell_line();
                self.bar.iter().for_each(ProgressBar::finish_and_clear);
            }
        }
    }

    /// Shows a text below the line of the last epoch.
    pub fn show_text(&mut self, text: &str) {
        self.tell_line();
        self.tell(text);
    }

    fn redraw(&mut self, epoch: u64, step: u64, scalars: &Scalars) {
        if self.drawn.elapsed() < REDRAW {
            return;
        }
        self.drawn = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("epoch {}/{}", epoch + 1, self.epochs));
            bar.set_message(format!("{}  {:.0} samples/s", told(scalars), self.speed()));
            bar.set_position(step);
        }
    }

    fn speed(&self) -> f64 {
        self.samples as f64 / self.begun.elapsed().as_secs_f64().max(1e-9)
    }

    /// Writes the line of the last epoch: it waits for the validation that may follow.
    fn tell_line(&mut self) {
        let Some((number, line)) = self.last.take() else { return };
        let every = self.epochs.div_ceil(LINES).max(1);
        let due = number.is_multiple_of(every) || number == self.epochs || number == 1;
        if due {
            self.tell(&line);
        }
    }

    fn tell(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

fn told(scalars: &Scalars) -> String {
    scalars.iter().map(|(name, value)| format!("{name} {}", number(value))).collect::<Vec<_>>().join("  ")
}
