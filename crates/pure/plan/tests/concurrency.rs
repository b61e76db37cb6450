//! Who waits is ordered, and the limit of statements in flight follows latency: as texts, see
//! `admission/*.txt` (`UPDATE_EXPECT=1 cargo test -p plan` writes them anew), and against servers
//! that are made up.
//!
//! ```text
//! wait: name came=0ms priority=5 cost=1ms     somebody waits; without `cost` nobody knows it
//! order                                       who is served, in order; nobody waits afterwards
//! bounds: 4 100                               a limit begins
//! window: answers=100 latency=5ms most=20 length=100ms times=3
//! ```

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use config::Concurrency;
use plan::{Limit, Window, rank_ns};
use std::fmt::Write as _;

const MS: u64 = 1_000_000;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its data and the flag that says to write it anew"
)]
fn order_and_limits_are_those_of_the_texts() {
    for name in ["order", "limit"] {
        let path = format!("tests/admission/{name}.txt");
        let text = std::fs::read_to_string(&path).unwrap();
        let told = told(&text);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, told).unwrap();
        } else {
            assert_eq!(told, text, "{path} (UPDATE_EXPECT=1 writes it anew)");
        }
    }
}

/// The value of `name=value` in a line, without its unit.
fn number(line: &str, name: &str) -> Option<u64> {
    let value = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_end_matches("ms").parse().unwrap())
}

/// The text with the outcomes written anew.
fn told(text: &str) -> String {
    let mut out = String::new();
    let mut waiting: Vec<(u64, String)> = Vec::new();
    let (mut bounds, mut limit) = (Concurrency::default(), None);
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        writeln!(out, "{line}").unwrap();
        if let Some(wait) = line.strip_prefix("wait: ") {
            let name = wait.split_whitespace().next().unwrap();
            let cost = number(wait, "cost").map(|ms| ms * MS);
            let priority = number(wait, "priority").unwrap_or(5);
            let came = number(wait, "came").unwrap() * MS;
            let place = rank_ns(came, u8::try_from(priority).unwrap(), cost);
            waiting.push((place, name.to_owned()));
        } else if line == "order" {
            waiting.sort();
            let names: Vec<_> = waiting.drain(..).map(|(_, name)| name).collect();
            writeln!(out, "  {}", names.join(", ")).unwrap();
        } else if let Some(given) = line.strip_prefix("bounds: ") {
            let (min, max) = given.split_once(' ').unwrap();
            bounds = Concurrency {
                min: min.parse().unwrap(),
                max: max.parse().unwrap(),
            };
            limit = Some(Limit::first(bounds));
            writeln!(out, "  limit {}", limit.unwrap().now()).unwrap();
        } else if let Some(window) = line.strip_prefix("window: ") {
            let window_of = Window {
                answers: number(window, "answers").unwrap() as u32,
                latency_ns: number(window, "latency").unwrap() * MS,
                most: number(window, "most").unwrap() as u32,
                length_ns: number(window, "length").unwrap() * MS,
            };
            for _ in 0..number(window, "times").unwrap_or(1) {
                limit = limit.map(|limit| limit.after(&window_of, bounds));
            }
            let limit = limit.unwrap();
            let base = limit.base_ns() as f64 / 1e6;
            writeln!(out, "  limit {}, baseline {base:.1} ms", limit.now()).unwrap();
        }
    }
    out
}

/// Numbers that look like chance, from a seed.
struct Chance(u64);

impl Chance {
    /// From 0 to 1, without both.
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

/// A server: answers per second, with so many statements in flight.
type Server = fn(f64) -> f64;

/// One with 16 processors, whose statements get in each other's way more and more: the universal
/// scalability law, with a peak at 32.
fn contended(n: f64) -> f64 {
    200.0 * n / (1.0 + 0.02 * (n - 1.0) + (0.98 / 1024.0) * n * (n - 1.0))
}

/// One that does 40 at once, and the more of no use the more it has beyond that.
fn collapsing(n: f64) -> f64 {
    let at_once = n.min(40.0);
    200.0 * at_once * (40.0 / n.max(40.0))
}

/// One that falls off a cliff when its memory is used up.
fn cliff(n: f64) -> f64 {
    match n > 60.0 {
        true => 60.0 * 100.0 / 5.0,
        false => n * 100.0,
    }
}

const SERVERS: [(&str, Server); 3] = [
    ("contended", contended),
    ("collapsing", collapsing),
    ("cliff", cliff),
];

/// A run of a server with clients that each have one statement at a time and no pause.
struct Run {
    server: Server,
    /// The limit, if there is one.
    limit: Option<Limit>,
    bounds: Concurrency,
    chance: Chance,
    now_s: f64,
    /// When each statement in flight was sent.
    flying: Vec<f64>,
    /// Of the window: when it began, answers, sum of latencies, most in flight.
    window: (f64, u32, f64, usize),
}

impl Run {
    fn of(server: Server, limits: bool, seed: u64) -> Self {
        let bounds = Concurrency::default();
        Self {
            server,
            limit: limits.then(|| Limit::first(bounds)),
            bounds,
            chance: Chance(seed),
            now_s: 0.0,
            flying: Vec::new(),
            window: (0.0, 0, 0.0, 0),
        }
    }

    /// Answers in so many seconds with so many clients.
    fn runs(&mut self, clients: usize, seconds: f64) -> u64 {
        let (until, mut answers) = (self.now_s + seconds, 0);
        while self.now_s < until {
            let most = self.limit.map_or(clients, |limit| limit.now() as usize);
            while self.flying.len() < most.min(clients) {
                self.flying.push(self.now_s);
            }
            self.window.3 = self.window.3.max(self.flying.len());
            let per_s = (self.server)(self.flying.len() as f64);
            self.now_s -= self.chance.next().ln() / per_s;
            let at = (self.chance.next() * self.flying.len() as f64) as usize;
            let sent = self.flying.swap_remove(at);
            answers += 1;
            self.window.1 += 1;
            self.window.2 += self.now_s - sent;
            self.closes_window();
        }
        answers
    }

    fn closes_window(&mut self) {
        let (began, answers, sum, most) = self.window;
        let length = self.now_s - began;
        if length < 0.1 || answers < 20 && length < 1.0 {
            return;
        }
        let window = Window {
            answers,
            latency_ns: (sum / f64::from(answers) * 1e9) as u64,
            most: most as u32,
            length_ns: (length * 1e9) as u64,
        };
        self.limit = self.limit.map(|limit| limit.after(&window, self.bounds));
        self.window = (self.now_s, 0, 0.0, self.flying.len());
    }
}

fn peak(server: Server) -> f64 {
    (1..1000).map(|n| server(f64::from(n))).fold(0.0, f64::max)
}

#[test]
fn a_server_that_collapses_is_held_at_its_peak() {
    const CLIENTS: usize = 400;
    const SECONDS: f64 = 60.0;
    for (name, server) in SERVERS {
        let peak = peak(server) * SECONDS;
        let without = Run::of(server, false, 1).runs(CLIENTS, SECONDS) as f64 / peak;
        assert!(without < 0.5, "{name} without a limit: {without:.2}");
        for seed in 1..=10 {
            let mut run = Run::of(server, true, seed);
            run.runs(CLIENTS, 10.0);
            let with = run.runs(CLIENTS, SECONDS) as f64 / peak;
            assert!(with >= 0.9, "{name}, seed {seed}: {with:.2} of its peak");
        }
    }
}

/// One that does 300 at once.
fn roomy(n: f64) -> f64 {
    20.0 * n.min(300.0)
}

/// One whose statements have become ten times as dear.
fn dear(n: f64) -> f64 {
    contended(n) / 10.0
}

#[test]
fn a_server_that_can_do_more_gets_more() {
    let share = |run: &mut Run, clients, of: f64| run.runs(clients, 30.0) as f64 / (of * 30.0);
    for seed in 1..=5 {
        let mut run = Run::of(roomy, true, seed);
        run.runs(200, 60.0);
        let all = share(&mut run, 200, roomy(200.0));
        assert!(all >= 0.95, "seed {seed}: {all:.2} of what 200 could have");
        // It becomes slow, and then as fast as before.
        let mut run = Run::of(contended, true, seed);
        run.runs(400, 30.0);
        run.server = dear;
        run.runs(400, 60.0);
        let slow = share(&mut run, 400, peak(dear));
        assert!(slow >= 0.9, "seed {seed}: {slow:.2} while it is slow");
        run.server = contended;
        run.runs(400, 30.0);
        let again = share(&mut run, 400, peak(contended));
        assert!(again >= 0.9, "seed {seed}: {again:.2} afterwards");
        // Few clients are not held up at all.
        let few = share(&mut run, 8, contended(8.0));
        assert!(few >= 0.95, "seed {seed}: {few:.2} with eight clients");
    }
}
