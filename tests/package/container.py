#!/usr/bin/env python3
"""Builds both images of conf/container/Containerfile, and runs them as a container engine does: as
their user, without capabilities, with a read-only root file system and a volume, and with
processes, mounts and a network of their own.

    tests/package/container.py [DIRECTORY-FOR-THE-LOGS]

Needs root, and apt as this machine has it set up; installs buildah and debootstrap if they are
missing. The base image is a Debian 12 made by debootstrap, without the documents that a slim
image lacks. Takes about three minutes."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))

from children import until  # noqa: E402 pylint: disable=wrong-import-position

SUITE = "bookworm"
CLONE_NEWNET = 0x40000000
BASE = "localhost/debian:12-slim"
STATE = "/var/lib/latchd"
READY_S = 60
WELL_S = 20
STOP_S = 10   # then an engine sends SIGKILL, unless it is told otherwise
MOST_MB = {"plain": 16, "latchd": 32}   # beyond the base image
SLIM = ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt",
        "var/lib/apt/lists", "var/log/apt"]
IN_CONTAINER = """
root=$1 volume=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
[ -z "$volume" ] || mount --bind "$volume" "$root/var/lib/latchd"
exec chroot "$root" setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all env -i "$@"
"""


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, text=True, cwd=ROOT, **more)


def output(*words, **more):
    return run(*words, stdout=subprocess.PIPE, **more).stdout.strip()


def expect(truth, message):
    if not truth:
        sys.exit(f"FAILED: {message}")


# --- building ------------------------------------------------------------

def install_tools():
    missing = [tool for tool in ("buildah", "debootstrap") if not shutil.which(tool)]
    if missing:
        run("apt-get", "update", "-q", stdout=subprocess.DEVNULL)
        run("apt-get", "install", "-yq", "--no-install-recommends", *missing, stdout=subprocess.DEVNULL)


def targets(form):
    """This machine's sources of the suite's packages."""
    lines = output("apt-get", "indextargets", "--format", f"$(CODENAME)|{form}", "Created-By: Packages")
    return sorted({line.split("|")[1] for line in lines.splitlines() if line.startswith(SUITE)})


def megabytes(root):
    return sum(os.lstat(os.path.join(folder, file)).st_size
               for folder, _, files in os.walk(root) for file in files) / 1e6


def make_base(scratch):
    """Returns its size."""
    root = scratch / "base"
    with open(scratch / "debootstrap.log", "w", encoding="utf-8") as log:
        run("debootstrap", "--variant=minbase", SUITE, root,
            output("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                   f"Codename: {SUITE}", "Component: main").splitlines()[0], stdout=log)
    for folder in SLIM:
        for path in (root / folder).glob("*"):
            (shutil.rmtree if path.is_dir() and not path.is_symlink() else os.unlink)(path)
    (root / "etc/apt/sources.list").write_text("\n".join(targets("deb $(REPO_URI) $(RELEASE) $(COMPONENT)")) + "\n")
    (root / "etc/apt/apt.conf.d/90host").write_text(
        output("apt-config", "dump", "--format", '%F "%v";%n', "Acquire::http", "Acquire::https") + "\n")
    with contextlib.suppress(FileNotFoundError):
        shutil.copytree("/etc/apt/auth.conf.d", root / "etc/apt/auth.conf.d", dirs_exist_ok=True)
    size = megabytes(root)
    container = output("buildah", "from", "scratch")
    run("cp", "-a", f"{root}/.", output("buildah", "mount", container))
    run("buildah", "commit", "-q", "--rm", container, BASE, stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    return size


class Image:
    def __init__(self, name, scratch):
        self.name, self.scratch = name, scratch
        with open(scratch / f"build-{name}.log", "w", encoding="utf-8") as log:
            run("buildah", "build", "--format", "docker", "--isolation", "chroot", "--network", "host",
                "--layers", "--pull=never", "--target", name, "-t", f"localhost/{name}",
                "-f", "conf/container/Containerfile", ".", stdout=log, stderr=log)
        self.config = json.loads(output("buildah", "inspect", "--type", "image",
                                        f"localhost/{name}"))["Docker"]["config"]
        self.root = output("buildah", "mount", output("buildah", "from", "--pull=never", f"localhost/{name}"))

    def command(self, volume, environment, words):
        """The words that run a program in it; without one, its own."""
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-euc", IN_CONTAINER,
                "bash", self.root, volume, self.config["User"], *self.config["Env"], *environment,
                *(words or self.config["Entrypoint"])]

    def ask(self, *words):
        """A program beside a container, in the same network."""
        return subprocess.run(self.command("", [], words), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=60)


# --- running -------------------------------------------------------------

class Container:
    def __init__(self, image, volume="", environment=(), words=(), ready="server: ready|\"message\":\"ready\""):
        self.image = image
        self.log_path = image.scratch / f"{image.name}.log"
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.engine = subprocess.Popen(image.command(str(volume), environment, words),
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: re.search(ready, self.log()) or self.engine.poll() is not None, f"{image.name} is ready", READY_S)
        expect(self.engine.poll() is None, f"{image.name} does not start: {self.log()}")
        self.first = int(output("pgrep", "-P", self.engine.pid))

    def log(self):
        return self.log_path.read_text(encoding="utf-8")

    def is_well(self):
        _, *words = self.image.config["Healthcheck"]["Test"]
        return self.image.ask("env", *self.image.config["Env"], *words).returncode == 0

    def stop(self):
        """Returns how long it took."""
        began = time.monotonic()
        os.kill(self.first, signal.SIGTERM)
        try:
            code = self.engine.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.engine.kill()
            sys.exit(f"FAILED: it does not end in {STOP_S} s: {self.log()}")
        expect(code == 0, f"it ends with {code}: {self.log()}")
        return time.monotonic() - began


def what_the_images_are(images):
    for image in images.values():
        config = image.config
        expect(config["User"] == "5625:5625", config)
        expect(set(config["ExposedPorts"]) == {"5625/tcp", "8080/tcp"}, config)
        expect("/usr/sbin/latchd" in config["Entrypoint"], config)
        for tool in ("gcc", "meson", "python3"):
            expect(image.ask("sh", "-c", f"command -v {tool}").returncode != 0, f"{tool} is in there")
        expect((image.ask("sh", "-c", "command -v redis-server").returncode == 0) == (image.name == "latchd"),
               image.name)
    expect(STATE in images["latchd"].config["Volumes"], "no volume")
    expect(not images["plain"].config.get("Volumes"), "a volume")


def wrong_variables(image):
    for variable, message in (("LATCHD_PORT=tcp://10.0.0.1:5625", "LATCHD_PORT: must be a number"),
                              ("LATCHD_REDSI=x", "LATCHD_REDSI: there is no such key, did you mean LATCHD_REDIS?")):
        got = subprocess.run(image.command("", [variable], []), capture_output=True, text=True, check=False,
                             timeout=60)
        expect(got.returncode == 2 and message in got.stderr, got)


def confinement(container):
    status = pathlib.Path(f"/proc/{container.first}/status").read_text(encoding="utf-8")
    expect(re.search(r"^Uid:\s+5625\s+5625", status, re.M), status)
    expect(re.search(r"^CapEff:\s+0+$", status, re.M) and re.search(r"^NoNewPrivs:\s+1$", status, re.M), status)
    got = container.image.ask("sh", "-c", "touch /etc/x /usr/x /x")
    expect(got.stderr.count("Read-only file system") == 3, got)


def embedded(image, volume):
    """The default: its own Redis, whose data outlives the container."""
    password = "LATCHD_REQUIREPASS=Very-secret-1"
    cli = ("redis-cli", "-p", "5625", "--no-auth-warning", "-a", "Very-secret-1")
    container = Container(image, volume, [password])
    until(container.is_well, "it is well", WELL_S)
    confinement(container)
    expect("NOAUTH" in image.ask("redis-cli", "-p", "5625", "LOCK", "job").stdout, "no password is asked for")
    token = image.ask(*cli, "LOCK", "job", "LEASE", "60000").stdout.strip()
    expect(re.fullmatch(r"\d{16}", token), token)
    got = image.ask("env", "LATCHCTL_AUTH=Very-secret-1", "latchctl", "ls")
    expect(got.stdout == "job\n", got)
    children = output("pgrep", "-P", container.first).split()
    expect(len(children) == 1, children)
    expect(b"Very-secret" not in pathlib.Path(f"/proc/{children[0]}/environ").read_bytes(), "Redis has the password")
    took = container.stop()
    container = Container(image, volume, [password])
    expect(image.ask(*cli, "LOCK", "job", "WAIT", "0").stdout.strip() == "", "the lock is gone")
    expect(image.ask(*cli, "UNLOCK", "job", "TOKEN", token).stdout.strip() == "0", "the lock is gone")
    container.stop()
    expect({p.name for p in pathlib.Path(volume).iterdir()} > {"appendonlydir", "boot"}, "no state")
    return took


def with_a_redis(images):
    """Without one of its own; it gets ill and well with that."""
    server = ["/usr/bin/redis-server", "--save", "", "--bind", "127.0.0.1"]
    redis = Container(images["latchd"], "", [], server, "Ready to accept connections")
    container = Container(images["plain"], "", ["LATCHD_REDIS=redis://127.0.0.1:6379", "LATCHD_LOG_FORMAT=json"])
    until(container.is_well, "it is well", WELL_S)
    confinement(container)
    expect(all(line.startswith("{") for line in container.log().splitlines()), container.log())
    expect(re.fullmatch(r"\d{16}\n", images["latchd"].ask("redis-cli", "-p", "5625", "LOCK", "job").stdout), "no lock")
    redis.stop()
    until(lambda: not container.is_well(), "it is ill without Redis", WELL_S)
    redis = Container(images["latchd"], "", [], server, "Ready to accept connections")
    until(container.is_well, "it gets well again", WELL_S)
    took = container.stop()
    redis.stop()
    return took


def leave_network():
    """This process and its children get a network of their own."""
    expect(ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno()))
    run("ip", "link", "set", "lo", "up")


def report(images, base, took):
    for name, image in images.items():
        more = megabytes(image.root) - base
        print(f"{name}: {more:.1f} MB more than the base image, which has {base:.0f} MB here")
        expect(more < MOST_MB[name], f"more than {MOST_MB[name]} MB")
    print("SIGTERM ended a container in " + ", ".join(f"{seconds:.1f} s" for seconds in took))


def main():
    install_tools()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="latchd-container-"))
    (scratch / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{scratch}/images"\nrunroot = "{scratch}/run"\n')
    os.environ["CONTAINERS_STORAGE_CONF"] = f"{scratch}/storage.conf"
    try:
        base = make_base(scratch)
        images = {name: Image(name, scratch) for name in ("plain", "latchd")}
        volume = scratch / "volume"
        volume.mkdir(mode=0o700)
        os.chown(volume, 5625, 5625)
        leave_network()
        what_the_images_are(images)
        wrong_variables(images["plain"])
        took = [embedded(images["latchd"], volume), with_a_redis(images)]
        report(images, base, took)
    finally:
        if len(sys.argv) > 1:
            pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
            for log in scratch.glob("*.log"):
                shutil.copy(log, sys.argv[1])
        for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
            subprocess.run(["buildah", *words], stdout=subprocess.DEVNULL, check=False)
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
