//! The words of the runtime; the bodies follow.
#![allow(missing_docs, unused_variables, clippy::unused_async, reason = "the seam, ahead of its bodies")]

use crate::Address;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{Add, Deref, DerefMut, Sub};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Driver { #[default] Auto, Uring, Epoll, Sim }
impl fmt::Display for Driver { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("epoll") } }
impl std::str::FromStr for Driver { type Err = String; fn from_str(s: &str) -> Result<Self, String> { match s { "auto" => Ok(Self::Auto), "uring" => Ok(Self::Uring), "epoll" => Ok(Self::Epoll), _ => Err(format!("`{s}` is not one of auto, uring, epoll")) } } }

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);
impl Instant {
    pub fn from_ns(ns: u64) -> Self { Self(ns) }
    pub fn as_ns(self) -> u64 { self.0 }
    pub fn elapsed_since(self, earlier: Self) -> Duration { Duration::from_nanos(self.0.saturating_sub(earlier.0)) }
}
impl Add<Duration> for Instant { type Output = Self; fn add(self, d: Duration) -> Self { Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))) } }
impl Sub for Instant { type Output = Duration; fn sub(self, earlier: Self) -> Duration { self.elapsed_since(earlier) } }

pub fn choose(d: Driver) -> (Driver, String) { (Driver::Epoll, String::new()) }
pub fn run<T, F: Future<Output = T>>(d: Driver, main: impl FnOnce(Rt) -> F) -> io::Result<T> { Err(io::ErrorKind::Unsupported.into()) }

pub mod sim {
    use super::{Future, Rt};
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Faults {}
    pub fn run<T, F: Future<Output = T>>(seed: u64, faults: Faults, main: impl FnOnce(Rt) -> F) -> T { unreachable!() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;
impl fmt::Display for Elapsed { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("the time is over") } }
impl std::error::Error for Elapsed {}
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions { pub backlog: u32, pub reuse_port: bool }
impl Default for ListenOptions { fn default() -> Self { Self { backlog: 1024, reuse_port: false } } }

#[derive(Clone)]
pub struct Rt(std::rc::Rc<()>);
impl Rt {
    pub fn spawn(&self, f: impl Future<Output = ()> + 'static) {}
    pub fn now(&self) -> Instant { Instant(0) }
    pub fn wall_us(&self) -> u64 { 0 }
    pub fn random(&self) -> u64 { 0 }
    pub async fn sleep(&self, d: Duration) {}
    pub async fn sleep_until(&self, t: Instant) {}
    pub async fn timeout<F: Future>(&self, d: Duration, f: F) -> Result<F::Output, Elapsed> { Ok(f.await) }
    pub async fn yield_now(&self) {}
    pub async fn connect(&self, to: &Address) -> io::Result<Socket> { Err(io::ErrorKind::Unsupported.into()) }
    pub fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Listener> { Err(io::ErrorKind::Unsupported.into()) }
    pub async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<Address>> { Err(io::ErrorKind::Unsupported.into()) }
    pub fn driver(&self) -> Driver { Driver::Epoll }
    pub fn panics(&self) -> u64 { 0 }
    pub fn on_panic(&self, hook: impl Fn(&str) + 'static) {}
}

pub struct Listener(std::rc::Rc<()>);
impl Listener {
    pub async fn accept(&self) -> io::Result<Socket> { Err(io::ErrorKind::Unsupported.into()) }
    pub fn local(&self) -> Address { unreachable!() }
}
pub struct Socket(std::rc::Rc<()>);
impl Socket {
    pub async fn recv(&self) -> io::Result<Chunk> { Err(io::ErrorKind::Unsupported.into()) }
    pub async fn send(&self, bytes: impl Into<Chunk>) -> io::Result<()> { Ok(()) }
    pub async fn flush(&self) -> io::Result<()> { Ok(()) }
    pub fn unsent(&self) -> usize { 0 }
    pub fn is_idle(&self) -> bool { true }
    pub fn peer(&self) -> Address { unreachable!() }
    pub fn local(&self) -> Address { unreachable!() }
    pub fn keepalive(&self, idle_secs: Option<u32>) -> io::Result<()> { Ok(()) }
    pub async fn closed(&self) {}
}
pub struct Chunk(Vec<u8>, std::marker::PhantomData<*const ()>);
impl Chunk {
    pub fn advance(&mut self, n: usize) {}
    pub fn truncate(&mut self, n: usize) {}
    pub fn split_to(&mut self, n: usize) -> Self { Self(Vec::new(), std::marker::PhantomData) }
}
impl Deref for Chunk { type Target = [u8]; fn deref(&self) -> &[u8] { &self.0 } }
impl DerefMut for Chunk { fn deref_mut(&mut self) -> &mut [u8] { &mut self.0 } }
impl From<Vec<u8>> for Chunk { fn from(v: Vec<u8>) -> Self { Self(v, std::marker::PhantomData) } }
impl From<&[u8]> for Chunk { fn from(v: &[u8]) -> Self { v.to_vec().into() } }

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Either<A, B> { Left(A), Right(B) }
pub async fn select<A: Future, B: Future>(a: A, b: B) -> Either<A::Output, B::Output> { Either::Left(a.await) }
