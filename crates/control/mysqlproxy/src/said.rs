//! Options as they were said: on a command line, and in a file that it names.

use crate::declared::{Becomes, Declared, OPTIONS, Takes, named};
use crate::ini;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Flags of `millrace` that are about what was saved, which these options do not look at.
const NOT_BESIDE: [&str; 4] = ["initial", "reload", "take_over", "check"];

/// Options with their values, each as often as it was said; one without a value has an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said(BTreeMap<&'static str, Vec<String>>);

impl Said {
    /// Those of these options that were said.
    fn of(matches: &ArgMatches, options: impl Iterator<Item = &'static Declared>) -> Self {
        let said = options.filter_map(|option| {
            let values = match option.takes {
                Takes::Nothing => matches.get_flag(option.name).then(Vec::new),
                _ => matches
                    .get_many::<String>(option.name)
                    .map(|values| values.cloned().collect()),
            };
            Some((option.name, values?))
        });
        Self(said.collect())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        debug_assert!(named(name).is_some(), "{name} is not declared");
        self.0.contains_key(name)
    }

    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.many(name).last().map(String::as_str)
    }

    pub(crate) fn many(&self, name: &str) -> &[String] {
        debug_assert!(named(name).is_some(), "{name} is not declared");
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// All options that were said.
    pub(crate) fn options(&self) -> impl Iterator<Item = &'static Declared> {
        self.0.keys().filter_map(|name| named(name))
    }

    /// A path, from `basedir` on if it is relative.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(self.one(name)?);
        Some(match self.one("basedir") {
            Some(base) => Path::new(base).join(path),
            None => path.to_owned(),
        })
    }

    /// The folder that relative names begin in.
    pub(crate) fn folder(&self) -> PathBuf {
        let base = self.one("basedir").map(PathBuf::from);
        let here = || std::env::current_dir().unwrap_or_else(|_gone| "/".into());
        base.filter(|base| base.is_absolute()).unwrap_or_else(here)
    }

    /// With this value of an option that was not said.
    fn or_by_default(mut self, name: &'static str, value: &str) -> Self {
        let values = || vec![value.to_owned()];
        self.0.entry(name).or_insert_with(values);
        self
    }

    /// With what a file says of the options of which the command line says nothing.
    fn over_file(mut self, path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("--defaults-file: cannot read {shown}: {error}"))?;
        let command = with(Command::new("mysql-proxy"), OPTIONS.iter());
        let command = command.no_binary_name(true).disable_help_flag(true);
        let mut in_file = BTreeMap::<_, Vec<String>>::new();
        for ini::Entry { line, name, value } in ini::section(&text, "mysql-proxy")
            .map_err(|(line, words)| format!("{shown} line {line}: {words}"))?
        {
            let at = |words: String| format!("{shown} line {line}: {words}");
            let Some(flag) = as_flag(&name, value).map_err(at)? else {
                continue;
            };
            let matches = command.clone().try_get_matches_from([flag]);
            let matches = matches.map_err(|error| at(in_words(&name, &error)))?;
            for (name, values) in Self::of(&matches, OPTIONS.iter()).0 {
                // A list may be said in several lines.
                in_file.entry(name).or_default().extend(values);
            }
        }
        if in_file.contains_key("defaults-file") {
            return Err(format!("{shown}: 'defaults-file' within one is refused"));
        }
        for (name, values) in in_file {
            self.0.entry(name).or_insert(values);
        }
        Ok(self)
    }
}

/// A line of a file as a command line has it; none if it says that something is not so.
fn as_flag(name: &str, value: Option<String>) -> Result<Option<String>, String> {
    let is_flag = named(name).is_some_and(|option| option.takes == Takes::Nothing);
    match value {
        Some(value) if is_flag => match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Some(format!("--{name}"))),
            "false" | "0" | "no" | "off" => Ok(None),
            _ => Err(format!("'{name}' is true or false, not '{value}'")),
        },
        Some(value) => Ok(Some(format!("--{name}={value}"))),
        None => Ok(Some(format!("--{name}"))),
    }
}

/// Why a line of a file is refused.
fn in_words(name: &str, error: &clap::Error) -> String {
    if error.kind() != ErrorKind::UnknownArgument {
        return format!("'{name}' needs a value");
    }
    let near = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => {
            format!("; did you mean '{}'?", near.trim_start_matches('-'))
        }
        _ => String::new(),
    };
    format!("'{name}' is no option of MySQL Proxy{near}")
}

/// A command that takes these options, with their letters if it takes all.
fn with(command: Command, options: impl Iterator<Item = &'static Declared>) -> Command {
    options.fold(command, |command, option| command.arg(argument(option)))
}

fn argument(option: &Declared) -> Arg {
    let arg = Arg::new(option.name).long(option.name).help(option.about);
    let arg = match option.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        Takes::One(kind) => arg.value_name(kind).action(ArgAction::Set),
        Takes::Many(kind) => arg
            .value_name(kind)
            .value_delimiter(',')
            .action(ArgAction::Append),
    };
    match option.letter {
        Some(letter) => arg.short(letter),
        None => arg,
    }
}

fn of_everybody() -> impl Iterator<Item = &'static Declared> {
    OPTIONS
        .iter()
        .filter(|option| option.becomes == Becomes::Everywhere)
}

/// Options that `millrace` takes beside its own flags: long names alone.
#[derive(Debug, Clone, Default)]
pub struct Wish(pub(crate) Said);

impl Wish {
    /// Whether any of the options was said: nothing is begun by them otherwise.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0 != Said::default()
    }
}

impl FromArgMatches for Wish {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(Said::of(matches, of_everybody())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Wish {
    fn augment_args(command: Command) -> Command {
        of_everybody().fold(command, |command, option| {
            let arg = argument(option).help_heading("Options of MySQL Proxy");
            command.arg(arg.short(None).conflicts_with_all(NOT_BESIDE))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Options that `millrace proxy` takes: all of them, with their letters.
#[derive(Debug, Clone, Default)]
pub struct Own(Said);

impl Own {
    /// With what the `--defaults-file` says.
    ///
    /// # Errors
    /// It cannot be read, has a line that makes no sense, or names an option that there is not.
    pub fn with_file(&self) -> Result<Wish, String> {
        let said = match self.0.one("defaults-file") {
            Some(path) => self.0.clone().over_file(Path::new(path))?,
            None => self.0.clone(),
        };
        // Begun by no option at all it is the proxy of before its only server.
        Ok(Wish(said.or_by_default(
            "proxy-backend-addresses",
            "127.0.0.1:3306",
        )))
    }
}

impl FromArgMatches for Own {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(Said::of(matches, OPTIONS.iter())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Own {
    fn augment_args(command: Command) -> Command {
        with(command, OPTIONS.iter())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(args: &[&str]) -> Result<Own, String> {
        let command = Own::augment_args(Command::new("proxy").no_binary_name(true));
        let matches = command.try_get_matches_from(args);
        let matches = matches.map_err(|error| error.to_string())?;
        Own::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    fn filed(text: &str, args: &[&str]) -> Result<Said, String> {
        let folder = crate::folder::Folder::new().unwrap();
        let path = folder.path().join("proxy.cnf");
        std::fs::write(&path, text).unwrap();
        let file = format!("--defaults-file={}", path.display());
        let args: Vec<&str> = args.iter().copied().chain([file.as_str()]).collect();
        let wish = own(&args)?.with_file();
        wish.map(|wish| wish.0)
            .map_err(|words| words.replace(path.to_str().unwrap(), "FILE"))
    }

    #[test]
    fn letters_commas_and_repeated_options_say_the_same() {
        let long = own(&[
            "--proxy-backend-addresses=a,b:1",
            "--proxy-backend-addresses",
            "c",
        ]);
        let short = own(&["-b", "a", "-b", "b:1,c"]);
        assert_eq!(long.unwrap().0, short.unwrap().0);
        let all = own(&["-P", ":1", "-s", "x.lua", "-r", "d", "--daemon"])
            .unwrap()
            .0;
        assert_eq!(all.one("proxy-address"), Some(":1"));
        assert_eq!(all.one("proxy-lua-script"), Some("x.lua"));
        assert_eq!(all.many("proxy-read-only-backend-addresses"), ["d"]);
        assert!(all.has("daemon") && !all.has("keepalive"));
    }

    #[test]
    fn an_unknown_option_is_refused_by_name_with_the_nearest_known_one() {
        let words = own(&["--proxy-lua-scrip=x"]).unwrap_err();
        assert!(words.contains("'--proxy-lua-scrip'"), "{words}");
        assert!(words.contains("'--proxy-lua-script'"), "{words}");
        assert_eq!(
            filed("[mysql-proxy]\nproxy-adress = :1\n", &[]).unwrap_err(),
            "FILE line 2: 'proxy-adress' is no option of MySQL Proxy; did you mean 'proxy-address'?"
        );
    }

    #[test]
    fn a_command_line_counts_more_than_its_file() {
        let text = "[other]\nnonsense = 1\n[mysql-proxy]\nproxy-address = :1\ndaemon = false\n\
                    proxy-backend-addresses = a\nproxy-backend-addresses = b,c\nkeepalive\n";
        let said = filed(text, &["-P", ":2"]).unwrap();
        assert_eq!(said.one("proxy-address"), Some(":2"));
        assert_eq!(said.many("proxy-backend-addresses"), ["a", "b", "c"]);
        assert!(said.has("keepalive") && !said.has("daemon"));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_with_its_number() {
        let refused = |text: &str| filed(text, &[]).unwrap_err();
        assert_eq!(
            refused("[mysql-proxy]\ndaemon = perhaps\n"),
            "FILE line 2: 'daemon' is true or false, not 'perhaps'"
        );
        assert_eq!(
            refused("[mysql-proxy]\nproxy-address\n"),
            "FILE line 2: 'proxy-address' needs a value"
        );
        assert_eq!(
            refused("[mysql-proxy\n"),
            "FILE line 1: a section ends with ']'"
        );
        assert_eq!(
            refused("[mysql-proxy]\ndefaults-file = x\n"),
            "FILE: 'defaults-file' within one is refused"
        );
    }
}
