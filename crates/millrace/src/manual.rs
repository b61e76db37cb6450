//! The man page and the completions of shells, made of the flags.

use crate::flags::{Flags, Kind};
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use std::io::{self, Write as _};

/// Prints one of them to standard output.
pub(crate) fn print(kind: Kind) -> Result<(), String> {
    let text = text(kind).map_err(|error| error.to_string())?;
    io::stdout()
        .write_all(&text)
        .map_err(|error| format!("standard output: {error}"))
}

fn text(kind: Kind) -> io::Result<Vec<u8>> {
    let mut flags = Flags::command().version(env!("CARGO_PKG_VERSION"));
    let mut text = Vec::new();
    let shell = match kind {
        Kind::Man => {
            Man::new(flags).section("8").render(&mut text)?;
            return Ok(text);
        }
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    generate(shell, &mut flags, "millrace", &mut text);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: Kind) -> String {
        String::from_utf8(text(kind).unwrap()).unwrap()
    }

    #[test]
    fn the_man_page_has_every_flag_that_is_shown() {
        let page = said(Kind::Man);
        for argument in Flags::command().get_arguments() {
            let Some(long) = argument.get_long() else {
                continue;
            };
            // A man page writes a hyphen that is to be typed as \-.
            let flag = format!("\\-\\-{}", long.replace('-', "\\-"));
            assert!(page.contains(&flag), "{flag} is not in\n{page}");
        }
        assert!(page.starts_with(".ie"), "{page}");
        assert!(!page.contains("manual"), "what is hidden is in\n{page}");
    }

    #[test]
    fn each_shell_completes_subcommands_and_flags() {
        for kind in [Kind::Bash, Kind::Zsh, Kind::Fish] {
            let text = said(kind);
            for word in ["io-driver", "sqlite3-server", "events"] {
                assert!(text.contains(word), "{kind:?} lacks {word}");
            }
        }
    }
}
