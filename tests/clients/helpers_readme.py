"""The README's lines for each helper, in the smallest program around them, against a latchd."""
import pathlib
import re
import subprocess

import kits

TREE = pathlib.Path(__file__).resolve().parents[2]
DONE = re.compile(r"worked with \d+")
RUN_S = 60

NODE = """import { Latchd } from 'latchd';
async function work(token, signal) { console.log(`worked with ${token}`, signal.aborted); }
{ %s }
process.exit();
"""
GO = """package main

import (
	"context"
	"fmt"
	"time"

	"latchd.example/latchd"
)

func work(ctx context.Context, token int64) { fmt.Println("worked with", token, ctx.Err()) }

func use(ctx context.Context, client *latchd.Client) error {
%s
	return err
}

func main() {
	client, err := latchd.New([]string{"redis://localhost:5625"})
	if err == nil {
		err = use(context.Background(), client)
	}
	if err != nil {
		panic(err)
	}
}
"""
RUBY = """require 'latchd'
def work(lock) = puts("worked with #{lock.token} #{lock.lost?}")
%s
"""
RUST = """use std::time::Duration;
fn work(guard: &latchd::Guard) { println!("worked with {} {}", guard.token(), guard.is_lost()); }
fn main() -> latchd::Result<()> {
%s
    Ok(())
}
"""
JAVA = """import java.util.concurrent.TimeUnit;
import latchd.Latchd;

public class Fragment {
    static void work(long token) { System.out.println("worked with " + token); }

    public static void main(String[] args) throws Exception {
        %s
        System.exit(0);
    }
}
"""

PHP = """<?php
require '%s';
use Latchd\\{Latchd, Lock};
function work(Lock $lock) { echo "worked with $lock->token\\n"; }
"""


def fragment(language):
    found = re.findall(f"^```{language}\n(.*?)^```$", (TREE / "README.md").read_text(),
                       re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"README has {len(found)} fragments in {language}"
    return found[0]


def program(template, language, daemon):
    """With the port of that latchd."""
    return (template % fragment(language)).replace("localhost:5625", f"127.0.0.1:{daemon.port}")


def node(kit, daemon):
    path = kit / "fragment.mjs"
    path.write_text(program(NODE, "js", daemon))
    return ["node", path]


def golang(kit, daemon):
    """In the helper's module, which helpers_run.py has copied."""
    module = kit.parent / "helpers-go"
    (module / "fragment").mkdir(exist_ok=True)
    (module / "fragment/main.go").write_text(program(GO, "go", daemon))
    kits.compile_(["go", "build", "-o", module / "fragment/fragment", "./fragment"], module)
    return [module / "fragment/fragment"]


def java(kit, daemon):
    folder = kit.parent / "helpers-java"
    (folder / "Fragment.java").write_text(program(JAVA, "java", daemon))
    path = f"{folder}:{(kit / 'classpath').read_text().strip()}"
    kits.compile_(["javac", "-nowarn", "-d", folder, "-cp", path, folder / "Fragment.java"],
                  folder)
    return ["java", "-cp", path, "Fragment"]


def ruby(kit, daemon):
    (kit / "fragment.rb").write_text(program(RUBY, "ruby", daemon))
    return ["ruby", "-I", kits.CLIENTS / "ruby/lib", kit / "fragment.rb"]


def rust(kit, daemon):
    (kit / "fragment.rs").write_text(program(RUST, "rust", daemon))
    return [kits.rust_program(kit, kit / "fragment.rs", kit / "fragment")]


def php(kit, daemon):
    path = kit / "fragment.php"
    begin = PHP % (TREE / "clients/php/src/autoload.php")
    path.write_text(program(begin + "%s", "php", daemon))
    return ["php", path]


# Language, kit, how its program is made.
FRAGMENTS = [("Node", "node-6", node), ("Go", "go", golang), ("Java", "java", java),
             ("PHP", "phpredis", php), ("Ruby", "ruby", ruby), ("Rust", "rust-helper", rust)]


def works(make, kit, daemon):
    done = subprocess.run([str(w) for w in make(kit, daemon)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=RUN_S,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and DONE.search(done.stdout), done.stdout
    assert not daemon.ask("LOCKS")[1], "it is still locked"


def check_all(report, made, daemon):
    """made: the folders of the kits that there are."""
    for language, kit, make in FRAGMENTS:
        name = f"README's lines for {language} work"
        if kit not in made:
            report.line(True, f"{name} # SKIP there is no {kit}")
        else:
            report.run(name, works, make, made[kit], daemon)
