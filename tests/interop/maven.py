"""Builds RedissonPeer against one version of Redisson, in a directory of the build tree.

Maven is used as the machine has it configured. What cannot be had, a JDK, Maven or the
dependency, is `Missing`: a reason to skip; source that does not compile is an error.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ["pom.xml", *(f"java/{name}.java" for name in (
    "Client", "Contender", "Crowd", "Guarded", "Latches", "Names", "Permits", "RedissonPeer"))]
JAVA_MIN = 17
MAVEN_S = 240
QUIET = ["-q", "-B", "-ntp"]


class Missing(Exception):
    """Something that the machine would have to have."""


def output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=30)
    except OSError as error:
        raise Missing(f"no {command[0]}") from error
    return done.stdout + done.stderr


def check_tools():
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise Missing(f"no {tool}: needs a JDK {JAVA_MIN} and Maven")
    version = re.search(r"javac (\d+)", output(["javac", "-version"]))
    if version is None or int(version.group(1)) < JAVA_MIN:
        raise Missing(f"the JDK is older than {JAVA_MIN}")


def maven(folder, version, goals):
    """What Maven said, or None if all went well."""
    command = ["mvn", *QUIET, "-f", folder / "pom.xml", f"-Dredisson.version={version}",
               *goals]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=MAVEN_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"nothing within {MAVEN_S} s"
    (folder / "maven.log").write_text(done.stdout + done.stderr)
    return None if done.returncode == 0 else done.stdout + done.stderr


def fingerprint(version):
    parts = [version.encode(), *((HERE / s).read_bytes() for s in SOURCES)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def built(folder, stamp):
    """The class path of an earlier build of the same, if it is still all there."""
    path = folder / "classpath"
    if not path.is_file() or not stamp.is_file():
        return None
    jars = path.read_text().strip()
    return jars if all(pathlib.Path(j).exists() for j in jars.split(":")) else None


def build(folder, version):
    """The class path to run RedissonPeer with."""
    check_tools()
    stamp = folder / f"stamp-{fingerprint(version)}"
    jars = built(folder, stamp)
    if jars is None:
        shutil.rmtree(folder, ignore_errors=True)
        for source in SOURCES:
            (folder / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HERE / source, folder / source)
        said = maven(folder, version, ["dependency:build-classpath",
                                       f"-Dmdep.outputFile={folder / 'classpath'}",
                                       "compile"])
        if said is not None:
            if "COMPILATION ERROR" in said:
                raise RuntimeError(said)
            raise Missing(f"Maven cannot get Redisson {version}: {folder / 'maven.log'}")
        jars = (folder / "classpath").read_text().strip()
        stamp.touch()
    return f"{folder / 'target/classes'}:{jars}"
