#!/usr/bin/env python3
"""Others that give locks, each with its own recipe, under the load of the table's rows.

rivals.py FOLDER SECONDS REDIS_PORT   FOLDER: what was built is kept there

A line for each row: workload, way, pairs/s, p50, p99, p99.9, max (us), and of processor
time for a pair the client's and the server's, in us, with tabs between them. What the
machine does not have is a line that begins with "#", and says what is missing.
"""
import contextlib
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "interop"))
import maven  # noqa: E402

REDISSON = "4.7.0"
ROWS = (("own names", "own", 64), ("one name, 100", "one", 101))
PERMITS = (("semaphore of 10, 100", "permits", 110),)
READY_S = 30
RUN_S = 120
WARM_S = 2  # as Loop.java has it
ZOOKEEPER_JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "netty-all",
                  "netty", "metrics-core", "snappy-java", "commons-io")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def await_port(port, process):
    end = time.monotonic() + READY_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise maven.Missing("its server does not start")


def processor_us(pid):
    """Of all threads, those that ended included."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def children_us():
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6


@contextlib.contextmanager
def server(command, port):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        await_port(port, process)
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def etcd():
    if shutil.which("etcd") is None:
        raise maven.Missing("no etcd: Debian's etcd-server has it")
    port, peer = free_port(), free_port()
    url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    with tempfile.TemporaryDirectory() as data, server(
            ["etcd", "--data-dir", data, "--unsafe-no-fsync",
             "--listen-client-urls", url, "--advertise-client-urls", url,
             "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
             "--initial-cluster", f"default={peer_url}"], port) as pid:
        yield url, pid


def zookeeper_jars():
    folder = pathlib.Path("/usr/share/java")
    if not (folder / "zookeeper.jar").exists():
        raise maven.Missing("no ZooKeeper: Debian's libzookeeper-java has it")
    return ":".join(str(folder / f"{jar}.jar") for jar in ZOOKEEPER_JARS)


@contextlib.contextmanager
def zookeeper():
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        conf = pathlib.Path(data) / "zoo.cfg"
        conf.write_text(f"dataDir={data}\nclientPort={port}\nmaxClientCnxns=0\n"
                        "admin.enableServer=false\ntickTime=2000\n")
        with server(["java", "-Dzookeeper.forceSync=no", "-cp", zookeeper_jars(),
                     "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(conf)],
                    port) as pid:
            yield f"127.0.0.1:{port}", pid


@contextlib.contextmanager
def redis(port):
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(b"INFO server\r\n")
        said = s.recv(65536).decode()
    pid = next(line for line in said.split("\r\n") if line.startswith("process_id:"))
    yield f"redis://127.0.0.1:{port}", int(pid.split(":")[1])


def run(way, jars, source, target, seconds, classes):
    address, pid = target
    subprocess.run(["javac", "-cp", jars, "-d", classes, HERE / "Loop.java",
                    HERE / f"{source}.java"], check=True)
    for workload, names, peers in ROWS + (PERMITS if source == "RedissonRival" else ()):
        before, mine = processor_us(pid), children_us()
        done = subprocess.run(["java", "-cp", f"{classes}:{jars}", source, address, names,
                               str(peers), str(seconds)], capture_output=True, text=True,
                              check=False, timeout=RUN_S, stdin=subprocess.DEVNULL)
        said = done.stdout.split()
        if len(said) != 6:
            why = (done.stderr.strip() or done.stdout).split("\n")[0]
            print(f"# {way}, {workload}: {why}", flush=True)
            continue
        # The time to get warm is not counted in pairs: as if it were as fast.
        pairs = max(float(said[0]) * (seconds + WARM_S), 1)
        print(workload, way, *said[:5], f"{(children_us() - mine) / pairs:.2f}",
              f"{(processor_us(pid) - before) / pairs:.2f}", sep="\t", flush=True)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    seconds, port = float(sys.argv[2]), int(sys.argv[3])
    for way, source, target, jars in (
            ("Redisson", "RedissonRival", lambda: redis(port),
             lambda: maven.build(folder / "redisson", REDISSON)),
            ("etcd", "EtcdRival", etcd, lambda: ""),
            ("ZooKeeper", "ZooKeeperRival", zookeeper, zookeeper_jars)):
        try:
            maven.check_tools()
            found = jars()
            with tempfile.TemporaryDirectory() as classes, target() as at:
                run(way, found, source, at, seconds, classes)
        except maven.Missing as error:
            print(f"# {way} is left out: {error}", flush=True)


if __name__ == "__main__":
    main()
