//! latchd from redis-rs: `sync`, one connection and blocking calls, or `async`, a
//! connection that tokio's tasks share and that gives up after 500 ms.
//!
//! clients (sync|async) HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see
//! ../../../README.md

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::AsyncConnectionConfig;
use redis::{
    Client, ClientTlsConfig, Cmd, Connection, ConnectionAddr, IntoConnectionInfo, Pipeline,
    ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult, TlsCertificates,
};
use std::time::Duration;

/// A request; options are words like all others.
fn words(all: &[&str]) -> Cmd {
    let mut cmd = redis::cmd(all[0]);
    for word in &all[1..] {
        cmd.arg(*word);
    }
    cmd
}

fn client(args: &[String]) -> Client {
    let given = |i: usize| Some(args[i].clone()).filter(|word| word != "-");
    let (host, port) = (args[0].clone(), args[1].parse().unwrap());
    let mut login = RedisConnectionInfo::default();
    if args[2] == "3" {
        login = login.set_protocol(ProtocolVersion::RESP3);
    }
    if let Some(user) = given(3) {
        login = login.set_username(user);
    }
    if let Some(password) = given(4) {
        login = login.set_password(password);
    }
    match given(5) {
        None => {
            let info = (host, port).into_connection_info().unwrap();
            Client::open(info.set_redis_settings(login)).unwrap()
        }
        Some(ca) => {
            let address = ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            };
            let info = address
                .into_connection_info()
                .unwrap()
                .set_redis_settings(login);
            let root_cert = Some(std::fs::read(ca).unwrap());
            Client::build_with_tls(
                info,
                TlsCertificates {
                    client_tls: None::<ClientTlsConfig>,
                    root_cert,
                },
            )
            .unwrap()
        }
    }
}

/// What Cargo chose.
fn version() {
    let lock = include_str!("../Cargo.lock");
    let entry = lock.split("name = \"redis\"\nversion = \"").nth(1).unwrap();
    println!("version {}", entry.split('"').next().unwrap());
}

/// Both kinds of connection, seen by the scenarios.
enum Latchd {
    Sync(Box<Connection>),
    Async(MultiplexedConnection),
}

impl Latchd {
    async fn open(client: &Client, kind: &str) -> RedisResult<Self> {
        Ok(match kind {
            "sync" => Latchd::Sync(Box::new(client.get_connection()?)),
            _ => Latchd::Async(client.get_multiplexed_async_connection().await?),
        })
    }

    /// On a machine that may be slow.
    async fn open_patiently(client: &Client, kind: &str) -> RedisResult<Self> {
        if kind == "sync" {
            return Latchd::open(client, kind).await;
        }
        let limit = Some(Duration::from_secs(30));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(limit)
            .set_response_timeout(limit);
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        Ok(Latchd::Async(connection))
    }

    async fn try_ask(&mut self, all: &[&str]) -> RedisResult<Option<i64>> {
        match self {
            Latchd::Sync(connection) => words(all).query(connection),
            Latchd::Async(connection) => words(all).query_async(connection).await,
        }
    }

    async fn ask(&mut self, all: &[&str]) -> Option<i64> {
        self.try_ask(all)
            .await
            .unwrap_or_else(|error| panic!("{all:?}: {error}"))
    }

    /// The error that this must be answered with.
    async fn refused(&mut self, all: &[&str]) -> RedisError {
        self.try_ask(all).await.expect_err("no error")
    }

    async fn batch(&mut self, batch: &Pipeline) -> Vec<Option<i64>> {
        match self {
            Latchd::Sync(connection) => batch.query(connection).unwrap(),
            Latchd::Async(connection) => batch.query_async(connection).await.unwrap(),
        }
    }
}

async fn hello(latchd: &mut Latchd, name: &str) {
    let token = latchd.ask(&["LOCK", name, "WAIT", "0"]).await.unwrap();
    assert!(token > 1 << 31);
    assert_eq!(
        latchd
            .ask(&["UNLOCK", name, "TOKEN", &token.to_string()])
            .await,
        Some(0)
    );
}

async fn busy(latchd: &mut Latchd, name: &str) {
    let token = latchd.ask(&["LOCK", name]).await.unwrap();
    assert_eq!(latchd.ask(&["LOCK", name, "WAIT", "0"]).await, None);
    assert_eq!(latchd.ask(&["LOCK", name, "WAIT", "50"]).await, None);
    let held = token.to_string();
    assert!(latchd.ask(&["RENEW", name, "TOKEN", &held]).await.unwrap() > 0);
    assert_eq!(latchd.ask(&["UNLOCK", name, "TOKEN", &held]).await, Some(0));
    assert!(
        latchd
            .ask(&["LOCK", name, "FAIR", "WAIT", "0"])
            .await
            .unwrap()
            > token
    );
    assert_eq!(latchd.ask(&["UNLOCK", name]).await, Some(0));
}

async fn reenter(latchd: &mut Latchd, name: &str) {
    let token = latchd.ask(&["LOCK", name, "OWNER", "ann"]).await;
    assert_eq!(latchd.ask(&["LOCK", name, "OWNER", "ann"]).await, token);
    assert_eq!(latchd.ask(&["UNLOCK", name, "OWNER", "ann"]).await, Some(1));
    assert_eq!(latchd.ask(&["UNLOCK", name, "OWNER", "ann"]).await, Some(0));
}

async fn lose(latchd: &mut Latchd, name: &str) {
    let token = latchd.ask(&["LOCK", name]).await.unwrap().to_string();
    assert_eq!(
        latchd.ask(&["FORCEUNLOCK", name, "TOKEN", &token]).await,
        Some(1)
    );
    let error = latchd.refused(&["UNLOCK", name, "TOKEN", &token]).await;
    assert_eq!(error.code(), Some("NOTHELD"));
    let error = latchd.refused(&["RENEW", name, "TOKEN", &token]).await;
    assert_eq!(error.code(), Some("NOTHELD"));
    let error = latchd.refused(&["LOCK", name, "SOON"]).await;
    assert!(error.to_string().contains("unknown option"), "{error}");
}

async fn share(latchd: &mut Latchd, name: &str) {
    let one = latchd.ask(&["LOCK", name, "READ"]).await.unwrap();
    let two = latchd.ask(&["LOCK", name, "READ"]).await.unwrap();
    assert_eq!(
        latchd.ask(&["LOCK", name, "WRITE", "WAIT", "0"]).await,
        None
    );
    for token in [one, two] {
        assert_eq!(
            latchd
                .ask(&["UNLOCK", name, "TOKEN", &token.to_string()])
                .await,
            Some(0)
        );
    }
    let token = latchd
        .ask(&["LOCK", name, "WRITE", "WAIT", "0"])
        .await
        .unwrap();
    assert_eq!(
        latchd
            .ask(&["UNLOCK", name, "TOKEN", &token.to_string()])
            .await,
        Some(0)
    );
}

async fn pipeline(latchd: &mut Latchd, name: &str, transaction: bool) {
    let mut locks = redis::pipe();
    let mut unlocks = redis::pipe();
    if transaction {
        locks.atomic();
        unlocks.atomic();
    }
    let names = [format!("{name}1"), format!("{name}2")];
    for which in [0, 1, 0] {
        locks.add_command(words(&["LOCK", &names[which], "WAIT", "0"]));
    }
    let tokens = latchd.batch(&locks).await;
    assert_eq!(tokens[2], None);
    for (name, token) in names.iter().zip(tokens) {
        unlocks.add_command(words(&[
            "UNLOCK",
            name,
            "TOKEN",
            &token.unwrap().to_string(),
        ]));
    }
    assert_eq!(latchd.batch(&unlocks).await, [Some(0), Some(0)]);
}

/// Many tasks over one connection: each asks now and then, nobody waits for a reply that has
/// to wait, and all get their turn in the order in which they came.
async fn crowd(latchd: &mut Latchd, name: &str) {
    let Latchd::Async(connection) = latchd else {
        return; // nobody shares this one
    };
    let turns = std::cell::RefCell::new(Vec::new());
    let tasks = (0..20).map(|number| {
        let (mut latchd, turns) = (Latchd::Async(connection.clone()), &turns);
        async move {
            let request = format!("{name}-{number}-of-a-crowd");
            let lock = ["LOCK", name, "WAIT", "0", "ID", &request, "KEEP", "3000"];
            while latchd.ask(&lock).await.is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            turns.borrow_mut().push(number);
            assert_eq!(latchd.ask(&["UNLOCK", name, "ID", &request]).await, Some(0));
        }
    });
    futures_util::future::join_all(tasks).await;
    assert_eq!(turns.into_inner(), (0..20).collect::<Vec<_>>());
}

/// Takes the lock as joe, and has it taken away; the messages that tell so.
async fn lose_loudly(latchd: &mut Latchd, name: &str) -> [(String, String); 2] {
    let token = latchd.ask(&["LOCK", name, "OWNER", "joe"]).await.unwrap();
    assert_eq!(
        latchd.ask(&["FORCEUNLOCK", name, "OWNER", "joe"]).await,
        Some(1)
    );
    ["granted", "lost"].map(|what| (format!("{what}:{name}"), format!("joe {token}")))
}

async fn events(client: &Client, latchd: &mut Latchd, name: &str) {
    let (lost, pattern) = (format!("lost:{name}"), format!("g*:{name}"));
    let told = |message: redis::Msg| {
        (
            message.get_channel_name().to_string(),
            message.get_payload::<String>().unwrap(),
        )
    };
    if matches!(latchd, Latchd::Sync(_)) {
        let mut connection = client.get_connection().unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut listener = connection.as_pubsub();
        listener.subscribe(lost).unwrap();
        listener.psubscribe(pattern).unwrap();
        for wanted in lose_loudly(latchd, name).await {
            assert_eq!(told(listener.get_message().unwrap()), wanted);
        }
    } else {
        let mut listener = client.get_async_pubsub().await.unwrap();
        listener.subscribe(lost).await.unwrap();
        listener.psubscribe(pattern).await.unwrap();
        for wanted in lose_loudly(latchd, name).await {
            assert_eq!(told(listener.on_message().next().await.unwrap()), wanted);
        }
    }
}

/// Asks until there is a token. patience 0: others use the connection as well, and it gives
/// up after 500 ms; so it asks now and then. KEEP keeps the place in between. After an error
/// it connects again.
async fn wait(client: &Client, kind: &str, name: &str, request: &str, patience: &str) {
    let lock = [
        "LOCK", name, "WAIT", patience, "ID", request, "KEEP", "3000",
    ];
    let mut latchd = Latchd::open_patiently(client, kind).await.unwrap();
    again(client, kind, &mut latchd).await; // with the time-outs that it comes with
    let mut asked = 0;
    let token = loop {
        asked += 1;
        match latchd.try_ask(&lock).await {
            Ok(Some(token)) => break token,
            Ok(None) if patience == "0" => tokio::time::sleep(Duration::from_millis(200)).await,
            Ok(None) => (),
            Err(error) if error.code().is_some() => panic!("{error}"),
            Err(_) => again(client, kind, &mut latchd).await,
        }
    };
    println!("token {token} {asked}");
    loop {
        match latchd.try_ask(&["UNLOCK", name, "ID", request]).await {
            Ok(left) => return println!("left {}", left.unwrap()),
            Err(_) => again(client, kind, &mut latchd).await,
        }
    }
}

async fn again(client: &Client, kind: &str, latchd: &mut Latchd) {
    tokio::time::sleep(Duration::from_millis(50)).await;
    if let Ok(other) = Latchd::open(client, kind).await {
        *latchd = other;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (kind, name, client) = (&args[0], &args[7], client(&args[1..]));
    if args[8] == "wait" {
        return wait(&client, kind, name, &args[9], &args[10]).await;
    }
    let mut latchd = Latchd::open_patiently(&client, kind).await.unwrap();
    for scenario in &args[8..] {
        match scenario.as_str() {
            "version" => version(),
            "hello" => hello(&mut latchd, name).await,
            "busy" => busy(&mut latchd, name).await,
            "reenter" => reenter(&mut latchd, name).await,
            "lose" => lose(&mut latchd, name).await,
            "share" => share(&mut latchd, name).await,
            "pipeline" => pipeline(&mut latchd, name, false).await,
            "multi" => pipeline(&mut latchd, name, true).await,
            "crowd" => crowd(&mut latchd, name).await,
            "events" => events(&client, &mut latchd, name).await,
            other => panic!("what is {other}?"),
        }
        println!("ok {scenario}");
    }
}
