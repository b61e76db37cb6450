//! `cargo xtask tidy`: what the house style asks and a machine can see. `cargo test` runs the same
//! rules. `docs` writes the pages of what is declared, `sbom` prints of what the binary is made.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

use xtask::{rules, sbom, tree::Tree};

fn main() -> ExitCode {
    let wish = std::env::args().nth(1);
    match wish.as_deref() {
        Some("tidy") => tidy(),
        Some("docs") => verdict(write_docs()),
        Some("sbom") => verdict(print_bill()),
        _ => {
            eprintln!("usage: cargo xtask tidy|docs|sbom\n\n{}", rules::describe());
            ExitCode::from(2)
        }
    }
}

fn verdict(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("xtask: {words}");
            ExitCode::FAILURE
        }
    }
}

/// Has the test that compares `docs/admin` with the declarations write it.
fn write_docs() -> Result<(), String> {
    let written = Command::new("cargo")
        .args(["test", "--quiet", "--package", "admin", "--test", "pages"])
        .env("UPDATE_EXPECT", "1")
        .status()
        .map_err(|error| format!("cargo test: {error}"))?;
    match written.success() {
        true => Ok(()),
        false => Err("the pages could not be written".to_owned()),
    }
}

/// Prints the bill of materials, unless a licence in it is not allowed.
fn print_bill() -> Result<(), String> {
    let bill = sbom::bill(&sbom::metadata("own-openssl")?)?;
    let deny =
        std::fs::read_to_string("deny.toml").map_err(|error| format!("deny.toml: {error}"))?;
    let unlicensed = sbom::unlicensed(&bill, &deny)?;
    if !unlicensed.is_empty() {
        return Err(format!(
            "licences that deny.toml does not allow:\n{}",
            unlicensed.join("\n")
        ));
    }
    println!("{bill}");
    Ok(())
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
