//! Deaths and hangs of servers, and the tool that gives a cluster its next writer.

use super::book::Book;
use super::node::Node;
use crate::chance::Chance;
use rt::Rt;
use std::rc::Rc;
use std::time::Duration;

/// A writer that hangs for so long is given up by the proxy for certain; a tool that knows its trade
/// waits as long before it gives it a successor.
const HANGS: Duration = Duration::from_secs(8);
/// So long after a succession the proxy has seen it.
const SEEN: Duration = Duration::from_secs(4);

pub(super) struct Tool {
    pub(super) rt: Rt,
    pub(super) book: Rc<Book>,
    pub(super) chance: Chance,
    /// Nothing breaks: there are only successions that were planned.
    pub(super) is_calm: bool,
    /// Of a hundred promotions so many do not wait until the next writer has applied what it got.
    pub(super) careless: u64,
    /// In so many of a hundred deaths replicas apply nothing for a while.
    pub(super) stalls: u64,
}

impl Tool {
    pub(super) async fn works(mut self) {
        for _ in 0..self.chance.between(1, 3) {
            self.sleeps(300, 2500).await;
            let old = self.book.writer();
            let kind = if self.is_calm {
                0
            } else {
                self.chance.below(100)
            };
            if kind >= 25 {
                self.book.judge.rough.set(true);
            }
            match kind {
                0..25 => self.switches(&old).await,
                25..60 => self.crashes(&old).await,
                60..80 => self.hangs(&old).await,
                80..90 => self.restarts(&old).await,
                _ => {
                    let others = self.book.others(&old);
                    let replica = self.chance.one_of(&others).clone();
                    self.restarts(&replica).await;
                }
            }
            self.rt.sleep(SEEN).await;
        }
    }

    async fn sleeps(&mut self, from_ms: u64, to_ms: u64) {
        let ms = self.chance.between(from_ms, to_ms);
        self.rt.sleep(Duration::from_millis(ms)).await;
    }

    fn hit(&self, what: &'static str) {
        self.book.judge.hit(what, 1);
    }

    /// Gives the cluster another writer: of those that are up, the one that has most. Who is careless does
    /// not wait until it has done what it got.
    async fn promotes(&mut self, old: &Rc<Node>) {
        let others = self.book.others(old);
        let most = |node: &&Rc<Node>| node.lines() + node.behind();
        let Some(new) = others.iter().max_by_key(most) else {
            return;
        };
        for node in &others {
            node.source_is((node.name != new.name).then_some(new));
        }
        if new.behind() > 0 && self.chance.percent(self.careless) {
            self.hit("a careless succession");
            self.book.is_late(new.late());
        }
        while new.behind() > 0 && !self.book.has_late() {
            self.rt.sleep(Duration::from_millis(1)).await;
        }
        self.book.succeeds(new);
        new.read_only.set(false);
    }

    /// A succession that was planned: nothing is lost.
    async fn switches(&mut self, old: &Rc<Node>) {
        self.hit("a planned succession");
        old.tell("is read-only");
        old.read_only.set(true);
        let has_all = |node: &Rc<Node>| node.lines() >= old.lines();
        while !self.book.others(old).iter().any(has_all) {
            self.rt.sleep(Duration::from_millis(5)).await;
        }
        self.sleeps(0, 400).await;
        self.promotes(old).await;
        old.source_is(Some(&self.book.writer()));
    }

    /// The writer dies, and another takes its place. It comes back as a replica, or as if nothing
    /// had been.
    async fn crashes(&mut self, old: &Rc<Node>) {
        self.hit("a writer's death");
        // It dies at its worst moment more often than by chance.
        let until = self.rt.now() + Duration::from_secs(2);
        let (at_worst, of_mark) = (self.chance.percent(60), self.chance.percent(50));
        let is_worst = || match of_mark {
            true => old.untold_marks.get() > 0,
            false => old.untold.get() > 0,
        };
        while at_worst && !is_worst() && self.rt.now() < until {
            self.rt.sleep(Duration::from_micros(200)).await;
        }
        if self.chance.percent(self.stalls) {
            let ms = self.chance.between(500, 4000);
            for node in self.book.others(old) {
                node.stalls(Duration::from_millis(ms));
            }
        }
        if at_worst {
            let us = self.chance.below(20_000);
            self.rt.sleep(Duration::from_micros(us)).await;
        }
        if old.untold.get() > 0 {
            self.hit("a death before a commit is answered");
        }
        old.crash();
        self.sleeps(200, 2500).await;
        self.promotes(old).await;
        self.rt.sleep(SEEN).await;
        self.sleeps(0, 1500).await;
        let comes_writable = self.chance.percent(40);
        if comes_writable {
            self.hit("two writers");
            self.book.supplanted(old.name, true);
            old.comes_back();
            self.sleeps(500, 4000).await;
        }
        self.fences(old);
        if !comes_writable {
            old.comes_back();
        }
        self.book.supplanted(old.name, false);
    }

    /// The writer hangs, another takes its place, and it goes on where it was.
    async fn hangs(&mut self, old: &Rc<Node>) {
        self.hit("a writer that hangs");
        old.freezes();
        self.rt.sleep(HANGS).await;
        self.promotes(old).await;
        self.rt.sleep(SEEN).await;
        self.sleeps(0, 1500).await;
        old.thaws();
        self.sleeps(0, 3000).await;
        self.fences(old);
    }

    /// A predecessor becomes a replica, without what it alone had.
    fn fences(&self, old: &Rc<Node>) {
        let writer = self.book.writer();
        old.read_only.set(true);
        old.is_rebuilt_from(&writer);
        old.source_is(Some(&writer));
    }

    /// A server dies and is back soon as what it was.
    async fn restarts(&mut self, node: &Rc<Node>) {
        self.hit("a restart");
        if self.chance.percent(30) {
            node.freezes();
            self.sleeps(100, 3000).await;
            node.thaws();
            return;
        }
        node.crash();
        self.sleeps(100, 3000).await;
        node.comes_back();
    }
}
