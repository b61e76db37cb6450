//! `millrace --check`, as an operator runs it before a start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("millrace-check-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn check(file: &Path, datadir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(["--check", "-c"])
        .arg(file)
        .arg("-D")
        .arg(datadir)
        .output()
        .expect("millrace can be run")
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_file_that_can_be_used_ends_with_0_and_its_warnings_and_opens_nothing() {
    let folder = Folder::new("good");
    let (file, datadir) = (folder.0.join("proxysql.cnf"), folder.0.join("data"));
    fs::write(&file, "mysql_variables={ thread=2 }").unwrap();
    let output = check(&file, &datadir);
    let at = file.display();
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert_eq!(out, format!("{at} can be used: 1 warning\n"));
    assert_eq!(
        err,
        format!(
            "warning: {at} line 1: 'thread' is no variable of mysql_variables and is left out; did \
             you mean 'threads'?\n"
        )
    );
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn a_file_that_cannot_be_used_ends_with_1_and_every_reason() {
    let folder = Folder::new("bad");
    let (file, datadir) = (folder.0.join("proxysql.cnf"), folder.0.join("data"));
    let text = "mysql_replication_hostgroups=({ writer_hostgroup=10 reader_hostgroup=10 },\n\
                { reader_hostgroup=1 })\n\
                mysql_query_rules=({ rule_id=1 active=1 match_pattern=\"(\" })";
    fs::write(&file, text).unwrap();
    let output = check(&file, &datadir);
    let at = file.display();
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert_eq!(out, format!("{at} cannot be used: 1 error, 2 warnings\n"));
    let lines: Vec<_> = err.lines().collect();
    assert_eq!(
        lines[..2],
        [
            format!(
                "warning: {at} line 1: mysql_replication_hostgroups: reader_hostgroup and writer_hostgroup are both 10; this row is left out"
            ),
            format!(
                "warning: {at} line 2: mysql_replication_hostgroups: writer_hostgroup is missing; this row is left out"
            ),
        ]
    );
    assert!(
        lines[2].starts_with("error: mysql_query_rules (rule_id 1)"),
        "{err}"
    );
    fs::write(&file, "a=").unwrap();
    let (_, err) = texts(&check(&file, &datadir));
    assert!(
        err.starts_with(&format!("error: {at} line 1: a value is missing")),
        "{err}"
    );
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}
