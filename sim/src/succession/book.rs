//! Promises to clients, and what has become of them.

use super::node::{Node, Txn};
use crate::judge::{Fate, Judge};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The book of a world.
pub(super) struct Book {
    pub(super) judge: Rc<Judge>,
    pub(super) nodes: RefCell<Vec<Rc<Node>>>,
    /// Place of the writer among the nodes.
    writer: Cell<usize>,
    fates: RefCell<BTreeMap<String, Fate>>,
    /// Lines that a writer had, and that its successor has never heard of.
    lost: RefCell<BTreeSet<String>>,
    /// Lines that a successor had got and not done yet when it became the writer.
    late: RefCell<BTreeSet<String>>,
    /// Servers that came back writable beside their successor: no write may be sent there.
    supplanted: RefCell<BTreeSet<&'static str>>,
}

impl Book {
    pub(super) fn new(judge: &Rc<Judge>) -> Rc<Self> {
        Rc::new(Self {
            judge: judge.clone(),
            nodes: RefCell::default(),
            writer: Cell::new(0),
            fates: RefCell::default(),
            lost: RefCell::default(),
            late: RefCell::default(),
            supplanted: RefCell::default(),
        })
    }

    pub(super) fn writer(&self) -> Rc<Node> {
        self.nodes.borrow()[self.writer.get()].clone()
    }

    /// Everybody but this one.
    pub(super) fn others(&self, node: &Node) -> Vec<Rc<Node>> {
        let nodes = self.nodes.borrow();
        let others = nodes.iter().filter(|one| one.name != node.name);
        others.cloned().collect()
    }

    /// `node` writes from now on. What its predecessor has besides is lost.
    pub(super) fn succeeds(&self, node: &Node) {
        let before = self.writer();
        let lost = before.log().into_iter().filter(|txn| !node.has(txn));
        let lost: Vec<_> = lost.flat_map(|txn| txn.lines).collect();
        if !lost.is_empty() {
            self.judge.hit("a tail lost", 1);
        }
        let words = format!("{} succeeds {}, without {lost:?}", node.name, before.name);
        self.judge.tell("tool", &words);
        self.lost.borrow_mut().extend(lost);
        let place = self
            .nodes
            .borrow()
            .iter()
            .position(|one| one.name == node.name);
        self.writer.set(place.expect("one of the nodes"));
    }

    /// Whether a server but this one has a transaction.
    pub(super) fn has_another(&self, name: &str, txn: &Txn) -> bool {
        let nodes = self.nodes.borrow();
        let mut others = nodes.iter().filter(|one| one.name != name);
        others.any(|one| one.has(txn))
    }

    pub(super) fn supplanted(&self, name: &'static str, is: bool) {
        match is {
            true => self.supplanted.borrow_mut().insert(name),
            false => self.supplanted.borrow_mut().remove(name),
        };
    }

    /// A write has come to a server.
    pub(super) fn arrives(&self, name: &str, line: &str) {
        let is_wrong = self.supplanted.borrow().contains(name);
        self.judge.check(!is_wrong, "proxy", || {
            format!("{line} was sent to {name}, which came back writable beside its successor")
        });
    }

    pub(super) fn fate(&self, line: &str, fate: Fate) {
        self.fates.borrow_mut().insert(line.to_owned(), fate);
    }

    /// The next writer has these only later.
    pub(super) fn is_late(&self, lines: Vec<String>) {
        self.late.borrow_mut().extend(lines);
    }

    pub(super) fn has_late(&self) -> bool {
        !self.late.borrow().is_empty()
    }

    /// Whether a line that was acknowledged may be missing.
    pub(super) fn may_be_missing(&self, line: &str) -> bool {
        self.is_gone(line) || self.late.borrow().contains(line)
    }

    /// Whether a line was lost with a predecessor, and nobody has written it again.
    fn is_gone(&self, line: &str) -> bool {
        self.lost.borrow().contains(line) && !self.writer().has_line(line)
    }

    pub(super) fn acknowledged(&self) -> u64 {
        let fates = self.fates.borrow();
        fates
            .values()
            .filter(|fate| **fate == Fate::Acknowledged)
            .count() as u64
    }

    /// A client is told that a line is there.
    pub(super) fn acknowledges(&self, line: &str) {
        self.judge.check(!self.is_gone(line), "proxy", || {
            format!("{line} is acknowledged, and was lost before")
        });
    }

    /// Compares what clients were told with what the last writer has.
    pub(super) fn judge_log(&self) {
        let mut times: BTreeMap<String, u64> = BTreeMap::new();
        for line in self.writer().log().into_iter().flat_map(|txn| txn.lines) {
            *times.entry(line).or_default() += 1;
        }
        let fates = self.fates.borrow();
        for (line, times) in &times {
            self.judge.check(*times == 1, "log", || {
                format!("{line} is there {times} times")
            });
            self.judge.check(fates.contains_key(line), "log", || {
                format!("{line} was said by nobody")
            });
        }
        for (line, fate) in fates.iter() {
            let is_there = times.contains_key(line);
            let is_well = match fate {
                Fate::Acknowledged => is_there || self.is_gone(line),
                Fate::Never => !is_there,
                Fate::Unknown => true,
            };
            self.judge.check(is_well, "log", || match is_there {
                true => format!("{line} is there, and its client was told {fate:?}"),
                false => format!("{line} is not there, and its client was told {fate:?}"),
            });
        }
    }

    /// Where a replica has each transaction before it is acknowledged, none is lost.
    pub(super) fn judge_promise(&self) {
        for (line, fate) in &*self.fates.borrow() {
            let is_kept = *fate != Fate::Acknowledged || !self.is_gone(line);
            self.judge.check(is_kept, "log", || {
                format!("{line} was acknowledged when a replica had it, and is lost")
            });
        }
    }
}
