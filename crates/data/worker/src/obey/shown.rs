//! A command is shown to the scripts in its way, one behind the other, and becomes the queries that they make
//! of it.
//!
//! docs/features/scripts.md

use crate::command::trouble::Ended;
use crate::core::guests::{At, Owner, Visitor};
use crate::known::answer::{Complaint, Turn};
use crate::known::epoch::Epoch;
use crate::scripts::chain::{Chain, One};
use crate::scripts::collected::Collected;
use crate::scripts::door::{Early, Met};
use crate::scripts::home;
use crate::scripts::home::Runs;
use crate::scripts::rows::{Through, failed_script};
use crate::session::Session;
use bridge::Counter;
use config::{OnError, Script, Serves};
use net::Secret;
use plan::Routed;
use rt::Either;
use script::{Chosen, Counts, Decision, Failed, Item, Outcome, Response, Route, Verdict};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use wire::command::{COM_QUERY, COM_QUIT, COM_STMT_EXECUTE, Command, has_answer};
use wire::response::Expect;
use wire::{caps, command};

/// Attributes of a client that sends none along: no parameter, one set of them.
const NO_ATTRIBUTES: &[u8] = &[0, 1];

/// A way of a statement, as scripts have named it.
struct Way {
    route: Routed,
    named: Option<Rc<At>>,
}

impl Session {
    /// Whether a script may stand in this session's way.
    #[inline]
    pub(crate) fn meets_scripts(&self, epoch: &Epoch) -> bool {
        self.scripts.is_some() || epoch.has_scripts && self.is_served(epoch) || self.is_console()
    }

    /// Whether some script serves this user.
    fn is_served(&self, epoch: &Epoch) -> bool {
        let mut scripts = epoch.snapshot.scripts.active().iter();
        scripts.any(|script| self.has_in_its_way(script))
    }

    fn has_in_its_way(&self, script: &Script) -> bool {
        match self.is_console() {
            true => script.serves == Serves::Console,
            false => script.serves(&self.user.username),
        }
    }

    /// One command, by way of the scripts.
    pub(crate) async fn converse(&mut self, epoch: &Epoch, payload: &[u8]) -> Result<(), Ended> {
        let has_met = |chain: &Chain| chain.owner.is_some();
        if !self.scripts.as_deref().is_some_and(has_met) {
            Box::pin(self.meet_scripts(epoch)).await?;
        }
        let who = self.user_name.clone();
        let bare = self.without_attributes(payload);
        let said = self
            .shown_to(epoch, 0, bare.as_deref().unwrap_or(payload))
            .await;
        if self.user_name != who {
            // It has become somebody else, whose scripts are others; these know the one before.
            self.leave_scripts();
        }
        let closed = self.follows_wishes();
        if payload.first() == Some(&COM_QUIT) || closed {
            return said.and(Err(Ended::ByClient));
        }
        said
    }

    /// Does what scripts wish of the session behind a command; whether it ends.
    fn follows_wishes(&mut self) -> bool {
        let Some(chain) = &self.scripts else {
            return false;
        };
        let mut closes = false;
        let mut chosen = Chosen::Unsaid;
        for runs in chain.all.iter().filter_map(|one| one.runs.as_ref()) {
            let wishes = runs.wishes();
            closes |= wishes.closes;
            if wishes.chosen != Chosen::Unsaid {
                chosen = wishes.chosen;
            }
        }
        let own = match chosen {
            Chosen::Unsaid => chain.owner.as_ref().and_then(|owner| self.own_pools(owner)),
            _ => None,
        };
        self.rests_on(chosen, own.as_deref());
        closes
    }

    /// A COM_QUERY as scripts see it, without what the client has sent along; that is kept. None
    /// where it is as it came.
    fn without_attributes(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let chain = self.scripts.as_mut()?;
        chain.attributes.clear();
        if !caps::has(self.caps, caps::QUERY_ATTRIBUTES) {
            return None;
        }
        // One that makes no sense is refused when it is obeyed.
        let Ok(Command::Query(query)) = Command::read(payload, self.caps) else {
            return None;
        };
        chain.attributes.extend_from_slice(query.attributes);
        Some([&[COM_QUERY], query.sql].concat())
    }

    /// A COM_QUERY with what the client has sent along, as the session reads it. None where it is as
    /// it was.
    fn with_attributes(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let chain = self.scripts.as_ref()?;
        let sql = payload.strip_prefix(&[COM_QUERY])?;
        if !caps::has(self.caps, caps::QUERY_ATTRIBUTES) {
            return None;
        }
        let block = match chain.attributes.is_empty() {
            true => NO_ATTRIBUTES,
            false => &*chain.attributes,
        };
        Some([&[COM_QUERY], block, sql].concat())
    }

    /// Runs the main chunks of the scripts that serve this user, but for those that have met the
    /// client before it was greeted.
    async fn meet_scripts(&mut self, epoch: &Epoch) -> Result<(), Ended> {
        let snapshot = &epoch.snapshot;
        let owner = self.owner();
        let mut all = Vec::new();
        let chain = self.scripts.as_mut();
        let mut early = chain.and_then(|chain| chain.early.take());
        for script in snapshot.scripts.active() {
            if !self.has_in_its_way(script) {
                continue;
            }
            let known = early.as_mut().and_then(|early| early.take(script));
            let met = match known {
                Some(met) => met,
                None => {
                    let (visitor, entry) = (self.visitor(&owner), Some(self.entry.clone()));
                    let made = home::meet(&self.core, &snapshot.scripts, script, visitor, entry);
                    Met {
                        made: made.await,
                        script: script.clone(),
                        has_judged: false,
                    }
                }
            };
            let script = met.script.clone();
            let runs = self.shows_login(&owner, met).await?;
            let runs = runs.map(Rc::new);
            all.push(Rc::new(One { script, runs }));
        }
        let is_at_console = self.is_console();
        let early = early.map(|early| *early);
        self.scripts = Some(Box::new(Chain {
            all,
            counted: early.and_then(Early::counted),
            owner: Some(owner),
            ..Chain::new(None, is_at_console)
        }));
        Ok(())
    }

    /// Shows a script that has run its main chunk the login, unless it has judged that; none if it
    /// cannot run.
    async fn shows_login(&self, owner: &Owner, met: Met) -> Result<Option<Runs>, Ended> {
        let script = &met.script;
        let seen = match met.made {
            Ok(runs) => {
                let welcome = self.welcome();
                let said = match met.has_judged {
                    true => runs.is_in(owner, &self.entry).await.map(|()| None),
                    false => runs.has_logged_in(owner, &self.entry, &welcome).await,
                };
                said.map(|said| (runs, said))
            }
            Err(failed) => Err(failed),
        };
        match seen {
            Ok((runs, None)) => Ok(Some(runs)),
            Ok((
                _,
                Some(Response::Err {
                    code,
                    state,
                    message,
                }),
            )) => {
                let state = String::from_utf8_lossy(&state);
                let words = String::from_utf8_lossy(&message);
                Err(Ended::Told(Complaint::with(code, &state, words)))
            }
            Ok((runs, Some(_))) => {
                let late = "(read_auth) what it answers is left out: the client is in already";
                self.tell_of_script(script, &Failed(late.into()));
                Ok(Some(runs))
            }
            Err(failed) => {
                self.tell_of_script(script, &failed);
                match script.on_error {
                    OnError::Forward => Ok(None),
                    _ => Err(Ended::Told(failed_script(script))),
                }
            }
        }
    }

    /// Whose connections the scripts have.
    fn owner(&self) -> Owner {
        let stand_in = match self.secret {
            Secret::None => Vec::new(),
            _ => {
                let random = [(); 3].map(|()| self.core.rt.random().to_le_bytes());
                let first = random.as_flattened().first_chunk();
                first.map_or_else(Vec::new, |bytes| wire::auth::nonce(*bytes).to_vec())
            }
        };
        Owner {
            user: self.user.clone(),
            secret: self.secret.clone(),
            caps: self.caps,
            collation: self.collation,
            attributes: (*self.attributes).clone(),
            stand_in,
            local: (self.local.clone(), self.local_port),
            is_at_console: self.is_console(),
        }
    }

    /// This session, as a script sees it.
    fn visitor(&self, owner: &Owner) -> Visitor {
        Visitor {
            id: self.entry.id,
            client: match self.entry.address {
                Some(address) => (address.ip().to_string(), address.port()),
                None => (self.entry.client.0.clone(), 0),
            },
            schema: self.state.schema.to_string(),
            owner: owner.clone(),
        }
    }

    /// The answer to its login, as scripts see it.
    fn welcome(&self) -> Vec<u8> {
        let mut welcome = Vec::new();
        wire::ok::Ok {
            status: self.flags(),
            ..wire::ok::Ok::default()
        }
        .write(&mut welcome, self.caps);
        welcome
    }

    fn tell_of_script(&self, script: &Script, failed: &Failed) {
        self.core.tally.up(Counter::ScriptErrors);
        let (name, id) = (&script.name, self.entry.id);
        self.core
            .note_seldom(&format!("script '{name}', session {id}: {failed}"));
    }

    /// A command on its way to the script at this place of the chain; behind the last one it is
    /// obeyed.
    async fn shown_to(&mut self, epoch: &Epoch, at: usize, payload: &[u8]) -> Result<(), Ended> {
        let chain = self.scripts.as_ref();
        let Some(one) = chain.and_then(|chain| chain.all.get(at)).cloned() else {
            if self.is_console() {
                return self.lacks_an_answer(payload).await;
            }
            let whole = self.with_attributes(payload);
            return Box::pin(self.obey(epoch, whole.as_deref().unwrap_or(payload))).await;
        };
        let is_shown =
            |one: &One| one.runs.is_some() && self.rules_show(epoch, &one.script, payload);
        let Some(runs) = one.runs.as_ref().filter(|_| is_shown(&one)) else {
            return Box::pin(self.shown_to(epoch, at + 1, payload)).await;
        };
        let owner = chain.and_then(|chain| chain.owner.as_ref());
        let own = owner.and_then(|owner| self.own_pools(owner));
        runs.stands_in(&self.state.schema, self.lexing(), own);
        self.core.tally.up(Counter::ScriptCalls);
        // A script may wait for a server, and its client may leave meanwhile.
        let decides = pin!(runs.read_query(payload));
        let decided = match rt::select(decides, self.client.socket().closed()).await {
            Either::Left(decided) => decided,
            Either::Right(()) => return Err(Ended::Gone),
        };
        match decided {
            Ok(Decision::Forward(chosen)) => {
                let before = self.send_to(Route::default(), &chosen);
                let done = Box::pin(self.shown_to(epoch, at + 1, payload)).await;
                self.goes_as(before);
                done
            }
            Ok(Decision::Answer(response)) => {
                let end = (self.flags(), 0);
                self.answer_from_script(&response, payload, end).await?;
                Box::pin(self.run_queue(epoch, at, &one, payload, true)).await
            }
            Ok(Decision::Queue) => Box::pin(self.run_queue(epoch, at, &one, payload, false)).await,
            Ok(Decision::Unsayable(failed)) => {
                self.tell_of_script(&one.script, &failed);
                runs.forget();
                self.fails_before(&one, payload).await
            }
            Err(failed) => {
                self.tell_of_script(&one.script, &failed);
                runs.forget();
                match one.script.on_error {
                    OnError::Forward if !self.is_console() => {
                        Box::pin(self.shown_to(epoch, at + 1, payload)).await
                    }
                    _ => self.fails_before(&one, payload).await,
                }
            }
        }
    }

    /// Whether a script sees a command: all of them, or those that a rule sends to it. Of what was
    /// prepared a script of today sees the executions if it has seen it then.
    fn rules_show(&self, epoch: &Epoch, script: &Script, payload: &[u8]) -> bool {
        let is_it = |name: &Arc<str>| **name == *script.name;
        if !epoch.scripts_of_rules.iter().any(is_it) {
            return true;
        }
        let (code, rest) = payload
            .split_first()
            .map_or((0, payload), |(code, rest)| (*code, rest));
        let text = match code {
            COM_QUERY | command::COM_STMT_PREPARE => rest,
            COM_QUIT => return false,
            _ if script::is_of_today(&script.text) => return true,
            COM_STMT_EXECUTE => {
                let id = rest.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
                let mut all = self.statements.iter();
                match all.find(|(of, _)| *of == id) {
                    Some((_, found)) => found.asked().unwrap_or(&found.prepared().sql),
                    None => return false,
                }
            }
            _ => return false,
        };
        let lexing = self.lexing();
        let class = lexing.class(text);
        let mut shown = Vec::new();
        let digest = epoch
            .digests
            .then(|| sql::digest(text, &epoch.digest, &mut shown));
        let digest = digest.map(|hash| plan::Digest { hash, text: &shown });
        let statement = plan::Statement {
            text,
            digest,
            comment: None,
            prepared: None,
            parameters: None,
            prepares: false,
            guarded: plan::Guarded::Text,
            routed: Routed::default(),
            numbers: shards::Numbering::Whichever,
            making: shards::Making::Whichever,
            columns: None,
            looked: None,
            answered: None,
        };
        let plan = self.decide(epoch, &class, (None, lexing), &statement);
        let chain = epoch.snapshot.rules.chain();
        let hits = plan.why.hits().iter();
        let mut rules = hits.filter_map(|at| chain.get(*at as usize));
        rules.any(|rule| rule.script.as_ref().is_some_and(is_it))
    }

    /// Runs what a script has queued, and what it queues meanwhile. One answer goes on; `answered`:
    /// one has gone.
    async fn run_queue(
        &mut self,
        epoch: &Epoch,
        at: usize,
        one: &One,
        payload: &[u8],
        mut answered: bool,
    ) -> Result<(), Ended> {
        let Some(runs) = &one.runs else { return Ok(()) };
        let has_answers = has_answer(payload.first().copied().unwrap_or(0));
        loop {
            let mut item = match runs.next().await {
                Ok(Some(item)) => item,
                Ok(None) => break,
                Err(failed) => {
                    self.tell_of_script(&one.script, &failed);
                    break;
                }
            };
            let began = self.core.rt.now();
            let collected = match self.collector(one, &mut item, answered) {
                Ok(collected) => collected,
                Err(_told) => {
                    runs.forget();
                    return self.fails_before(one, payload).await;
                }
            };
            let goes_by = collected.goes_by();
            let outer = self.collect(Some(collected), goes_by);
            let before = self.send_to(item.route, &item.chosen);
            let ran = Box::pin(self.shown_to(epoch, at + 1, &item.packet)).await;
            self.goes_as(before);
            let Some(mut collected) = self.collect(None, false) else {
                return ran;
            };
            self.collect(outer.or_else(|| collected.take_behind()), false);
            if let Err(ended) = ran {
                // What was said last is for the client.
                let said = collected.whole().filter(|said| !said.is_empty());
                if let Some(said) = said.filter(|_| !answered) {
                    let _client_may_have_gone = self.pass(said);
                }
                return Err(ended);
            }
            if !has_answer(item.packet.first().copied().unwrap_or(0)) {
                continue;
            }
            if let Some(through) = collected.through() {
                self.went_through(through)?;
                if collected.goes_by() {
                    answered = true;
                    continue;
                }
            }
            let goes_by = collected.goes_by();
            answered |= goes_by;
            let took =
                |to: rt::Instant| u64::try_from((to - began).as_micros()).unwrap_or(u64::MAX);
            let now = self.core.rt.now();
            let times = (took(collected.first().unwrap_or(now)), took(now));
            let is_new = self
                .judge(one, (&item, collected), times, answered && !goes_by)
                .await;
            match is_new {
                Ok(is_new) => answered |= is_new,
                Err(ended) => return Err(ended),
            }
        }
        if answered || !has_answers {
            return Ok(());
        }
        self.turn = Turn::after(payload.len());
        let complaint = Complaint::with(1105, "07000", "(lua) no result for this query");
        self.refuse(&complaint).await
    }

    /// Collects the answer to a queued query, as far as its script looks at it.
    ///
    /// # Errors
    /// The script cannot see rows.
    fn collector(&self, one: &One, item: &mut Item, answered: bool) -> Result<Collected, Failed> {
        let (script, expect) = (&one.script, expected(&item.packet));
        let lets_pass = script.on_error == OnError::Forward;
        if let Some(runs) = one.runs.as_ref().filter(|_| item.is_streamed && !answered) {
            let at = (&self.core, self.entry.id);
            let is_binary = expect == Expect::Execute;
            let through = Through::of(at, (script, runs), (&*item, is_binary), self.caps);
            match through {
                Some(through) => return Ok(Collected::by_way_of(through, expect, self.caps)),
                None => {
                    let words = "(on.rows) runs on the core of its session, and a script that shares proxy.global does not: use m.shared";
                    let failed = Failed(words.into());
                    self.tell_of_script(script, &failed);
                    if !lets_pass {
                        return Err(failed);
                    }
                }
            }
        }
        // What only counts an answer and may not stop it does not keep it either, however large.
        item.is_collected &= !(item.is_unread && lets_pass);
        Ok(match item.is_collected || answered {
            true => Collected::up_to(script.result_len_max, expect, self.caps),
            false => Collected::by_the_way(expect, self.caps),
        })
    }

    /// Tells the client that a script has failed before its statement ran.
    async fn fails_before(&mut self, one: &One, payload: &[u8]) -> Result<(), Ended> {
        let complaint = failed_script(&one.script);
        if one.script.on_error == OnError::Disconnect {
            return Err(Ended::Told(complaint));
        }
        if !has_answer(payload.first().copied().unwrap_or(0)) {
            return Ok(());
        }
        self.turn = Turn::after(payload.len());
        self.refuse(&complaint).await
    }

    /// Goes on behind an answer whose rows a script has seen.
    fn went_through(&mut self, through: &Through) -> Result<(), Ended> {
        let passage = through.passage();
        if let Some(seq) = passage.last_seq() {
            self.turn.sent = seq;
        }
        self.turn.failed |= passage.is_refused();
        match through.ends_session() {
            true => Err(Ended::ByClient),
            false => Ok(()),
        }
    }

    /// Shows a script an answer, and hands on what it makes of it; whether that went to the client.
    async fn judge(
        &mut self,
        one: &One,
        (item, collected): (&Item, Collected),
        (query_us, response_us): (u64, u64),
        answered: bool,
    ) -> Result<bool, Ended> {
        let Some(runs) = &one.runs else {
            return Ok(false);
        };
        let went_by = collected.goes_by();
        let counts = counts_of(&collected);
        let code = item.packet.first().copied().unwrap_or(0);
        let Some(packets) = collected.whole().map(Arc::new) else {
            let words = format!(
                "A result for the script '{}' has more bytes than its result_mb_max allows",
                one.script.name
            );
            runs.forget();
            if answered {
                return Ok(false);
            }
            self.turn = Turn::after(0);
            self.refuse(&Complaint::with(1105, "07000", words)).await?;
            return Ok(true);
        };
        let shown = item.is_collected.then(|| packets.clone());
        let mut outcome = Outcome::sharing(shown, self.caps, code == COM_STMT_EXECUTE, counts);
        (outcome.query_us, outcome.response_us) = (query_us, response_us);
        self.core.tally.up(Counter::ScriptCalls);
        let judges = pin!(runs.read_query_result(item, outcome));
        let judged = match rt::select(judges, self.client.socket().closed()).await {
            Either::Left(judged) => judged,
            Either::Right(()) => return Err(Ended::Gone),
        };
        // What it wanted to hide is not shown because it has said something wrong instead.
        let hides = judged.is_ok() || one.script.on_error != OnError::Forward;
        let verdict = match judged {
            Ok(Verdict::Unsayable(failed)) | Err(failed) => {
                self.tell_of_script(&one.script, &failed);
                runs.forget();
                if one.script.on_error == OnError::Disconnect {
                    return Err(Ended::Told(failed_script(&one.script)));
                }
                if hides && !went_by && !answered && has_answer(code) {
                    self.turn = Turn::after(0);
                    self.refuse(&failed_script(&one.script)).await?;
                    return Ok(true);
                }
                Verdict::PassOn
            }
            Ok(verdict) => verdict,
        };
        let late = |what: &str| {
            Failed(format!(
                "(read_query_result) {what}: the client has an answer already"
            ))
        };
        match verdict {
            Verdict::PassOn if went_by || answered => Ok(false),
            Verdict::PassOn => {
                self.hand_over(Arc::unwrap_or_clone(packets)).await?;
                Ok(true)
            }
            Verdict::Instead(response) if !went_by && !answered => {
                let end = (counts.status, counts.warnings);
                self.answer_from_script(&response, &item.packet, end)
                    .await?;
                Ok(true)
            }
            Verdict::Instead(_) => {
                self.tell_of_script(&one.script, &late("the result that it made is dropped"));
                Ok(false)
            }
            #[cfg(debug_assertions)]
            Verdict::Ignore if backend::planted::SAY_IGNORED.get() => {
                self.hand_over(Arc::unwrap_or_clone(packets)).await?;
                Ok(false)
            }
            Verdict::Ignore | Verdict::Unsayable(_) => {
                if went_by {
                    self.tell_of_script(&one.script, &late("the result cannot be ignored"));
                }
                Ok(false)
            }
        }
    }

    /// Sends what runs next where a script says; how it went before.
    fn send_to(&mut self, route: Route, chosen: &Chosen) -> Option<Way> {
        let at = match chosen {
            // One to which there is no way is not chosen: the session stays where it is.
            Chosen::At(server) if self.can_go_to(server) => Some(At::from(server)),
            _ => None,
        };
        if at.is_some() {
            self.is_on(at.clone());
        }
        let chain = self.scripts.as_mut()?;
        let before = Way {
            route: chain.route,
            named: chain.named.clone(),
        };
        let hostgroup = at.as_ref().map(|at| at.hostgroup).or(route.hostgroup);
        chain.route = Routed {
            hostgroup: hostgroup.or(before.route.hostgroup),
            cache_ttl_ms: route.cache_ttl_ms.or(before.route.cache_ttl_ms),
        };
        if let Some(at) = at {
            chain.named = Some(Rc::new(at));
        }
        Some(before)
    }

    fn goes_as(&mut self, way: Option<Way>) {
        if let (Some(way), Some(chain)) = (way, &mut self.scripts) {
            (chain.route, chain.named) = (way.route, way.named);
        }
    }

    /// No script has answered a command at the console: MySQL Proxy closes the connection then.
    async fn lacks_an_answer(&mut self, payload: &[u8]) -> Result<(), Ended> {
        if payload.first() == Some(&COM_QUIT) {
            return Err(Ended::ByClient);
        }
        let scripts = self.core.epoch().snapshot.scripts.clone();
        let mut scripts = scripts.active().iter();
        let words = match scripts.any(|script| script.serves == Serves::Console) {
            true => "need a resultset + proxy.PROXY_SEND_RESULT",
            false => "no script with serves = 'console' is in force",
        };
        self.turn = Turn::after(payload.len());
        self.refuse(&Complaint::with(1105, "07000", words)).await?;
        Err(Ended::ByClient)
    }

    /// Gives the client what a script has made up as the answer to this command. `end`: the status
    /// and the warnings that it ends with.
    async fn answer_from_script(
        &mut self,
        response: &Response,
        payload: &[u8],
        end: (u16, u16),
    ) -> Result<(), Ended> {
        let code = payload.first().copied().unwrap_or(0);
        if !has_answer(code) {
            return Ok(());
        }
        self.turn = Turn::after(payload.len());
        let mut out = Vec::new();
        let form = (self.caps, end.0, end.1);
        let is_binary = code == COM_STMT_EXECUTE;
        let response = response.for_client(self.caps, is_binary);
        self.turn.sent = response.write(&mut out, self.turn.sent, form, is_binary);
        self.turn.failed = response.is_error();
        self.hand_over(out).await
    }

    /// Begins to collect answers so, and returns who has collected them. `goes_by`: what is
    /// collected goes to that one as well.
    fn collect(&mut self, new: Option<Collected>, goes_by: bool) -> Option<Collected> {
        let chain = self.scripts.as_mut()?;
        let outer = chain.collects.take();
        chain.collects = new;
        if !goes_by {
            return outer;
        }
        if let (Some(new), Some(outer)) = (&mut chain.collects, outer) {
            new.in_front_of(outer);
        }
        None
    }

    /// Tells the scripts that their client has gone.
    pub(crate) fn leave_scripts(&mut self) {
        let Some(chain) = self.scripts.take() else {
            return;
        };
        for one in &chain.all {
            if let Some(Err(failed)) = one.runs.as_deref().map(Runs::disconnect_client) {
                self.tell_of_script(&one.script, &failed);
            }
        }
    }
}

fn counts_of(collected: &Collected) -> Counts {
    let response = collected.response();
    Counts {
        failed: matches!(response.outcome(), wire::response::Outcome::Err { .. }),
        has_rows: response.columns() > 0,
        rows: response.rows(),
        bytes: collected.bytes(),
        status: response.status(),
        warnings: response.warnings(),
        affected: response.affected_rows(),
        insert_id: response.insert_id(),
    }
}

/// How the answer to a command is read.
fn expected(packet: &[u8]) -> Expect {
    use wire::command as c;
    match packet.first().copied() {
        Some(0x03 | c::COM_PROCESS_INFO) => Expect::Query,
        Some(c::COM_STMT_PREPARE) => Expect::Prepare,
        Some(COM_STMT_EXECUTE | c::COM_STMT_BULK_EXECUTE) => Expect::Execute,
        Some(c::COM_STMT_FETCH) => Expect::Fetch,
        Some(0x04) => Expect::FieldList,
        Some(0x09) => Expect::Line,
        _ => Expect::Simple,
    }
}
