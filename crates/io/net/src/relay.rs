//! A client logs in to a server through us: each is told what the other says, and nobody else knows
//! the password.
//!
//! docs/decisions/0042-a-login-is-relayed.md

use crate::client::{LOGIN_LEN_MAX, agree, introduce_us, let_in};
use crate::tls::{self, Acceptor};
use crate::{Account, Conn, Hello, NetError, Proof, Refused};
use std::time::Duration;
use wire::auth::{self, Nonce, Plugin};
use wire::caps;
use wire::handshake::{AuthReply, AuthSwitch, ChangeUser, Greeting, Login, write_auth_more};
use wire::packet;

/// Packets of a login that the server sends at most.
const TURNS_MAX: u32 = 32;

/// Why nobody was let in.
#[derive(Debug)]
pub enum RelayFailed {
    /// The client left, or what it says makes no sense.
    Client(NetError),
    /// The server said no, or nothing.
    Server(Refused),
}

impl From<Refused> for RelayFailed {
    fn from(refused: Refused) -> Self {
        Self::Server(refused)
    }
}

/// Both ends of a login, and our key for a client that would seal its password.
struct Relay<'a> {
    client: &'a mut Conn,
    server: &'a mut Conn,
    own: Option<&'a Acceptor>,
    /// How long the server may be silent.
    patience: Duration,
    /// Plugin in use, by its name.
    plugin: String,
    nonce: Nonce,
    /// Whether the client can be asked for another plugin.
    switchable: bool,
    /// Whether anything was said to it.
    has_told: bool,
    /// caching_sha2_password was content with its first proof: it is to hear of that before the OK.
    is_fast: bool,
}

/// Words that a client has still to be told of a login at which a server has let it in, before the
/// OK.
#[derive(Debug)]
pub struct Unsaid {
    /// Plugin that has convinced the server, by its name.
    plugin: String,
    /// Whether the client has heard nothing yet, and could be asked for a proof once more.
    may_be_asked: bool,
    is_fast: bool,
}

impl Unsaid {
    /// Tells it.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn tell(self, client: &mut Conn) -> Result<(), NetError> {
        if !self.is_fast {
            return Ok(());
        }
        let mut payload = Vec::with_capacity(2);
        write_auth_more(&mut payload, &[auth::FAST_OK]);
        client.reply(&payload).await
    }

    /// Whether [`log_in_beside`] may ask this client for one more proof. Of caching_sha2_password the server
    /// may want the password itself: only who says it without further ado is asked.
    #[must_use]
    pub fn may_be_asked(&self, client: &Conn) -> bool {
        let serves = match Plugin::by_name(&self.plugin) {
            Some(Plugin::MysqlNative) => true,
            Some(Plugin::CachingSha2) => client.is_private(),
            _ => false,
        };
        self.may_be_asked && serves
    }
}

/// Logs in to the server that has sent this greeting, by what the client says there. `login` is what it
/// has said of itself, with its first proof; `own` has the key that clients were offered.
///
/// # Errors
/// [`RelayFailed`]; the connection to the server is then of no use.
pub async fn log_in_for(
    server: &mut Conn,
    greeting: Greeting,
    account: &Account<'_>,
    client: &mut Conn,
    (login, own): (&Login, Option<&Acceptor>),
    patience: Duration,
) -> Result<(Hello, Unsaid), RelayFailed> {
    let rt = server.socket().rt();
    let agreed = rt
        .timeout(patience, agree(server, &greeting, account))
        .await;
    let agreed = agreed.map_err(|_late| silent(patience))??;
    let switchable = caps::has(login.caps, caps::PLUGIN_AUTH);
    let plugin = login.auth_plugin.as_deref().filter(|_| switchable);
    let mut relay = Relay {
        client,
        server,
        own,
        patience,
        plugin: plugin.unwrap_or(Plugin::MysqlNative.name()).to_owned(),
        nonce: greeting.scramble,
        switchable,
        has_told: false,
        is_fast: false,
    };
    let response = match relay.may_pass(&relay.plugin) {
        true => login.auth_response.clone(),
        // The server asks for the plugin that its account has.
        false => Vec::new(),
    };
    introduce_us(relay.server, account, agreed, &relay.plugin, response).await?;
    let status = relay.converse(agreed).await?;
    let plugin = Plugin::by_name(&relay.plugin).unwrap_or(Plugin::MysqlNative);
    let proof = Proof::relayed(plugin, relay.nonce, account.charset);
    let unsaid = Unsaid {
        may_be_asked: relay.switchable && !relay.has_told,
        is_fast: relay.is_fast,
        plugin: relay.plugin,
    };
    let hello = let_in(server, greeting, account, agreed, status, proof);
    Ok((hello, unsaid))
}

/// Logs in to one more server, for a client that another has let in: it is asked for a proof of this
/// greeting, once, as if it had to use another plugin. None if this server wants more than that, or refuses:
/// the client is in all the same.
///
/// # Errors
/// The client is gone.
pub async fn log_in_beside(
    server: &mut Conn,
    greeting: Greeting,
    account: &Account<'_>,
    client: &mut Conn,
    unsaid: &mut Unsaid,
    patience: Duration,
) -> Result<Option<Hello>, NetError> {
    let rt = server.socket().rt();
    let agreed = rt
        .timeout(patience, agree(server, &greeting, account))
        .await;
    let Ok(Ok(agreed)) = agreed else {
        return Ok(None);
    };
    if unsaid.plugin != greeting.auth_plugin {
        return Ok(None);
    }
    unsaid.may_be_asked = false;
    let switch = AuthSwitch {
        plugin: unsaid.plugin.clone(),
        data: greeting.scramble.to_vec(),
    };
    let mut payload = Vec::with_capacity(64);
    switch.write(&mut payload);
    client.reply(&payload).await?;
    let response = client.packet(LOGIN_LEN_MAX).await?.payload().to_vec();
    unsaid.is_fast =
        unsaid.plugin == Plugin::CachingSha2.name() && !matches!(response[..], [] | [0]);
    let mut relay = Relay {
        client,
        server,
        own: None,
        patience,
        plugin: unsaid.plugin.clone(),
        nonce: greeting.scramble,
        switchable: false,
        has_told: false,
        is_fast: false,
    };
    let introduced = introduce_us(relay.server, account, agreed, &relay.plugin, response).await;
    let status = match introduced {
        Ok(()) => relay.converse_beside(agreed).await?,
        Err(_) => None,
    };
    // It has given its password, and waits for the OK alone.
    unsaid.is_fast &= !relay.has_told;
    let plugin = Plugin::by_name(&relay.plugin).unwrap_or(Plugin::MysqlNative);
    let proof = Proof::relayed(plugin, relay.nonce, account.charset);
    Ok(status.map(|status| let_in(server, greeting, account, agreed, status, proof)))
}

/// COM_CHANGE_USER of a client at the server where it has logged in, by what it says there: the flags
/// of the OK, and the proof that convinced the server. `own` has the key that clients were offered.
///
/// # Errors
/// As [`log_in_for`].
pub async fn change_user_for(
    server: &mut Conn,
    hello: &Hello,
    client: &mut Conn,
    (change, client_caps, own): (&ChangeUser, caps::Caps, Option<&Acceptor>),
    patience: Duration,
) -> Result<(u16, Proof, Unsaid), RelayFailed> {
    let switchable = caps::has(client_caps, caps::PLUGIN_AUTH);
    let plugin = change.auth_plugin.as_deref().filter(|_| switchable);
    let mut relay = Relay {
        client,
        server,
        own,
        patience,
        plugin: plugin.unwrap_or(Plugin::MysqlNative.name()).to_owned(),
        nonce: hello.proof.nonce(),
        switchable,
        has_told: false,
        is_fast: false,
    };
    let change = ChangeUser {
        auth_response: match relay.may_pass(&relay.plugin) {
            true => change.auth_response.clone(),
            false => Vec::new(),
        },
        auth_plugin: Some(relay.plugin.clone()),
        ..change.clone()
    };
    let mut payload = Vec::with_capacity(256);
    change.write(&mut payload, hello.caps);
    let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
    packet::append(&mut framed, &mut 0, &payload);
    let sent = relay.server.send_commands(framed).await;
    sent.map_err(|error| RelayFailed::Server(Refused::Net(error)))?;
    let status = relay.converse(hello.caps).await?;
    let plugin = Plugin::by_name(&relay.plugin).unwrap_or(Plugin::MysqlNative);
    let charset = change.charset.unwrap_or_else(|| hello.proof.charset());
    let unsaid = Unsaid {
        may_be_asked: false,
        is_fast: relay.is_fast,
        plugin: relay.plugin,
    };
    let proof = Proof::relayed(plugin, relay.nonce, charset);
    Ok((status, proof, unsaid))
}

fn silent(patience: Duration) -> RelayFailed {
    let words = format!("the server says nothing for {} ms", patience.as_millis());
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, words);
    RelayFailed::Server(Refused::Net(error.into()))
}

impl Relay<'_> {
    /// Whether what the client says for this plugin may go to the server as it is: no password goes
    /// in clear where others can read it.
    fn may_pass(&self, plugin: &str) -> bool {
        match Plugin::by_name(plugin) {
            Some(Plugin::ClearPassword) => self.client.is_private() && self.server.is_private(),
            // Over TLS it is the password, else one that is sealed with the server's key.
            Some(Plugin::Sha256) => self.client.is_private() == self.server.is_private(),
            _ => true,
        }
    }

    /// Until the server has decided: the flags of its OK.
    async fn converse(&mut self, agreed: caps::Caps) -> Result<u16, RelayFailed> {
        for _ in 0..TURNS_MAX {
            let said = self.hear().await?;
            match AuthReply::read(&said, agreed).map_err(Refused::from)? {
                AuthReply::Ok(ok) => return Ok(ok.status),
                AuthReply::Err(error) => return Err(crate::client::said(&error).into()),
                AuthReply::NextFactor => {
                    let what = "the server asks for a second authentication factor".to_owned();
                    return Err(Refused::Impossible(what).into());
                }
                AuthReply::Switch(switch) => {
                    if !(self.switchable && self.may_pass(&switch.plugin)) {
                        let what = format!(
                            "the server asks for authentication plugin '{}', for which the proxy cannot ask this client",
                            switch.plugin
                        );
                        return Err(Refused::Impossible(what).into());
                    }
                    if let Ok(nonce) = switch.nonce() {
                        self.nonce = nonce;
                    }
                    self.plugin = switch.plugin;
                    self.ask(&said).await?;
                }
                AuthReply::More([auth::FAST_OK]) if self.is_sha2() => self.is_fast = true,
                AuthReply::More([auth::FULL]) if self.is_sha2() => self.ask_in_full(&said).await?,
                AuthReply::More(_) => self.ask(&said).await?,
            }
        }
        let what = "the server asks and asks".to_owned();
        Err(Refused::Impossible(what).into())
    }

    /// As [`Self::converse`], of a server that may refuse. A password goes there in full only where the client
    /// says it without further ado.
    async fn converse_beside(&mut self, agreed: caps::Caps) -> Result<Option<u16>, NetError> {
        for _ in 0..TURNS_MAX {
            let Ok(said) = self.hear().await else {
                return Ok(None);
            };
            match AuthReply::read(&said, agreed) {
                Ok(AuthReply::Ok(ok)) => return Ok(Some(ok.status)),
                Ok(AuthReply::More([auth::FAST_OK])) if self.is_sha2() => {}
                Ok(AuthReply::More([auth::FULL]))
                    if self.is_sha2() && self.client.is_private() && !self.has_told =>
                {
                    match self.ask_in_full(&said).await {
                        Ok(()) => {}
                        Err(RelayFailed::Client(error)) => return Err(error),
                        Err(RelayFailed::Server(_)) => return Ok(None),
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn is_sha2(&self) -> bool {
        self.plugin == Plugin::CachingSha2.name()
    }

    /// caching_sha2_password wants the password itself: in clear where nobody else can read it, else
    /// sealed with a key. What the client sees of us, and we of the server, may differ in that.
    /// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>
    async fn ask_in_full(&mut self, said: &[u8]) -> Result<(), RelayFailed> {
        let is_private = (self.client.is_private(), self.server.is_private());
        self.tell(said).await?;
        let mut answer = self.answer().await?;
        match is_private {
            (true, true) => {}
            (false, false) => {
                if answer == [auth::ASK_KEY_CACHING_SHA2] {
                    self.pass(&answer).await?;
                    let key = self.hear().await?;
                    self.tell(&key).await?;
                    answer = self.answer().await?;
                }
            }
            (true, false) => {
                self.pass(&[auth::ASK_KEY_CACHING_SHA2]).await?;
                let key = self.hear().await?;
                let Some((&1, pem)) = key.split_first() else {
                    let what = "the server has no key for passwords, and is not reached by TLS";
                    return Err(Refused::Impossible(what.to_owned()).into());
                };
                let password = auth::clear_password(&answer).unwrap_or(&answer);
                answer = tls::seal(pem, &auth::xor_password(password, &self.nonce))
                    .map_err(Refused::from)?;
            }
            (false, true) => answer = self.unsealed(answer).await?,
        }
        self.pass(&answer).await
    }

    /// The password of a client that seals it, with our key: the server takes it in clear.
    async fn unsealed(&mut self, mut answer: Vec<u8>) -> Result<Vec<u8>, RelayFailed> {
        let nothing = || {
            let what = "there is no key for the client's password: it needs TLS".to_owned();
            RelayFailed::Server(Refused::Impossible(what))
        };
        let own = self.own.ok_or_else(nothing)?;
        if answer == [auth::ASK_KEY_CACHING_SHA2] {
            let mut key = Vec::with_capacity(1024);
            write_auth_more(&mut key, own.public_pem());
            self.tell(&key).await?;
            answer = self.answer().await?;
        }
        let sealed = own.open(&answer).ok_or_else(nothing)?;
        let mut password = auth::unxor_password(&sealed, &self.nonce).ok_or_else(nothing)?;
        password.push(0);
        Ok(password)
    }

    /// To the client, and its answer to the server.
    async fn ask(&mut self, said: &[u8]) -> Result<(), RelayFailed> {
        self.tell(said).await?;
        let answer = self.answer().await?;
        self.pass(&answer).await
    }

    async fn tell(&mut self, said: &[u8]) -> Result<(), RelayFailed> {
        self.has_told = true;
        self.client.reply(said).await.map_err(RelayFailed::Client)
    }

    async fn answer(&mut self) -> Result<Vec<u8>, RelayFailed> {
        let packet = self.client.packet(LOGIN_LEN_MAX).await;
        let packet = packet.map_err(RelayFailed::Client)?;
        Ok(packet.payload().to_vec())
    }

    async fn pass(&mut self, answer: &[u8]) -> Result<(), RelayFailed> {
        let passed = self.server.reply(answer).await;
        passed.map_err(|error| Refused::Net(error).into())
    }

    async fn hear(&mut self) -> Result<Vec<u8>, RelayFailed> {
        let rt = self.server.socket().rt();
        let heard = rt.timeout(self.patience, self.server.packet(LOGIN_LEN_MAX));
        let packet = heard.await.map_err(|_late| silent(self.patience))?;
        let packet = packet.map_err(Refused::Net)?;
        Ok(packet.payload().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::sim::{Faults, Limits};
    use rt::{Address, ListenOptions, Rt};

    /// Both ends of a connection that others could read.
    async fn pair(rt: &Rt, at: &str) -> (Conn, Conn) {
        let at: Address = at.parse().unwrap();
        let listener = rt.listen(&at, ListenOptions::default()).unwrap();
        let near = rt.connect(&at).await.unwrap();
        let far = listener.accept().await.unwrap();
        (Conn::new(near), Conn::new(far))
    }

    /// Relays a login at a server that says these packets, for a client that says `answer` to
    /// whatever it is asked. Returns what comes of it, and how many packets each of them has heard.
    fn relayed(server_says: &[&[u8]], answer: &'static [u8]) -> (Result<u16, String>, u32, u32) {
        let limits = Limits {
            time_max: Duration::from_secs(60),
            turns_max: 100_000,
        };
        let says: Vec<Vec<u8>> = server_says.iter().map(|said| said.to_vec()).collect();
        let outcome = std::rc::Rc::new(std::cell::RefCell::new(None));
        let result = outcome.clone();
        rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
            let (mut server, mut far_server) = pair(&rt, "10.0.0.1:3306").await;
            let (mut far_client, mut client) = pair(&rt, "10.0.0.2:4040").await;
            let heard = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
            let (at_client, at_server) = (heard.clone(), heard.clone());
            rt.spawn(async move {
                while far_client.packet(1000).await.is_ok() {
                    at_client.set((at_client.get().0 + 1, at_client.get().1));
                    if far_client.reply(answer).await.is_err() {
                        return;
                    }
                }
            });
            rt.spawn(async move {
                for said in says {
                    far_server.reply(&said).await.unwrap();
                    if far_server.packet(1000).await.is_err() {
                        return;
                    }
                    at_server.set((at_server.get().0, at_server.get().1 + 1));
                }
                // It says nothing more, and stays.
                let _gone = far_server.packet(1000).await;
            });
            let mut relay = Relay {
                client: &mut client,
                server: &mut server,
                own: None,
                patience: Duration::from_secs(2),
                plugin: Plugin::CachingSha2.name().to_owned(),
                nonce: [7; 20],
                switchable: true,
                has_told: false,
                is_fast: false,
            };
            let said = relay.converse(caps::PROTOCOL_41 | caps::PLUGIN_AUTH).await;
            let said = said.map_err(|failed| match failed {
                RelayFailed::Client(error) => format!("client: {error}"),
                RelayFailed::Server(refused) => refused.to_string(),
            });
            let (to_client, to_server) = heard.get();
            *outcome.borrow_mut() = Some((said, to_client, to_server));
        });
        let outcome = result.borrow_mut().take();
        outcome.unwrap()
    }

    fn switch(plugin: Plugin) -> Vec<u8> {
        let mut payload = Vec::new();
        let (plugin, data) = (plugin.name().to_owned(), vec![7; 20]);
        AuthSwitch { plugin, data }.write(&mut payload);
        payload
    }

    #[test]
    fn a_client_is_never_asked_for_what_others_could_read() {
        let (said, to_client, to_server) = relayed(&[&switch(Plugin::ClearPassword)], b"secret\0");
        assert!(said.unwrap_err().contains("mysql_clear_password"));
        assert_eq!((to_client, to_server), (0, 0));
    }

    #[test]
    fn a_proof_and_a_key_pass_as_they_are() {
        let (said, to_client, to_server) = relayed(&[&switch(Plugin::MysqlNative)], &[9; 20]);
        assert_eq!(said.unwrap_err(), "the server says nothing for 2000 ms");
        assert_eq!((to_client, to_server), (1, 1));
        let full = [1, auth::FULL];
        let key: &[u8] = b"\x01a key";
        let asks = &[auth::ASK_KEY_CACHING_SHA2];
        let (_, to_client, to_server) = relayed(&[&full, key], asks);
        // The question for a password, and the key; the wish for a key, and what is sealed with it.
        assert_eq!((to_client, to_server), (2, 2));
    }

    #[test]
    fn a_server_does_not_ask_for_ever() {
        let more: Vec<&[u8]> = vec![b"\x01more"; 100];
        let (said, to_client, _) = relayed(&more, b"answer");
        assert_eq!(said.unwrap_err(), "the server asks and asks");
        assert_eq!(to_client, TURNS_MAX);
        let (said, to_client, _) = relayed(&[b"\x02factor"], b"answer");
        assert!(said.unwrap_err().contains("second authentication factor"));
        assert_eq!(to_client, 0);
    }
}
