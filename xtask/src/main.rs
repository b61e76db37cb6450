//! `cargo xtask tidy`: what the house style asks and a machine can see. `cargo test` runs the same
//! rules.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use xtask::{rules, tree::Tree};

fn main() -> ExitCode {
    let wish = std::env::args().nth(1);
    match wish.as_deref() {
        Some("tidy") => tidy(),
        _ => {
            eprintln!("usage: cargo xtask tidy\n\n{}", rules::describe());
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let tree = match Tree::of_this_project() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("xtask: the tree cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    let complaints = rules::check_all(&tree);
    for complaint in &complaints {
        println!("{complaint}");
    }
    println!(
        "tidy: {} files, {} rules, {} complaints",
        tree.len(),
        rules::RULES.len(),
        complaints.len()
    );
    if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
