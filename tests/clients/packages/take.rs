//! Takes a lock with the installed package: take URL NAME. Prints the token; gives it back at the end of its input.
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let client = latchd::Client::new(&args[1])?;
    let guard = client.lock(&args[2]).wait(Duration::from_secs(10)).acquire()?;
    println!("{}", guard.token());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    guard.release()?;
    Ok(())
}
