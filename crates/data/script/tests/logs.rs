//! Log4LUA: levels, categories, patterns and appenders.

mod session;

use lua::required::Module;
use session::{FORWARD, World, begin_with, query, vm};

/// A100: the configuration of the document that this project grew from.
const CONFIG: &str = r#"local logger = require("optivo.common.log4lua.logger")
local console = require("optivo.common.log4lua.appenders.console")
local file = require("optivo.common.log4lua.appenders.file")
local smtp = require("optivo.common.log4lua.appenders.smtp")

local config = {}

-- Create a default smtp appender sending message of level WARN or higher.
local defaultSmtp = smtp.new(
    {
        headers = {
            from = "myserver@mydomain.com",
            to = "admin@mydomain.com",
            subject = "%LEVEL: %MESSAGE"
        },
        body = "Hi, an error occurred at %FILE:%LINE.\n\nLevel: %LEVEL\nMessage: %MESSAGE\n"
    },
    "mail.mydomain.com",
   logger.WARN
)

-- ROOT category must be configured.
-- For the root category we use console and smtp appender
config["ROOT"] = logger.Logger.new({console.new(), defaultSmtp}, "ROOT", logger.INFO)

-- Category "core" uses rotating file appender and the default message pattern
config["core"] = logger.Logger.new(file.new("core-%s.log", "%Y-%m-%d"), "core", logger.INFO)

-- The config table must be returned.
return config
"#;

fn config(name: &str, text: &str) -> Module {
    Module {
        name: format!("file:{name}").into(),
        chunk: "log4lua.conf.lua".into(),
        text: text.into(),
    }
}

fn run(text: &str, modules: &[Module]) -> World {
    let world = begin_with(&vm(), &text.into(), modules).expect("a script that runs");
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    world
}

/// A100: the lines of the document, with its configuration.
#[test]
fn categories_levels_and_appenders_are_those_of_the_configuration() {
    let text = "local logger = require('optivo.common.log4lua.logger')
        local LOG = logger.getLogger('mycode')
        local LOG_CORE = logger.getLogger('core.moduleA')
        function read_query()
          LOG:info('My first log message')
          LOG:debug('not this one')
          LOG:warn({name = 'Paul', age = '22'})
          LOG_CORE:fatal('System error')
          print(LOG == logger.getLogger(nil), LOG_CORE == logger.getLogger('corex'), LOG:isLevel('DEBUG'))
        end";
    let world = run(text, &[config("LOG4LUA_CONFIG_FILE", CONFIG)]);
    assert_eq!(
        *world.host.lines.borrow(),
        [
            "[Thu Jan 10 21:20:00 2008] [INFO] My first log message at t.lua:5(function 'read_query')",
            "[Thu Jan 10 21:20:00 2008] [WARN] age = 22",
            "name = Paul at t.lua:7(function 'read_query')",
            "true\ttrue\tfalse",
        ]
    );
    let mails = world.host.mails.borrow();
    let [mail] = &**mails else {
        panic!("{mails:?}");
    };
    assert_eq!(
        (&*mail.host, mail.port, &mail.login, &*mail.from, &mail.to),
        (
            "mail.mydomain.com",
            25,
            &None,
            "myserver@mydomain.com",
            &vec!["admin@mydomain.com".to_owned()]
        )
    );
    assert_eq!(mail.subject, "WARN: age = 22\nname = Paul");
    assert_eq!(
        mail.body,
        "Hi, an error occurred at t.lua:7.\n\nLevel: WARN\nMessage: age = 22\nname = Paul\n"
    );
    assert_eq!(
        *world.host.files.borrow(),
        [(
            "/srv/core-2008-01-10.log".to_owned(),
            "[Thu Jan 10 21:20:00 2008] [FATAL] System error at t.lua:8(function 'read_query')\n"
                .to_owned()
        )]
    );
}

#[test]
fn patterns_tables_and_own_appenders() {
    let text = "local logger = require('log4lua.logger')
        local function own(log, level, message, exception)
          print(log:formatMessage('%LEVEL|%CATEGORY|%MESSAGE|%ERROR|%SESSION|%PATH|100%%NOTHING', level, message, exception))
        end
        local log = logger.new(own, 'mine', logger.DEBUG)
        function read_query()
          log:error('50%MESSAGE', 'broken')
          log:debug({ 1, { deep = { deeper = true } }, f = print })
          log:log('OFF', 'never')
          log:setLevel('OFF')
          log:fatal('neither')
          print(pcall(log.log, log, 'LOUD', 'x'))
          print(pcall(logger.new, 5, 'x'), (pcall(logger.new, own)))
          print(pcall(logger.loadConfig, 'nosuch.lua'))
        end";
    let world = run(text, &[]);
    let lines = world.host.lines.borrow();
    assert_eq!(
        lines[..2],
        [
            "ERROR|mine|50%MESSAGE|broken|7|t.lua|100%%NOTHING",
            "DEBUG|mine|1 = 1\n2 = {\n  deep = {\n    deeper = true\n  }\n}\nf = [function]||7|t.lua|100%%NOTHING",
        ]
    );
    for (line, words) in lines[2..].iter().zip([
        "Unknown log level 'LOUD'.",
        "false",
        "Log4LUA configuration 'nosuch.lua' cannot be used: there is no such file",
    ]) {
        assert!(
            line.starts_with("false\t") && line.contains(words),
            "{line}"
        );
    }
    assert_eq!(lines.len(), 5);
}

#[test]
fn a_configuration_that_cannot_be_used_leaves_the_default_and_says_why() {
    let text = "local logger = require('log4lua.logger') function read_query() logger.getLogger('a'):info('here') end";
    for (broken, words) in [
        ("return {}", "it has no category ROOT"),
        ("return 5", "it returns no table"),
        ("error('no')", "log4lua.conf.lua:1: no"),
        ("x =", "log4lua.conf.lua:1: "),
    ] {
        let world = run(text, &[config("LOG4LUA_CONFIG_FILE", broken)]);
        let lines = world.host.lines.borrow();
        assert!(
            lines[0].contains("Log4LUA configuration cannot be used: "),
            "{lines:?}"
        );
        assert!(lines[0].contains(words), "{lines:?}");
        assert!(lines[1].contains("[INFO] here at t.lua:1"), "{lines:?}");
    }
}

/// Arguments of the SMTP appender, in both orders that were published, and in those of a mistake.
#[test]
fn the_smtp_appender_takes_its_arguments_in_either_order() {
    let text = "local logger = require('log4lua.logger')
        local smtp = require('log4lua.appenders.smtp')
        local function mail(...)
          local headers = { from = 'a@b', to = { 'c@d', 'e@f' }, subject = '%LEVEL' }
          return smtp.new({ headers = headers, body = '%MESSAGE %ERROR' }, ...)
        end
        local log = logger.new({
          mail('h1', 'ERROR'), mail('ERROR', 'h2', 587, 'u', 'p'), mail('h3', '465'), mail('refused'),
        }, 'x')
        function read_query()
          log:info('no')
          log:warn('w')
          log:error('e', 'why')
          print(pcall(smtp.new, { headers = {}, body = '' }, 'h'))
          print(pcall(mail))
          print(pcall(mail, 'h', 70000))
        end";
    let world = run(text, &[]);
    let mails = world.host.mails.borrow();
    let shown = mails.iter().map(|mail| {
        let login = mail
            .login
            .as_ref()
            .map(|(user, password)| format!("{user}/{password}"));
        format!(
            "{}:{} {login:?} {} {}",
            mail.host, mail.port, mail.subject, mail.body
        )
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "h3:465 None WARN w ",
            "h1:25 None ERROR e why",
            "h2:587 Some(\"u/p\") ERROR e why",
            "h3:465 None ERROR e why",
        ]
    );
    assert_eq!(mails[0].to, ["c@d", "e@f"]);
    let lines = world.host.lines.borrow();
    assert_eq!(lines[0], "Log4LUA: no mail is sent: refused:25 is none");
    assert!(
        lines[1].contains("a mail needs the header 'from'"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].contains("a mail needs the name of a mail server"),
        "{}",
        lines[2]
    );
    assert!(lines[3].contains("'70000' is no port"), "{}", lines[3]);
    assert_eq!(lines.len(), 4);
}
