//! `backfit inspect`.

use crate::args;
use crate::commands::ranges;
use crate::console::{Console, bytes, table};
use crate::recipe::{self, Loaded};
use crate::{samples, session};
use backfit::ir::rewrite::live_functions;
use backfit::ir::{dot, text};
use backfit::precision::{Class, Policy};
use backfit::target::pipeline::StageReport;
use backfit::target::plan::Storage;
use backfit::target::target::{FunctionReport, MemoryReport};
use backfit::{Place, Problem, Result, TapReport, Trainer};
use serde_json::{Value, json};

/// No more rows of a list than this are printed; `--json` has them all.
const ROWS: usize = 60;

/// Shows what a recipe compiles to.
///
/// # Errors
/// Whatever is wrong with the recipe; no such function or stage.
pub fn run(args: &args::Inspect, console: Console) -> Result<()> {
    let loaded = recipe::load(&args.recipe, &args.changes.overrides())?;
    if args.ranges {
        return ranges::run(args, &loaded, console);
    }
    let interface = match samples::known(&loaded) {
        Some(interface) => interface,
        None => samples::load(&loaded)?.interface,
    };
    let trainer = session::compile(&loaded, &interface)?;
    let executable = trainer.executable();
    let functions = executable.functions();
    let Some(function) = functions.iter().find(|f| f.name == args.function) else {
        let names: Vec<&str> = functions.iter().map(|f| f.name.as_str()).collect();
        let problem = Problem::new(format!("the training program has no function '{}'", args.function));
        let problem = problem.at(Place::Key("--function".to_owned()));
        return Err(problem.help(format!("it has: {}", names.join(", "))).into());
    };
    if args.text || args.dot || args.stage.is_some() {
        return graph(args, executable.stages(), console);
    }
    let memory = executable.memory();
    console.event(&object(&loaded, function, &memory, &trainer));
    if !console.json {
        console.say(page(&loaded, function, &memory, &trainer));
    }
    Ok(())
}

/// The text form or picture of a function after a stage.
fn graph(args: &args::Inspect, stages: &[StageReport], console: Console) -> Result<()> {
    let stage = match &args.stage {
        None => stages.last(),
        Some(name) => stages.iter().find(|s| s.name == name),
    };
    let function = |stage: &StageReport| stage.module.find(&args.function).map(|id| (stage.clone(), id));
    let Some((stage, id)) = stage.and_then(function) else {
        let names: Vec<&str> = stages.iter().map(|s| s.name).collect();
        let problem = Problem::new(format!("there is no stage '{}'", args.stage.as_deref().unwrap_or_default()));
        let problem = problem.at(Place::Key("--stage".to_owned()));
        return Err(problem.help(format!("the stages are: {}", names.join(", "))).into());
    };
    let (kind, graph) = if args.dot {
        ("dot", dot::dot(&stage.module, id))
    } else {
        let (module, _) = live_functions(&stage.module, &[id]);
        ("text", text::print(&module, text::Options { blobs: false }))
    };
    console.event(&json!({
        "event": "inspected", "stage": stage.name, "function": args.function, "nodes": stage.nodes,
        "notes": stage.notes, kind: graph,
    }));
    if !args.text && !args.dot {
        console.say(format!("// after '{}': {} nodes; {}", stage.name, stage.nodes, stage.notes.join("; ")));
    }
    console.say(graph.trim_end());
    Ok(())
}

fn object(loaded: &Loaded, function: &FunctionReport, memory: &MemoryReport, trainer: &Trainer) -> Value {
    let executable = trainer.executable();
    let instructions = function.instructions.iter().map(|i| {
        json!({"name": i.name, "operators": i.operators, "locations": i.locations, "flops": i.flops,
               "bytes": i.bytes, "parallel": i.parallel})
    });
    let stages = executable.stages().iter().map(|s| json!({"name": s.name, "nodes": s.nodes, "notes": s.notes}));
    let residents = executable.residents().iter().map(
        |p| json!({"name": p.name, "type": p.ty.to_string(), "bytes": p.ty.bytes(), "role": format!("{:?}", p.role)}),
    );
    json!({
        "event": "inspected", "recipe": loaded.source.name(), "target": "cpu", "function": function.name,
        "precision": table_of(&loaded.policy()),
        "plan": {
            "arena_bytes": function.plan.arena_bytes, "resident_bytes": memory.resident_bytes,
            "constant_bytes": memory.constant_bytes, "largest_live_bytes": function.plan.largest_live_bytes,
            "instructions": function.instructions.len(),
        },
        "memory": {
            "arena_bytes": memory.arena_bytes, "resident_bytes": memory.resident_bytes,
            "constant_bytes": memory.constant_bytes, "staging_bytes": memory.staging_bytes,
            "total_bytes": memory.total_bytes,
        },
        "flops": flops(function), "bytes_moved": moved(function),
        "instructions": instructions.collect::<Vec<_>>(),
        "arena": arena(function).iter().map(|b| json!({
            "name": b.name, "offset": b.offset, "bytes": b.bytes, "first": b.first, "last": b.last,
        })).collect::<Vec<_>>(),
        "orders": function.plan.orders.iter().map(|(name, peak)| json!({"name": name, "peak": peak}))
            .collect::<Vec<_>>(),
        "taps": trainer.taps().iter().map(tapped).collect::<Vec<_>>(),
        "stages": stages.collect::<Vec<_>>(), "residents": residents.collect::<Vec<_>>(),
    })
}

fn tapped(report: &TapReport) -> Value {
    let kept = report.kept.iter();
    json!({
        "function": report.function, "policy": format!("{:?}", report.taps), "bytes": report.bytes(),
        "kept": kept.map(|t| json!({"name": t.name, "location": t.loc.to_string(), "bytes": t.bytes})).collect::<Vec<_>>(),
        "recomputed": report.recomputed, "extra_flops": report.extra_flops,
    })
}

/// What each class of operators computes in.
fn table_of(policy: &Policy) -> Value {
    let rows = Class::ALL.map(|class| (class.word().to_owned(), json!(policy.compute(class, "").word())));
    json!({"policy": policy.name(), "classes": Value::Object(rows.into_iter().collect())})
}

fn flops(function: &FunctionReport) -> u64 {
    function.instructions.iter().map(|i| i.flops).sum()
}

fn moved(function: &FunctionReport) -> u64 {
    function.instructions.iter().map(|i| i.bytes).sum()
}

/// A buffer in the arena.
struct Kept<'a> {
    name: &'a str,
    offset: usize,
    bytes: usize,
    first: usize,
    last: usize,
}

/// Buffers with memory of their own, by offset and time.
fn arena(function: &FunctionReport) -> Vec<Kept<'_>> {
    let plan = &function.plan;
    let all = function.buffers.iter().enumerate().filter_map(|(index, (name, bytes))| {
        let (Storage::Arena(offset), Some(life)) = (plan.storage.get(index)?, plan.lifetimes.get(index)?.as_ref())
        else {
            return None;
        };
        Some(Kept { name, offset: *offset, bytes: *bytes, first: life.first, last: life.last })
    });
    let mut all: Vec<Kept> = all.collect();
    all.sort_by_key(|b| (b.offset, b.first));
    all
}

fn page(loaded: &Loaded, function: &FunctionReport, memory: &MemoryReport, trainer: &Trainer) -> String {
    let plan = &function.plan;
    let mut out = vec![format!(
        "{}: function '{}' on cpu, batches of {}\n",
        loaded.source.name(),
        function.name,
        loaded.recipe.batch
    )];
    let row = |name: &str, size: usize, what: &str| vec![format!("{name:<13} {:>12}  {what}", bytes(size))];
    out.push(table(&[
        row("arena", plan.arena_bytes, "scratch memory, planned before the first step"),
        row("largest live", plan.largest_live_bytes, "no arena can be smaller for this order"),
        row("resident", memory.resident_bytes, "weights, state, optimizer state"),
        row("constants", memory.constant_bytes, ""),
        row("staging", memory.staging_bytes, "inputs and results"),
        row("total", memory.total_bytes, "as allocated, for all functions"),
    ]));
    out.push(format!(
        "\n{:.3} MFLOP and {} moved per run, {} instructions\n",
        flops(function) as f64 / 1e6,
        bytes(moved(function) as usize),
        function.instructions.len()
    ));
    out.push(instructions(function));
    out.push(format!("\nArena map, {} buffers (offset, bytes, steps in use):\n", arena(function).len()));
    out.push(map(function));
    if !trainer.taps().is_empty() {
        out.push("\nFor the backward pass, per call or step of a loop:".to_owned());
        out.extend(trainer.taps().iter().map(taps));
    }
    out.push(format!("\n{}", loaded.policy()));
    out.push("Stages:".to_owned());
    out.extend(
        trainer
            .executable()
            .stages()
            .iter()
            .map(|s| format!("  {:<14} {:>5} nodes  {}", s.name, s.nodes, s.notes.join("; "))),
    );
    out.join("\n")
}

/// What a function keeps and runs again.
fn taps(report: &TapReport) -> String {
    let kept: Vec<String> = report.kept.iter().map(|t| t.name.clone()).collect();
    let mut told = format!(
        "  {} ({:?}) keeps {}: {}",
        report.function,
        report.taps,
        bytes(report.bytes() as usize),
        shortened(&kept)
    );
    if !report.recomputed.is_empty() {
        let flops = report.extra_flops as f64 / 1e6;
        told += &format!("; runs again, for {flops:.3} MFLOP: {}", shortened(&report.recomputed));
    }
    told
}

/// One line per instruction: a fused group is one instruction with several operators.
fn instructions(function: &FunctionReport) -> String {
    let head = ["  #  instruction", "FLOPs", "bytes", "threads"].map(str::to_owned).to_vec();
    let mut lines = vec![head];
    for (n, i) in function.instructions.iter().take(ROWS).enumerate() {
        let threads = if i.parallel { "all" } else { "1" };
        lines.push(vec![format!("{n:>3}  {}", i.name), i.flops.to_string(), i.bytes.to_string(), threads.to_owned()]);
    }
    let numbers = table(&lines);
    let told = std::iter::once("operators  ← lines".to_owned()).chain(
        function.instructions.iter().map(|i| format!("{}  ← {}", shortened(&i.operators), shortened(&i.locations))),
    );
    let mut rows: Vec<String> = numbers.lines().zip(told).map(|(a, b)| format!("{a}  {b}")).collect();
    rows.extend(rest(function.instructions.len()));
    rows.join("\n")
}

/// Words, a word that follows itself only counted.
fn shortened(words: &[String]) -> String {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for word in words {
        match runs.last_mut() {
            Some((last, count)) if *last == word.as_str() => *count += 1,
            _ => runs.push((word, 1)),
        }
    }
    let told = |&(word, count): &(&str, usize)| if count > 1 { format!("{word}×{count}") } else { word.to_owned() };
    runs.iter().map(told).collect::<Vec<_>>().join(" ")
}

fn map(function: &FunctionReport) -> String {
    let all = arena(function);
    let rows = all
        .iter()
        .take(ROWS)
        .map(|b| vec![format!("  {:>10}  {:>10}  {:>4}–{:<4} {}", b.offset, b.bytes, b.first, b.last, b.name)]);
    let mut lines = vec![table(&rows.collect::<Vec<_>>())];
    lines.extend(rest(all.len()));
    lines.join("\n")
}

fn rest(count: usize) -> Option<String> {
    (count > ROWS).then(|| format!("  … and {} more; --json has them all", count - ROWS))
}
