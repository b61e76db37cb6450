//! `millrace top`: what the admin port knows, in a terminal.
//!
//! `views.rs` has what is asked, `state.rs` what keys do, `screen.rs` how it looks.
//!
//! docs/features/top.md
#![forbid(unsafe_code)]

mod screen;
mod state;
mod views;

use line::{Failed, Line, Tls, Who};
use ratatui::Terminal;
use ratatui::backend::{CrosstermBackend, TestBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event, poll, read};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use rt::Rt;
use state::{State, Then};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Time in which the proxy has to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// The password of who has not chosen one.
const PASSWORD: &str = "admin";
/// Times as long as an answer took it that the proxy is left alone.
const REST: u32 = 4;
/// Columns of a screen that is printed.
const PRINTED_COLUMNS: u16 = 160;
/// Lines of one besides its rows.
const PRINTED_LINES: u16 = 5;

const COUNTERS: &str = "SELECT Variable_Name, Variable_Value FROM stats_mysql_global WHERE Variable_Name IN \
    ('ProxySQL_Uptime', 'Questions', 'Slow_queries', 'Client_Connections_connected', 'Client_Connections_non_idle', \
     'Server_Connections_connected')";

/// Whom to ask, and how to show it.
#[derive(clap::Args, Debug, Clone)]
pub struct Wish {
    /// Where the admin port is
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Its port
    #[arg(short = 'P', long, value_name = "PORT", default_value_t = 6032)]
    pub port: u16,
    /// A name of admin-admin_credentials or admin-stats_credentials there
    #[arg(short, long, value_name = "NAME", default_value = "admin")]
    pub user: String,
    /// His password [default: MYSQL_PWD of the environment, else admin]
    #[arg(short, long, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// View that is shown first: queries, servers, sessions or errors
    #[arg(long, value_name = "VIEW", default_value = "queries")]
    pub view: String,
    /// Seconds between two screens
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
    /// Print one screen as text, and end
    #[arg(long)]
    pub once: bool,
}

/// Shows the screen until a key ends it, or prints it once. `password` is that of the environment.
///
/// # Errors
/// The proxy cannot be asked, or there is no terminal.
pub fn run(wish: Wish, password: Option<String>, out: impl Write) -> Result<(), String> {
    let main = |rt: Rt| async move {
        let mut top = Top {
            state: State::of(&wish.view)?,
            title: format!("Millrace at {}:{} as {}", wish.host, wish.port, wish.user),
            line: None,
            took: Duration::ZERO,
            password: wish.password.clone().or(password),
            rt,
            wish,
        };
        // Whoever cannot ask at all is told so where he can read it for longer.
        top.ask()
            .await
            .map_err(|failed| format!("{}: {failed}", top.title))?;
        match top.wish.once {
            true => top.print(out),
            false => top.show(out).await,
        }
    };
    rt::run(rt::Driver::READINESS, main).map_err(|error| error.to_string())?
}

struct Top {
    rt: Rt,
    wish: Wish,
    password: Option<String>,
    /// Time that the last answer took.
    took: Duration,
    line: Option<Line>,
    state: State,
    title: String,
}

impl Top {
    /// Asks for the counters and the rows of the view.
    async fn ask(&mut self) -> Result<(), Failed> {
        let asked = Instant::now();
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.open().await?,
        };
        let counters = line.ask(COUNTERS).await;
        let rows = match counters {
            Ok(counters) => {
                self.state.count(&counters, Instant::now());
                let sql = self.state.view().statement(self.state.order());
                line.ask(&sql).await
            }
            Err(failed) => Err(failed),
        };
        if !matches!(rows, Err(Failed::Lost(_))) {
            self.line = Some(line);
        }
        self.state.take(&rows?, Instant::now());
        self.took = asked.elapsed();
        Ok(())
    }

    async fn open(&self) -> Result<Line, Failed> {
        let who = Who {
            user: self.wish.user.as_str().into(),
            password: self.password.as_deref().unwrap_or(PASSWORD).into(),
            never_in_clear: true,
            proxy_protocol: 0,
            tls: Tls::IfOffered,
            connect: ANSWERS_WITHIN,
            silent: ANSWERS_WITHIN,
            whole: ANSWERS_WITHIN,
        };
        Line::open(&self.rt, &self.wish.host, self.wish.port, &who).await
    }

    fn print(&self, mut out: impl Write) -> Result<(), String> {
        let words = |error: &dyn std::fmt::Display| format!("standard output: {error}");
        let rows = u16::try_from(self.state.rows.len()).unwrap_or(u16::MAX);
        let backend =
            TestBackend::new(PRINTED_COLUMNS, PRINTED_LINES.saturating_add(rows.min(500)));
        let mut terminal = Terminal::new(backend).map_err(|error| words(&error))?;
        let drawn = terminal.draw(|frame| screen::draw(frame, &self.state, &self.title));
        drawn.map_err(|error| words(&error))?;
        let text = text(terminal.backend().buffer());
        out.write_all(text.as_bytes())
            .map_err(|error| words(&error))
    }

    async fn show(&mut self, out: impl Write) -> Result<(), String> {
        let words = |error: io::Error| format!("the terminal: {error}");
        let taken = Taken::take(out).map_err(words)?;
        let mut terminal = Terminal::new(CrosstermBackend::new(taken)).map_err(words)?;
        loop {
            let drawn = terminal.draw(|frame| screen::draw(frame, &self.state, &self.title));
            drawn.map_err(words)?;
            match self.wait().map_err(words)? {
                Then::End => return Ok(()),
                Then::Ask => {
                    if let Err(failed) = self.ask().await {
                        self.state.words = Some(failed.to_string());
                    }
                }
                Then::Draw | Then::Nothing => {}
            }
        }
    }

    /// Waits for a key, or until it is time for the next screen. Nothing else runs on this thread.
    fn wait(&mut self) -> io::Result<Then> {
        // The admin thread has most of its time for others, however long an answer takes it.
        let every = Duration::from_secs(self.wish.every).max(self.took * REST);
        let until = Instant::now() + every;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if !poll(left)? {
                return Ok(if self.state.stands {
                    Then::Nothing
                } else {
                    Then::Ask
                });
            }
            match read()? {
                Event::Key(key) => match self.state.press(key) {
                    Then::Nothing => {}
                    then => return Ok(then),
                },
                Event::Resize(..) => return Ok(Then::Draw),
                _ => {}
            }
        }
    }
}

/// A terminal that is ours, and as it was when this is dropped.
struct Taken<W: Write>(W);

impl<W: Write> Taken<W> {
    fn take(out: W) -> io::Result<Self> {
        enable_raw_mode()?;
        let mut taken = Self(out);
        execute!(taken.0, EnterAlternateScreen, cursor::Hide)?;
        Ok(taken)
    }
}

impl<W: Write> Drop for Taken<W> {
    fn drop(&mut self) {
        // Nobody is there to be told.
        let _gone = execute!(self.0, LeaveAlternateScreen, cursor::Show);
        let _gone = disable_raw_mode();
    }
}

impl<W: Write> Write for Taken<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A screen as text, without what is blank at the end.
fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let mut lines: Vec<String> = Vec::new();
    for line in buffer.content.chunks(width) {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        lines.push(line.trim_end().to_owned());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}
