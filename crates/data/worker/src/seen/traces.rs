//! Traces: when a statement came, waited for a connection, was sent and was answered, for a collector
//! of spans.
//!
//! docs/features/traces.md

use backend::Place;
use bridge::{Fates, Traced, TracedLeg};
use config::Traces;
use hashbrown::HashMap;
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::attributes::Attributes;

/// Takes a traced statement to those who send it. It does not wait; `false` if there was no room.
pub type TakeTraced = Arc<dyn Fn(Traced) -> bool + Send + Sync>;

/// Name that others give the caller's span: <https://www.w3.org/TR/trace-context/>, and in comments
/// <https://google.github.io/sqlcommenter/spec/>.
const PARENT: &[u8] = b"traceparent";

/// Questions to partitions that a statement's trace has at most; more are only counted.
const LEGS_MAX: usize = 256;

/// Statements of a core that may be traced.
pub(crate) struct Tracer {
    take: TakeTraced,
    pub(crate) fates: Arc<Fates>,
    /// By the number of their session.
    going: RefCell<HashMap<u32, Tracing>>,
    /// How many there are: most often none.
    many: Cell<usize>,
}

/// One of them.
struct Tracing {
    to: Arc<str>,
    parent: Option<Parent>,
    /// Whether the statement is traced, however long it takes.
    wanted: bool,
    waited: Option<(Instant, Instant)>,
    asked: Option<Instant>,
    answered: Option<Instant>,
    error: Option<u16>,
    // 0 <= legs.len() <= LEGS_MAX
    legs: Vec<Rc<LegTimes>>,
    legs_asked: u64,
}

/// A question to one of several partitions, for whoever hears the answer. It is nothing where the
/// statement is not traced.
#[derive(Default)]
pub(crate) struct Leg(Option<(Rt, Rc<LegTimes>)>);

struct LegTimes {
    place: Rc<Place>,
    asked: Instant,
    answered: Cell<Option<Instant>>,
    ended: Cell<Option<Instant>>,
    error: Cell<Option<u16>>,
}

impl Leg {
    /// Notes that something of the answer has come.
    pub(crate) fn hears(&self) {
        if let Some((rt, times)) = &self.0 {
            let answered = times.answered.get().unwrap_or_else(|| rt.now());
            times.answered.set(Some(answered));
        }
    }

    /// Notes that the answer is whole, with this error; 0 if there will be none.
    pub(crate) fn ends(&self, error: Option<u16>) {
        if let Some((rt, times)) = &self.0
            && times.ended.get().is_none()
        {
            times.error.set(error);
            times.ended.set(Some(rt.now()));
        }
    }
}

impl Drop for Leg {
    /// Nobody wants more of the answer.
    fn drop(&mut self) {
        self.ends(None);
    }
}

/// The span of whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parent {
    trace: u128,
    span: u64,
    /// He traces it himself.
    sampled: bool,
}

/// Something that happens to a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    /// Wait for a connection, since then.
    Waited(Instant),
    /// A server is asked.
    Asked,
    /// The answer begins.
    Answered,
    /// The answer is this error.
    Failed(u16),
}

impl Tracer {
    pub(crate) fn new(take: TakeTraced) -> Self {
        Self {
            take,
            fates: Arc::default(),
            going: RefCell::default(),
            many: Cell::new(0),
        }
    }

    /// A session has ended, be it in the middle of a statement.
    pub(crate) fn forget(&self, session: u32) {
        if self.many.get() > 0 {
            let mut going = self.going.borrow_mut();
            going.remove(&session);
            self.many.set(going.len());
        }
    }
}

impl Tracer {
    /// Notes what happens to a session's statement. Where nothing is traced, this is one comparison.
    pub(crate) fn mark(&self, session: u32, rt: &Rt, mark: Mark) {
        if self.many.get() > 0 {
            self.mark_traced(session, rt.now(), mark);
        }
    }

    #[cold]
    fn mark_traced(&self, session: u32, now: Instant, mark: Mark) {
        let mut going = self.going.borrow_mut();
        let Some(tracing) = going.get_mut(&session) else {
            return;
        };
        match mark {
            Mark::Waited(since) => tracing.waited = Some((since, now)),
            Mark::Asked => (tracing.asked, tracing.answered) = (Some(now), None),
            Mark::Answered => tracing.answered = tracing.answered.or(Some(now)),
            Mark::Failed(code) => tracing.error = Some(code),
        }
    }

    /// Begins a question to one of several partitions.
    pub(crate) fn leg(&self, session: u32, rt: &Rt, place: &Rc<Place>) -> Leg {
        match self.many.get() {
            0 => Leg::default(),
            _ => self.leg_traced(session, rt, place),
        }
    }

    #[cold]
    fn leg_traced(&self, session: u32, rt: &Rt, place: &Rc<Place>) -> Leg {
        let mut going = self.going.borrow_mut();
        let Some(tracing) = going.get_mut(&session) else {
            return Leg::default();
        };
        tracing.legs_asked += 1;
        if tracing.legs.len() >= LEGS_MAX {
            return Leg::default();
        }
        let times = Rc::new(LegTimes {
            place: place.clone(),
            asked: rt.now(),
            answered: Cell::new(None),
            ended: Cell::new(None),
            error: Cell::new(None),
        });
        tracing.legs.push(times.clone());
        Leg(Some((rt.clone(), times)))
    }

    /// Begins to trace a session's statement, if it may have to be: `by_rule` is what rules say.
    #[cold]
    pub(crate) fn begins(
        &self,
        session: u32,
        rt: &Rt,
        wish: &Traces,
        (text, attributes): (&[u8], Option<&Attributes>),
        by_rule: Option<bool>,
    ) {
        let parent = wish.parents.then(|| parent(attributes, text)).flatten();
        let by_chance = || wish.per_million > 0 && rt.random() % 1_000_000 < wish.per_million;
        let wanted = by_rule == Some(true)
            || parent.is_some_and(|parent| parent.sampled)
            || by_rule.is_none() && by_chance();
        if !wanted && (wish.slow.is_none() || by_rule == Some(false)) {
            return;
        }
        let tracing = Tracing {
            to: wish.to.clone(),
            parent,
            wanted,
            waited: None,
            asked: None,
            answered: None,
            error: None,
            legs: Vec::new(),
            legs_asked: 0,
        };
        let mut going = self.going.borrow_mut();
        going.insert(session, tracing);
        self.many.set(going.len());
    }

    /// Hands a session's statement over that is over, if it is traced. `facts`: the statement, without
    /// times and numbers of spans.
    pub(crate) fn ends(
        &self,
        session: u32,
        rt: &Rt,
        (began, slow): (Instant, Option<Duration>),
        facts: impl FnOnce() -> Traced,
    ) {
        if self.many.get() == 0 {
            return;
        }
        let tracing = self.going.borrow_mut().remove(&session);
        self.many.set(self.going.borrow().len());
        let now = rt.now();
        let tracing =
            tracing.filter(|one| one.wanted || slow.is_some_and(|slow| now - began >= slow));
        if let Some(tracing) = tracing {
            self.hand_over(rt, began, tracing, facts());
        }
    }

    #[cold]
    fn hand_over(&self, rt: &Rt, began: Instant, tracing: Tracing, facts: Traced) {
        let (now, ended_us) = (rt.now(), rt.wall_us());
        let at = |then: Instant| {
            let ago = u64::try_from((now - then).as_micros()).unwrap_or(u64::MAX);
            ended_us.saturating_sub(ago)
        };
        let asked_us = tracing
            .asked
            .map(|asked| (at(asked), tracing.answered.map(at)));
        let of_leg = |leg: &Rc<LegTimes>| {
            let server = leg.place.server();
            TracedLeg {
                hostgroup: server.hostgroup,
                host: leg.place.host().to_string(),
                port: server.port,
                asked_us: at(leg.asked),
                answered_us: leg.answered.get().map(at),
                ended_us: at(leg.ended.get().unwrap_or(now)),
                error: leg.error.get(),
            }
        };
        let legs = tracing.legs.iter().map(of_leg).collect();
        let parent = tracing.parent;
        // 0 is no number, neither of a span nor of a trace.
        let number = || rt.random().max(1);
        let own = || u128::from(number()) << 64 | u128::from(rt.random());
        let traced = Traced {
            fates: self.fates.clone(),
            to: tracing.to,
            trace: parent.map_or_else(own, |parent| parent.trace),
            span: number(),
            parent: parent.map(|parent| parent.span),
            began_us: at(began),
            ended_us,
            waited_us: tracing.waited.map(|(from, to)| (at(from), at(to))),
            asked_us,
            legs,
            legs_asked: tracing.legs_asked,
            server: facts.server.filter(|_| asked_us.is_some()),
            error: facts.error.map(|_| tracing.error.unwrap_or(0)),
            ..facts
        };
        if !(self.take)(traced) {
            self.fates.lose(1);
        }
    }
}

/// The caller's span, by an attribute or a comment.
fn parent(attributes: Option<&Attributes>, text: &[u8]) -> Option<Parent> {
    let by_attribute = |attributes: &Attributes| {
        let found = attributes.iter().find(|one| one.name == PARENT)?;
        // Behind its length.
        let value = found.value?;
        read_parent(value.get(value.len().checked_sub(PARENT_LEN)?..)?)
    };
    attributes.and_then(by_attribute).or_else(|| {
        let at = text.windows(PARENT.len()).position(|part| part == PARENT)?;
        let rest = text.get(at + PARENT.len()..)?.strip_prefix(b"='")?;
        read_parent(rest.get(..PARENT_LEN)?)
    })
}

/// Length of `00-` trace `-` span `-` flags.
const PARENT_LEN: usize = 55;

fn read_parent(text: &[u8]) -> Option<Parent> {
    let text = str::from_utf8(text)
        .ok()
        .filter(|text| text.len() == PARENT_LEN)?;
    let mut parts = text.split('-');
    // Later versions have the same beginning.
    let version = parts
        .next()
        .filter(|part| part.len() == 2 && *part != "ff")?;
    u8::from_str_radix(version, 16).ok()?;
    let trace = parts.next().filter(|part| part.len() == 32)?;
    let span = parts.next().filter(|part| part.len() == 16)?;
    let flags = parts.next().filter(|part| part.len() == 2)?;
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if parts.next().is_some() || !is_hex(trace) || !is_hex(span) || !is_hex(flags) {
        return None;
    }
    let parent = Parent {
        trace: u128::from_str_radix(trace, 16).ok()?,
        span: u64::from_str_radix(span, 16).ok()?,
        sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
    };
    (parent.trace != 0 && parent.span != 0).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_caller_is_read_from_attributes_and_comments() {
        let wanted = Some(Parent {
            trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span: 0x00f0_67aa_0ba9_02b7,
            sampled: true,
        });
        let mut attributes = Attributes::default();
        attributes.push_text("traceparent", TEXT);
        assert_eq!(parent(Some(&attributes), b"SELECT 1"), wanted);
        let none = Attributes::default();
        let comment = format!("SELECT 1 /*action='x',traceparent='{TEXT}'*/");
        assert_eq!(parent(Some(&none), comment.as_bytes()), wanted);
        let unsampled = comment.replace("-01'", "-00'");
        let read = parent(Some(&none), unsampled.as_bytes());
        assert_eq!(read.map(|parent| parent.sampled), Some(false));
    }

    #[test]
    fn what_is_no_caller_is_none() {
        for text in [
            "",
            "00-1-2-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        ] {
            assert_eq!(read_parent(text.as_bytes()), None, "{text}");
        }
        let cut = format!("SELECT 1 /*traceparent='{}", &TEXT[..50]);
        assert_eq!(parent(None, cut.as_bytes()), None);
    }
}
