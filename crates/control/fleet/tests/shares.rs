//! Shares as texts: `shares.txt` has who has what of a limit and who needs what, and the ledgers that
//! follow. `UPDATE_EXPECT=1 cargo test -p fleet` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use fleet::{Ledger, Limit, Need, Part, Report, settle};
use std::fmt::Write as _;

/// After so many ledgers a scene has to be at rest.
const TURNS_MAX: usize = 12;

#[test]
fn limits_are_shared_out_as_the_texts_say() {
    let path = std::path::Path::new("tests/shares.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut told = String::new();
    let mut scene = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(told, "{line}");
        if let Some(line) = line.strip_prefix("> ") {
            scene.push(line);
        } else if line.is_empty() && !scene.is_empty() {
            let _removed = told.pop();
            told += &play(&scene);
            told.push('\n');
            scene.clear();
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, told).unwrap();
        return;
    }
    for (number, (line, told)) in (1..).zip(text.lines().zip(told.lines())) {
        assert_eq!(
            told, line,
            "shares.txt:{number} (UPDATE_EXPECT=1 writes it anew)"
        );
    }
    assert_eq!(text.lines().count(), told.lines().count());
}

/// A proxy of a scene. One that is deaf lives, and has not heard of the latest ledgers.
struct Member {
    name: String,
    share: Option<u32>,
    used: u32,
    waiting: u32,
    taken: u32,
    is_deaf: bool,
}

fn member(line: &str) -> Member {
    let mut words = line.split(' ');
    let mut member = Member {
        name: words.next().unwrap().to_owned(),
        share: None,
        used: 0,
        waiting: 0,
        taken: 0,
        is_deaf: false,
    };
    while let Some(word) = words.next() {
        if word == "deaf" {
            member.is_deaf = true;
            continue;
        }
        let number = words.next().unwrap().parse().unwrap();
        match word {
            "share" => member.share = Some(number),
            "uses" => member.used = number,
            "waits" => member.waiting = number,
            "holds" => member.taken = number,
            _ => panic!("{line}"),
        }
    }
    member.taken = member.taken.max(member.used);
    member
}

fn play(scene: &[&str]) -> String {
    let max: u32 = scene[0].strip_prefix("limit ").unwrap().parse().unwrap();
    let mut members: Vec<_> = scene[1..].iter().map(|line| member(line)).collect();
    let mut ledger = Ledger {
        turn: 1,
        members: Vec::new(),
        limits: [(
            "x".to_owned(),
            Limit {
                budget: max,
                parts: Vec::new(),
            },
        )]
        .into(),
    };
    for member in &members {
        if let Some(share) = member.share {
            ledger.members.push(member.name.clone());
            let part = Part {
                share,
                most: share.max(member.taken),
                since: 1,
            };
            ledger.limits.get_mut("x").unwrap().parts.push(part);
        }
    }
    let mut told = String::new();
    let least = rt::permits::least_share(max);
    for _ in 0..TURNS_MAX {
        let reports: Vec<_> = members
            .iter()
            .map(|member| {
                let part = ledger.part("x", &member.name);
                let share = part.map_or(least, |part| part.share);
                let turn = if member.is_deaf { 1 } else { ledger.turn };
                let share = if member.is_deaf {
                    member.share.unwrap()
                } else {
                    share
                };
                Report {
                    uuid: member.name.clone(),
                    name: String::new(),
                    turn,
                    needs: [(
                        "x".to_owned(),
                        Need {
                            max,
                            used: member.used,
                            waiting: member.waiting,
                            held: share.max(member.taken),
                        },
                    )]
                    .into(),
                }
            })
            .collect();
        let Some(next) = settle(&ledger, &reports) else {
            return told;
        };
        ledger = next;
        let _ = write!(told, "  {}:", ledger.turn);
        for member in &mut members {
            let part = ledger.part("x", &member.name).unwrap();
            let _ = write!(told, " {} {}", member.name, part.share);
            if part.most > part.share {
                let _ = write!(told, " (still {})", part.most);
            }
            if member.is_deaf {
                continue;
            }
            // Who waits takes what it may, and what is idle is closed.
            let all = member.used + member.waiting;
            member.used = all.min(part.share.max(member.used));
            member.waiting = all - member.used;
            member.taken = member.used;
        }
        told.push('\n');
    }
    told + "  it does not come to rest\n"
}
