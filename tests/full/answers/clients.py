"""Programs round the code of choose/code: each is a process that runs the code. Its work takes 50 ms, and until a file is
there; a log has its begin and end. Until "/fail": the work fails, and the process keeps its connection."""
import glob
import os
import subprocess

PYTHON = """
import os, signal, sys, time
import redis
from kazoo.client import KazooClient
url, name, marker, log, until = sys.argv[1:6]
urls, hosts, identifier = url.split(","), url, str(os.getpid())
def note(word):
    with open(log, "a") as file:
        file.write(f"{time.monotonic():.6f} {os.getpid()} {word}\\n")
def stop():
    os._exit(0)
class JobFailed(Exception):
    pass
def work():
    note("begin")
    if until == "/fail":
        raise JobFailed
    time.sleep(0.05)
    while not os.path.exists(until):
        time.sleep(0.02)
    note("end")
"""

PYTHON_END = """
except JobFailed:
    note("failed")
    signal.pause()
"""

# A statement a line; comments say what its rows mean, and which one runs finally. "kept": the connection is not as before.
SQL = PYTHON.replace("import redis\nfrom kazoo.client import KazooClient\n", "import psycopg2, psycopg2.errors\n") + """
connection = psycopg2.connect(url)
connection.autocommit = True
cursor = connection.cursor()
def run(lines):
    for line in lines:
        cursor.execute(line)
        rows = cursor.fetchall() if cursor.description else []
        if "-- false: " in line and not rows[0][0]:
            sys.exit(0)
        if "-- a row: " in line and rows:
            return False
    return True
lines = TEXT.replace("NAME", name).splitlines()
at = next(i for i, line in enumerate(lines) if line.startswith("-- work"))
last = [line for line in lines if "-- finally: " in line]
def take():
    go_on = run(lines[:at])
    try:
        if go_on:
            work()
            run([line for line in lines[at + 1:] if line not in last])
    finally:
        run(last)
try:
    try:
        take()
    except psycopg2.errors.LockNotAvailable:
        cursor.execute("rollback")
        raise
    finally:
        cursor.execute("select current_setting('lock_timeout') <> '0' or exists (select from pg_locks "
                       "where locktype = 'advisory' and pid = pg_backend_pid())")
        if cursor.fetchone()[0]:
            note("kept")
"""

NODE = """
import { appendFileSync, existsSync } from "node:fs";
import Redis from "ioredis";
import * as imported from "redlock";
import { Etcd3 } from "etcd3";
const Redlock = imported.default.default ?? imported.default;
const [url, name, marker, log, until] = process.argv.slice(2);
const urls = url.split(","), hosts = urls, id = String(process.pid);
const note = (word) => appendFileSync(log, `${Number(process.hrtime.bigint()) / 1e9} ${process.pid} ${word}\\n`);
const stop = () => process.exit(0);
async function work() {
  note("begin");
  if (until === "/fail") throw new Error("the job fails");
  do {
    await new Promise((wake) => setTimeout(wake, 50));
  } while (!existsSync(until));
  note("end");
}
try {
CODE
} catch (error) {
  console.error(error);
  if (error.message !== "the job fails") process.exit(error.name === "ExecutionError" && IS_ONCE ? 0 : 1);
  note("failed");
  setInterval(() => {}, 1000);
  await new Promise(() => {});
}
if (!IS_ELECTION) process.exit(0);
"""

GO = """package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"golang.org/x/sys/unix"
)

var url, name, marker, log, until = os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
var id = strconv.Itoa(os.Getpid())

func note(word string) {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	file, _ := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	fmt.Fprintf(file, "%d.%09d %s %s\\n", now.Sec, now.Nsec, id, word)
	file.Close()
}

// Its arguments are a fencing number, and a channel that tells of the loss.
func work(given ...interface{}) {
	note("begin")
	if until == "/fail" {
		panic("the job fails")
	}
	defer note("end")
	for {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-given[len(given)-1].(<-chan struct{}):
			return
		}
		if _, err := os.Stat(until); err == nil {
			return
		}
	}
}

func take(ctx context.Context, client *clientv3.Client) error {
	_ = time.Second
CODE
}

func main() {
	defer func() {
		if problem := recover(); problem != nil {
			note("failed")
			time.Sleep(time.Hour)
		}
	}()
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(url, ","), DialTimeout: 5 * time.Second})
	if err == nil {
		err = take(context.Background(), client)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
"""

JAVA = """
IMPORTS
import java.util.concurrent.*;

public final class Client {
  static String log, until;
  static void note(String word) {
    try {
      java.nio.file.Files.writeString(java.nio.file.Path.of(log),
          String.format("%.6f %d %s\\n", System.nanoTime() / 1e9, ProcessHandle.current().pid(), word),
          java.nio.file.StandardOpenOption.CREATE, java.nio.file.StandardOpenOption.APPEND);
    } catch (java.io.IOException problem) {
      throw new IllegalStateException(problem);
    }
  }
  static final Runnable stop = () -> System.exit(0);
  static final Runnable work = () -> {
    note("begin");
    if (until.equals("/fail")) throw new IllegalStateException("the job fails");
    try {
      do {
        Thread.sleep(50);
      } while (!new java.io.File(until).exists());
    } catch (InterruptedException problem) {
      throw new IllegalStateException(problem);
    }
    note("end");
  };
  static void take(String url, String name, String marker CONFIG) throws Exception {
CODE
  }
  public static void main(String[] given) throws Exception {
    log = given[3];
    until = given[4];
MAIN
  }
}
"""
CURATOR = """import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.leader.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.retry.RetryOneTime;"""
CURATOR_MAIN = """    try {
      take(given[0], given[1], given[2]);
    } catch (IllegalStateException problem) {
      note("failed");
      Thread.sleep(Long.MAX_VALUE);
    }
    if (IS_LEADER) Thread.sleep(Long.MAX_VALUE);
    System.exit(0);"""
JARS = ":".join(f"/usr/share/java/{jar}.jar" for jar in (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava", "slf4j-nop",
    "slf4j-api"))

# Redisson is not in Debian, so its code is compiled against these signatures and not run.
REDISSON = {
    "config/Config": "public class Config { public native Config setLockWatchdogTimeout(long milliseconds); }",
    "Redisson": "public class Redisson { public static native org.redisson.api.RedissonClient create("
                "org.redisson.config.Config config); }",
    "api/RedissonClient": "public interface RedissonClient { RLock getLock(String name); "
                          "<V> RBucket<V> getBucket(String name); }",
    "api/RLock": "public interface RLock extends java.util.concurrent.locks.Lock { boolean isHeldByCurrentThread(); }",
    "api/RBucket": "public interface RBucket<V> { boolean isExists(); "
                   "void set(V value, long time, java.util.concurrent.TimeUnit unit); }",
}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def indented(code, by):
    return "".join(by + line + "\n" for line in code.splitlines())


def python(folder, code, _use):
    return ["/usr/bin/python3", write(f"{folder}/client.py", PYTHON + "try:\n" + indented(code, "    ") + PYTHON_END)]


def sql(folder, code, _use):
    return ["/usr/bin/python3", write(f"{folder}/client.py", f"TEXT = {code!r}\n" + SQL + PYTHON_END)]


def node(folder, code, use, modules):
    # Modules are found beside the script.
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(f"{folder}/node_modules"):
        os.symlink(modules, f"{folder}/node_modules")
    election = "true" if "election" in code else "false"
    text = NODE.replace("CODE", code).replace("IS_ELECTION", election)
    text = text.replace("IS_ONCE", "true" if use == "once" else "false")
    return ["node", write(f"{folder}/client.mjs", text)]


def go(folder, code, _use):
    write(f"{folder}/main.go", GO.replace("CODE", indented(code, "\t")))
    subprocess.run(["go", "build", "-o", "client", "main.go"], cwd=folder, check=True,
                   env={**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": ""})
    return [f"{folder}/client"]


def curator(folder, code, use):
    text = JAVA.replace("IMPORTS", CURATOR).replace("CONFIG", "").replace("CODE", indented(code, "    "))
    text = text.replace("MAIN", CURATOR_MAIN.replace("IS_LEADER", "true" if use == "leader" else "false"))
    subprocess.run(["javac", "-cp", JARS, "-d", folder, write(f"{folder}/Client.java", text)], check=True)
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}:{folder}", "Client"]


def redisson(folder, code, _use):
    """Only compiles."""
    for name, text in REDISSON.items():
        package = ".".join(["org.redisson", *name.split("/")[:-1]])
        write(f"{folder}/org/redisson/{name}.java", f"package {package};\n{text}\n")
    imports = "import org.redisson.*;\nimport org.redisson.api.*;\nimport org.redisson.config.*;"
    text = JAVA.replace("IMPORTS", imports).replace("CONFIG", ", Config config").replace("MAIN", "")
    write(f"{folder}/Client.java", text.replace("CODE", indented(code, "    ")))
    sources = glob.glob(f"{folder}/org/**/*.java", recursive=True)
    subprocess.run(["javac", "-d", folder, f"{folder}/Client.java", *sources], check=True)
