//! `cargo run -p sim -- 123` plays a seed and prints its story; `-- --minutes 10` plays fresh seeds
//! until time is up.
#![forbid(unsafe_code)]

use clap::Parser;
use sim::succession::Cluster;
use sim::{Verdict, Weather, World};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A seed takes no more of a processor's time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Millrace in a world made from a seed.
#[derive(Parser)]
struct Flags {
    /// Play these seeds and print their stories.
    seeds: Vec<u64>,
    /// Calm, windy, fickle, stormy or disastrous; else the seed says.
    #[arg(long)]
    weather: Option<String>,
    /// Play fresh seeds for so many minutes and print those that fail.
    #[arg(long)]
    minutes: Option<f64>,
    /// Begin with this seed instead of one from the clock (with --minutes).
    #[arg(long)]
    from: Option<u64>,
    /// So many more in a hundred steps of a session are a KILL.
    #[arg(long, default_value_t = 0)]
    kills: u64,
    /// A cluster whose writer is replaced, instead of two servers that stay what they are.
    #[arg(long)]
    succession: bool,
}

impl Flags {
    /// Plays a seed to its end.
    fn play(&self, seed: u64) -> Verdict {
        if self.succession {
            return sim::succession::run(&Cluster::of(seed));
        }
        sim::run(&World {
            kills: self.kills,
            ..world(seed, self.weather.as_deref())
        })
    }
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match flags.minutes {
        Some(minutes) => soak(minutes, &flags),
        None if flags.seeds.is_empty() => {
            eprintln!(
                "which seed? For example: cargo run -p sim -- 123, or cargo run -p sim -- --minutes 5"
            );
            ExitCode::from(2)
        }
        None => tell(&flags),
    }
}

/// The world of a seed, in the weather that was asked for.
fn world(seed: u64, weather: Option<&str>) -> World {
    match weather {
        Some("calm") => World::with(seed, Weather::Calm),
        Some("windy") => World::with(seed, Weather::Windy),
        Some("fickle") => World::with(seed, Weather::Fickle),
        Some("stormy") => World::with(seed, Weather::Stormy),
        Some("disastrous") => World::with(seed, Weather::Disastrous),
        _ => World::of(seed),
    }
}

fn tell(flags: &Flags) -> ExitCode {
    let mut bad = false;
    for seed in &flags.seeds {
        let verdict = flags.play(*seed);
        for line in &verdict.story {
            println!("{line}");
        }
        println!(
            "seed {seed}: {} answered, {} excused by faults, {} committed, {} violations",
            verdict.answered,
            verdict.excused,
            verdict.committed,
            verdict.violations.len()
        );
        for violation in &verdict.violations {
            println!("  {violation}");
        }
        bad |= !verdict.violations.is_empty();
    }
    if bad {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Time of a processor that this process has had: on a busy machine a world may take long, and one that
/// goes round and round takes it all. Where the system does not tell, nothing is ever too long.
fn worked() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may have blanks; user and system time are the 12th and 13th behind it.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let ticks = behind.split_ascii_whitespace().skip(11).take(2);
    let ticks = ticks
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum::<u64>();
    // A hundredth of a second each, as proc(5) says of Linux.
    Duration::from_millis(ticks * 10)
}

/// A core that goes round and round without ever waiting holds up the world's time as well.
fn watch(playing: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let (mut last, mut since) = (0, worked());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let seed = playing.load(Ordering::Relaxed);
            if seed != last {
                (last, since) = (seed, worked());
            } else if worked().saturating_sub(since) > PATIENCE {
                println!(
                    "seed {seed} fails: it goes on without ever waiting\n  cargo run -p sim -- {seed}"
                );
                std::process::exit(1);
            }
        }
    });
}

fn soak(minutes: f64, flags: &Flags) -> ExitCode {
    let clock = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |since| since.as_secs() * 1000)
    };
    let mut seed = flags.from.unwrap_or_else(clock);
    let until = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (mut played, mut failing) = (0u64, Vec::new());
    let (mut answered, mut excused, mut committed) = (0, 0, 0);
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    let playing = Arc::new(AtomicU64::new(seed));
    watch(playing.clone());
    while Instant::now() < until {
        playing.store(seed, Ordering::Relaxed);
        let verdict = catch_unwind(AssertUnwindSafe(|| flags.play(seed)));
        match verdict {
            Ok(verdict) => {
                answered += verdict.answered;
                excused += verdict.excused;
                committed += verdict.committed;
                verdict
                    .hits
                    .iter()
                    .for_each(|(what, times)| *hits.entry(what).or_default() += times);
                if let Some(first) = verdict.violations.first() {
                    println!("seed {seed} fails: {first}");
                    failing.push(seed);
                }
            }
            Err(_) => {
                println!("seed {seed} fails: it never ends, or the world broke");
                failing.push(seed);
            }
        }
        played += 1;
        seed += 1;
    }
    println!(
        "{played} seeds up to {}: {answered} answered, {excused} excused, {committed} committed, {} failing",
        seed - 1,
        failing.len()
    );
    for (what, times) in &hits {
        println!("{times:>10}  {what}");
    }
    let (kills, world) = match flags.succession {
        true => (0, " --succession"),
        false => (flags.kills, ""),
    };
    for seed in &failing {
        println!("  cargo run -p sim -- --kills {kills}{world} {seed}");
    }
    if failing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
