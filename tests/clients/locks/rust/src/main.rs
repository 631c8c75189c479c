//! Takes locks with rslock as it is told (../../README.md): rslock HOST PORT.
use rslock::{Lock, LockError, LockManager};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::io::BufRead;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio::task::{spawn_local, LocalSet};
use tokio::time::sleep;

const DELAY: Duration = Duration::from_millis(200); // at most, as it has it
const LEASE: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(60);

type Answer = Result<String, LockError>;

fn millis(word: &str) -> Duration {
    Duration::from_millis(word.parse().unwrap())
}

fn micros(word: &str) -> Duration {
    Duration::from_micros(word.parse().unwrap())
}

fn manager(url: &str) -> LockManager {
    LockManager::new(vec![url])
}

/// None: refused. A wait of 0 is one try.
async fn acquire(
    manager: &LockManager,
    name: &str,
    lease: Duration,
    wait: Duration,
) -> Result<Option<Lock>, LockError> {
    let mut manager = manager.clone();
    manager.set_retry(1 + (2 * wait.as_millis() / DELAY.as_millis()) as u32, DELAY);
    match manager.lock(name.as_bytes(), lease).await {
        Err(LockError::Unavailable) => Ok(None),
        other => other.map(Some),
    }
}

/// Who had the lock last, and how long everybody waited.
struct Contention {
    end: Instant,
    hold: Duration,
    pause: Duration,
    guard: String,
    last: Option<usize>,
    handovers: usize,
    overlaps: usize,
    waits: Vec<i64>,
}

impl Contention {
    fn enter(&mut self, me: usize, began: Instant) -> bool {
        let waited = began.elapsed().as_micros() as i64;
        let in_time = Instant::now() < self.end;
        self.waits.push(if in_time { waited } else { -waited });
        if fs::File::create_new(&self.guard).is_err() {
            self.overlaps += 1;
        }
        if in_time && self.last.is_some_and(|last| last != me) {
            self.handovers += 1;
        }
        self.last = Some(me);
        in_time
    }

    fn leave(&mut self) {
        if fs::remove_file(&self.guard).is_err() {
            self.overlaps += 1;
        }
    }
}

/// Anything from 0 to 2 x `mean`.
fn about(mean: Duration) -> Duration {
    let noise = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() % 1000;
    mean * 2 * noise / 1000
}

async fn take_turns(
    url: String,
    contention: Rc<RefCell<Contention>>,
    me: usize,
    name: String,
) -> Result<(), LockError> {
    let manager = manager(&url);
    let (end, hold, pause) = {
        let c = contention.borrow();
        (c.end, c.hold, c.pause)
    };
    while Instant::now() < end {
        let began = Instant::now();
        let Some(lock) = acquire(&manager, &name, LEASE, WAIT).await? else {
            return Err(LockError::Unavailable);
        };
        if contention.borrow_mut().enter(me, began) {
            sleep(hold).await;
        }
        contention.borrow_mut().leave();
        lock.release().await;
        sleep(about(pause)).await;
    }
    Ok(())
}

/// NAME CLIENTS SECONDS HOLD_US PAUSE_US GUARD
async fn contend(url: &str, words: &[String]) -> Answer {
    let contention = Rc::new(RefCell::new(Contention {
        end: Instant::now() + Duration::from_secs_f64(words[2].parse().unwrap()),
        hold: micros(&words[3]),
        pause: micros(&words[4]),
        guard: words[5].clone(),
        last: None,
        handovers: 0,
        overlaps: 0,
        waits: vec![],
    }));
    let turns: Vec<_> = (0..words[1].parse().unwrap())
        .map(|me| {
            spawn_local(take_turns(url.to_string(), contention.clone(), me, words[0].clone()))
        })
        .collect();
    for turn in turns {
        turn.await.unwrap()?;
    }
    let c = contention.borrow();
    let waits: Vec<String> = c.waits.iter().map(i64::to_string).collect();
    Ok(format!("contended {} {} {}", c.handovers, c.overlaps, waits.join(" ")))
}

struct Agent {
    url: String,
    manager: LockManager,
    locks: RefCell<HashMap<String, Lock>>,
}

impl Agent {
    async fn obey(&self, words: &[String]) -> Answer {
        let key = &words[1];
        let said = match words[0].as_str() {
            "contend" => return contend(&self.url, &words[2..]).await,
            "acquire" => {
                let found =
                    acquire(&self.manager, &words[2], millis(&words[3]), millis(&words[4])).await?;
                let refused = found.is_none();
                self.locks.borrow_mut().extend(found.map(|lock| (key.clone(), lock)));
                if refused { "refused" } else { "acquired" }
            }
            "extend" => {
                let lock = self.locks.borrow_mut().remove(key).unwrap();
                match self.manager.extend(&lock, millis(&words[2])).await {
                    Ok(longer) => {
                        self.locks.borrow_mut().insert(key.clone(), longer);
                        "extended"
                    }
                    Err(_) => {
                        self.locks.borrow_mut().insert(key.clone(), lock);
                        "refused"
                    }
                }
            }
            _ => {
                let lock = self.locks.borrow_mut().remove(key).unwrap();
                lock.release().await;
                "released"
            }
        };
        Ok(said.to_string())
    }
}

fn say(key: &str, what: impl Display) {
    println!("{key} {what}");
}

async fn run(url: String) {
    let (line_in, mut line_out) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            line_in.send(line.unwrap()).unwrap();
        }
        std::process::exit(0);
    });
    let manager = manager(&url);
    let agent = Rc::new(Agent { url, manager, locks: RefCell::default() });
    while let Some(line) = line_out.recv().await {
        let words: Vec<String> = line.split(' ').map(str::to_string).collect();
        let agent = agent.clone();
        spawn_local(async move {
            match agent.obey(&words).await {
                Ok(said) => say(&words[1], said),
                Err(error) => say(&words[1], format!("error {error}")),
            }
        });
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, run(format!("redis://{}:{}/", args[1], args[2])));
}
