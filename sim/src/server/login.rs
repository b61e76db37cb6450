//! Login of a guest.

use super::{COURIER, Guest, PACKET_LEN_MAX, PASSWORD, written};
use crate::mind::{Complaint, Mind};
use net::{Conn, NetError};
use wire::auth;
use wire::caps::{self, Caps};
use wire::handshake::{Greeting, Login};
use wire::ok;
use wire::status;

impl Guest {
    /// Greets, and hears who comes; nobody, if it may not come in.
    pub(super) async fn log_in(
        &mut self,
        conn: &mut Conn,
    ) -> Result<Option<(Caps, Mind)>, NetError> {
        let mut random = [0; 20];
        for byte in &mut random {
            *byte = (self.server.chance.borrow_mut().next() >> 32) as u8;
        }
        let nonce = auth::nonce(random);
        self.nonce = nonce;
        let greeting = Greeting {
            server_version: format!("8.0.36-sim-{}", self.server.name),
            thread_id: self.id,
            scramble: nonce,
            caps: self.server.caps,
            charset: 8,
            status: status::AUTOCOMMIT,
            auth_plugin: "mysql_native_password".to_owned(),
        };
        let mut payload = Vec::new();
        greeting.write(&mut payload);
        conn.reply(&payload).await?;
        let packet = conn.packet(PACKET_LEN_MAX).await?;
        let login = Login::read(packet.payload())?;
        let stage2 = auth::native_stage2(PASSWORD.as_bytes());
        payload.clear();
        let who = format!("server {}", self.server.name);
        if login.user == COURIER {
            self.is_courier = true;
            self.server.couriers.set(self.server.couriers.get() + 1);
        }
        if auth::native_verify(&stage2, &nonce, &login.auth_response).is_none() {
            self.server
                .judge
                .accuse(&who, "a login with a wrong password");
            written(&Complaint(1045, "Access denied".to_owned())).write(&mut payload);
            conn.reply(&payload).await?;
            return Ok(None);
        }
        let caps = login.caps & self.server.caps;
        let expired = self.is_expired(&login.user, caps);
        if let Err(complaint) = &expired {
            written(complaint).write(&mut payload);
            conn.reply(&payload).await?;
            return Ok(None);
        }
        if let Some(Err(complaint)) = login
            .database
            .as_deref()
            .map(|name| self.server.ground.borrow().knows_schema(name))
        {
            written(&complaint).write(&mut payload);
            conn.reply(&payload).await?;
            return Ok(None);
        }
        self.user.clone_from(&login.user);
        self.several = caps::has(caps, caps::MULTI_STATEMENTS);
        ok::Ok {
            status: status::AUTOCOMMIT,
            ..ok::Ok::default()
        }
        .write(&mut payload, caps);
        conn.reply(&payload).await?;
        self.server
            .judge
            .tell(&who, &format!("{} is connection {}", login.user, self.id));
        let sandbox = expired.unwrap_or(false);
        let mut mind = Mind::new(login.database.as_deref(), login.charset);
        mind.sandbox = sandbox;
        Ok(Some((caps, mind)))
    }
}
