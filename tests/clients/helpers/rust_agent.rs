//! rust_agent TIMEOUT_S PATIENCE_S URL...: takes locks as it is told, with the helper for Rust.
//! README.md says how it is told.
use latchd::{Client, Error, ErrorKind, Guard, Lock, Result, Stop};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Clone)]
struct Agent {
    client: Client,
    guards: Arc<Mutex<HashMap<String, Guard>>>,
    stops: Arc<Mutex<HashMap<String, Stop>>>,
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(number(text))
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn say_error(key: &str, error: &Error) {
    match error.kind() {
        ErrorKind::Stopped => println!("{} gave-up", key),
        ErrorKind::Timeout => println!("{} null", key),
        _ => {
            eprintln!("{} {}", key, error); // for the reader of the log
            println!("{} error {}", key, error.code());
        }
    }
}

fn with_option(lock: Lock, option: &str) -> Lock {
    let (word, value) = option.split_once('=').unwrap_or((option, ""));
    match word {
        "fair" => lock.fair(),
        "read" => lock.read(),
        "write" => lock.write(),
        "permits" => lock.permits(number(value) as u32, 3),
        "priority" => lock.priority(number(value) as u8),
        "queue" => lock.queue(number(value) as u32),
        "owner" => lock.owner(value),
        "data" => lock.data(value),
        "lease" => lock.lease(millis(value)),
        "grace" => lock.grace(millis(value)),
        "keep" => lock.keep(millis(value)),
        "heartbeat" => lock.heartbeat(millis(value)),
        "at_least" => lock.at_least(millis(value)),
        _ => panic!("{}", option),
    }
}

impl Agent {
    fn stop(&self, key: &str) -> Stop {
        self.stops.lock().unwrap().entry(key.into()).or_default().clone()
    }

    fn lock(&self, key: &str, stop: &Stop, words: &[String]) -> Result<()> {
        let (lost, uncertain) = (key.to_string(), key.to_string());
        let mut lock = self.client.lock_all(words[0].split(',')).stop(stop);
        lock = lock.on_lost(move || println!("{} lost", lost)).on_uncertain(move || println!("{} uncertain", uncertain));
        if words[1] != "-" {
            lock = lock.wait(millis(&words[1]));
        }
        let guard = words[2..].iter().fold(lock, |lock, option| with_option(lock, option)).acquire()?;
        let tokens: Vec<_> = guard.tokens().iter().map(i64::to_string).collect();
        self.guards.lock().unwrap().insert(key.into(), guard);
        println!("{} token {}", key, tokens.join(" "));
        Ok(())
    }

    fn unlock(&self, key: &str) -> Result<()> {
        let guard = self.guards.lock().unwrap().remove(key).expect("it is held");
        guard.release()?;
        println!("{} unlocked", key);
        Ok(())
    }

    fn locked(&self, key: &str, names: &str) -> Result<()> {
        let held = names.split(',').map(|name| self.client.is_locked(name)).collect::<Result<Vec<_>>>()?;
        println!("{} answer {}", key, held.contains(&true) as u8);
        Ok(())
    }

    fn follow(&self, key: &str, stop: &Stop, name: &str) -> Result<()> {
        for leader in self.client.follow(name).stop(stop) {
            let leader = leader?;
            println!("{} leader {} {}", key, leader.token, if leader.data.is_empty() { "-".into() } else { leader.text() });
        }
        println!("{} gave-up", key);
        Ok(())
    }

    fn latch(&self, key: &str, words: &[String]) -> Result<()> {
        let latch = self.client.latch(&words[1]);
        let answer = match words[0].as_str() {
            "set" => latch.set(number(&words[2]), words.get(3).map(|id| id.as_str()))? as i64,
            "count" => latch.count(words.get(2).map(|id| id.as_str()))?,
            "await" => latch.wait(millis(&words[2]))? as i64,
            _ => latch.delete()? as i64,
        };
        println!("{} answer {}", key, answer);
        Ok(())
    }

    fn crowd(&self, key: &str, words: &[String]) -> Result<()> {
        let (inside, overlaps) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..number(&words[1]) {
                scope.spawn(|| {
                    for _ in 0..number(&words[2]) {
                        let _guard = self.client.lock(&words[0]).acquire().expect("a lock");
                        overlaps.fetch_add(inside.fetch_add(1, SeqCst), SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        println!("{} overlaps {}", key, overlaps.load(SeqCst));
        Ok(())
    }

    fn child(&self, key: &str) -> Result<()> {
        let child = std::process::Command::new("sleep").arg("infinity").spawn().expect("sleep");
        println!("{} pid {}", key, child.id());
        Ok(())
    }

    fn obey(&self, words: Vec<String>) {
        let (what, key) = (words[0].clone(), words[1].clone());
        let stop = self.stop(&key);
        if what == "give-up" || what == "leave" {
            return stop.stop();
        }
        let agent = self.clone();
        thread::spawn(move || {
            let words = &words[2..];
            let done = match what.as_str() {
                "lock" => agent.lock(&key, &stop, words),
                "unlock" => agent.unlock(&key),
                "locked" => agent.locked(&key, &words[0]),
                "follow" => agent.follow(&key, &stop, &words[0]),
                "latch" => agent.latch(&key, words),
                "crowd" => agent.crowd(&key, words),
                "child" => agent.child(&key),
                _ => panic!("{}", what),
            };
            if let Err(error) = done {
                say_error(&key, &error);
            }
        });
    }
}

fn main() -> Result<()> {
    let args: Vec<_> = std::env::args().collect();
    let (timeout, patience) = (1000 * number(&args[1]), 1000 * number(&args[2]));
    let builder = Client::builder().timeout(Duration::from_millis(timeout)).patience(Duration::from_millis(patience));
    let builder = args[3..].iter().fold(builder, |builder, url| builder.address(url)).log(|line| eprintln!("{}", line));
    let agent = Agent { client: builder.build()?, guards: Default::default(), stops: Default::default() };
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        agent.obey(line.split_whitespace().map(String::from).collect());
    }
    Ok(())
}
