package servers

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A RedisServer is a Redis server that tests can start and stop. It keeps an append-only file, so
// its data survives a kill and a restart.
type RedisServer struct {
	Server
	URL string
	env []string // environment of redis-cli
}

// redisDatabases is the number of databases on a shared server. Each is emptied before it is used
// again.
const redisDatabases = 1000

// Redis returns the URL of an empty database on a shared server, which only the caller uses.
func Redis(t T) string {
	t.Helper()
	base := os.Getenv("SELVAGE_TEST_REDIS")
	if base == "" {
		r, err := sharedRedis()
		check(t, err)
		base = r.URL
	}
	address := strings.TrimPrefix(base, "redis://")

	count, err := ask(address, "INCR given-away")
	check(t, err)
	n, err := strconv.Atoi(strings.TrimPrefix(count, ":"))
	check(t, err)

	n = 1 + n%(redisDatabases-1)
	_, err = ask(address, fmt.Sprintf("SELECT %d", n), "FLUSHDB")
	check(t, err)
	return fmt.Sprintf("%s/%d", base, n)
}

var sharedRedis = sync.OnceValues(func() (*RedisServer, error) { return startRedis(nil) })

// OwnRedis starts a server for a single test, with additional arguments of redis-server, such as
// "--maxmemory", "1mb".
func OwnRedis(t T, args ...string) *RedisServer {
	t.Helper()
	r, err := startRedis(args)
	check(t, err)
	t.Cleanup(r.remove)
	return r
}

// StartEmpty starts a server again after it has ended, without its earlier data.
func (r *RedisServer) StartEmpty(t T) {
	t.Helper()
	if r.cmd != nil {
		t.Fatalf("redis-server is still running")
	}
	check(t, r.empty())
	r.Start(t)
}

func (r *RedisServer) empty() error {
	entries, err := os.ReadDir(r.dir)
	for _, e := range entries {
		if e.Name() == "nodes.conf" {
			continue // keep the layout of the cluster
		}
		if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
			return err
		}
	}
	return err
}

// CLI runs a redis-cli command on the server and returns its output.
func (r *RedisServer) CLI(t T, args ...string) string {
	t.Helper()
	out, err := r.cli(args...)
	check(t, err)
	return out
}

// TryCLI is like [RedisServer.CLI], but for a command that may fail, for example because a server
// that becomes a master or a replica closes its connections.
func (r *RedisServer) TryCLI(args ...string) (string, error) { return r.cli(args...) }

func (r *RedisServer) cli(args ...string) (string, error) {
	path, err := program("redis-cli")
	if err != nil {
		return "", err
	}

	cmd := exec.Command(path, append([]string{"-p", strconv.Itoa(r.Port), "-e"}, args...)...)
	cmd.Env = append(os.Environ(), r.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("redis-cli %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

func startRedis(args []string) (*RedisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}

	dir, err := newPlace("redis", nil)
	if err != nil {
		return nil, err
	}

	r, err := newRedis(port, dir, append([]string{
		"--save", "", "--appendonly", "yes", "--repl-diskless-sync-delay", "0", "--databases",
		strconv.Itoa(redisDatabases), "--enable-debug-command", "yes",
	}, args...))
	if err != nil {
		return nil, err
	}

	r.URL = fmt.Sprintf("redis://127.0.0.1:%d", port)
	if i := slices.Index(args, "--requirepass"); i >= 0 && i+1 < len(args) {
		r.URL = fmt.Sprintf("redis://:%s@127.0.0.1:%d", args[i+1], port)
		r.env = []string{"REDISCLI_AUTH=" + args[i+1]}
	}

	if err := r.start(); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// newRedis returns a server that has not been started.
func newRedis(port int, dir string, args []string) (*RedisServer, error) {
	path, err := program("redis-server")
	if err != nil {
		return nil, err
	}
	r := &RedisServer{Server: Server{Port: port, dir: dir, ending: syscall.SIGTERM, dying: syscall.SIGKILL}}
	r.command = append([]string{path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--daemonize", "no"}, args...)

	r.ready = func() error {
		answer, err := ask(fmt.Sprintf("127.0.0.1:%d", port), "PING")
		if err == nil && answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH") {
			return fmt.Errorf("PING returned %s, want PONG", answer)
		}
		return err
	}
	return r, nil
}

// ask sends commands to a Redis server without a password and returns the last answer. Every answer
// must be one line.
func ask(address string, commands ...string) (answer string, err error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}

	lines := bufio.NewReader(conn)
	for _, c := range commands {
		if _, err := fmt.Fprintf(conn, "%s\r\n", c); err != nil {
			return "", err
		}
		if answer, err = lines.ReadString('\n'); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(answer), nil
}
