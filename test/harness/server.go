package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/selvage/selvage/test/servers"
)

// The deadlines for starting and stopping a server are generous, because a test must not fail on a
// machine that is busy with other suites.
const (
	startDeadline = time.Minute
	stopDeadline  = time.Minute
	pollEvery     = 10 * time.Millisecond
)

// A Config configures a server. The zero value configures a server on free loopback ports, with keys
// and an empty database.
type Config struct {
	Data     string   // data directory; "" creates one with the keys of an earlier start
	Backends []string // variables that name the database and sessions; nil means those of Beside, or new ones
	// A server to share the database and sessions with; nil means new ones, see servers.Backend.
	Beside *Server
	Args   []string // additional arguments of selvage serve
	Env    []string // additional environment
	Prefix []string // command to run the server under, such as taskset -c 0
	Binary string   // path of the selvage binary to run; "" means [Binary]
}

// Run holds the contents of a running server's run.json.
type Run struct {
	PID       int    `json:"pid"`
	HTTP      string `json:"http"`
	HTTPS     string `json:"https"`
	Ops       string `json:"ops"`
	PublicURL string `json:"public_url"`
	AuthURL   string `json:"auth_url"`
}

// Issuer returns the identity provider's issuer identifier, byte for byte.
func (r Run) Issuer() string { return strings.TrimSuffix(r.AuthURL, "/") + "/" }

// A Server is a selvage server that tests can start and stop.
type Server struct {
	Run
	Data     string   // data directory
	Backends []string // environment that names the database and sessions; empty if they are files in Data

	config Config
	binary string
	cmd    *exec.Cmd
	log    logBuffer
	exited chan struct{}
	exit   error // valid after exited is closed

	shared  bool // other tests of this process use the server, too
	spareMu sync.Mutex
	spare   []*Project // projects that no test has used yet
}

// Start starts a server that is stopped at the end of the test. The test fails if the server
// does not exit cleanly.
func Start(t T, args ...string) *Server {
	t.Helper()
	return StartConfig(t, Config{Args: args})
}

// StartConfig is like [Start], but takes a configuration.
func StartConfig(t T, c Config) *Server {
	t.Helper()
	s := &Server{Data: c.Data, config: c, binary: c.Binary}
	if s.binary == "" {
		s.binary = Binary(t)
	}

	fresh := s.Data == ""
	if fresh {
		s.Data = filepath.Join(t.TempDir(), "data")
	}

	switch {
	case c.Backends != nil:
		s.Backends = c.Backends
	case c.Beside != nil:
		s.Backends = c.Beside.Backends
	case fresh:
		s.Backends = begin(t, s.Data)
	default:
		s.Backends = servers.Backend(t)
	}

	t.Cleanup(func() { s.finish(t) })
	s.start(t, place(t), place(t), place(t))
	return s
}

// FreePort returns a port on which nothing listens; see [servers.FreePort].
func FreePort(t T) int {
	t.Helper()
	return servers.FreePort(t)
}

// place returns a loopback address. It stays reserved, so that a stopped server can start there
// again.
func place(t T) string { return fmt.Sprintf("127.0.0.1:%d", FreePort(t)) }

func (s *Server) start(t T, plain, tls, ops string) {
	t.Helper()
	args := append([]string{}, s.config.Prefix...)
	args = append(args, s.binary, "serve", "--data", s.Data, "--listen", plain, "--listen-tls", tls,
		"--listen-ops", ops, "--listen-media", "127.0.0.1:0", "--no-demo")
	args = append(args, s.config.Args...)

	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = slices.Concat(os.Environ(), unlimited(), s.Backends, s.config.Env)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("starting selvage: %v", err)
	}

	s.exited = make(chan struct{})
	go func() {
		s.exit = s.cmd.Wait()
		close(s.exited)
	}()
	s.await(t)
}

// unlimited returns environment variables that raise the rate limits per address, account and key,
// because all tests share one address. A test of a limit sets the limit in the environment of its
// [Config].
func unlimited() (env []string) {
	for _, name := range []string{
		"LOGIN_PER_ACCOUNT", "LOGIN_PER_NETWORK", "LOGIN_PER_RANGE", "AUTHORIZE_PER_NETWORK",
		"TOKEN_PER_CLIENT", "REGISTER_PER_NETWORK",
		"MAIL_PER_ADDRESS", "MAIL_PER_NETWORK", "API_REQUESTS", "API_WRITES", "MEDIA_MISSES_PER_NETWORK",
	} {
		env = append(env, "SELVAGE_LIMITS__"+name+"=1000000")
	}
	return env
}

// await polls run.json until the process that was just started has written it.
func (s *Server) await(t T) {
	t.Helper()
	path := filepath.Join(s.Data, "run.json")
	Eventually(t, startDeadline, "selvage to write run.json", func() error {
		select {
		case <-s.exited:
			t.Fatalf("selvage serve ended during its start: %v\n%s", s.exit, s.Log())
		default:
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var run Run
		if err := json.Unmarshal(text, &run); err != nil {
			return err
		}

		if run.PID != s.cmd.Process.Pid {
			return fmt.Errorf("run.json names the process %d, which is not this server", run.PID)
		}
		s.Run = run
		return nil
	})
}

// Stop sends SIGTERM to the server and waits for it to exit. It returns an error unless the exit
// status is 0.
func (s *Server) Stop(t T) error {
	t.Helper()
	s.Terminate()
	return s.Wait(t)
}

// Terminate sends SIGTERM to the server.
func (s *Server) Terminate() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails if the process has already ended
}

// Wait waits for a stopping server to exit, and returns an error unless the exit status is 0.
func (s *Server) Wait(t T) error {
	t.Helper()
	select {
	case <-s.exited:
	case <-time.After(stopDeadline):
		_ = s.cmd.Process.Kill()
		t.Fatalf("selvage did not end within %v of SIGTERM\n%s", stopDeadline, s.Log())
	}
	return s.exit
}

// Kill ends the server immediately with SIGKILL, without a clean shutdown.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // fails if the process has already ended
	<-s.exited
}

// Restart starts a server that has ended, with the same data and on the same addresses. Its issuer
// therefore stays the same.
func (s *Server) Restart(t T) {
	t.Helper()
	<-s.exited
	s.start(t, hostOf(s.HTTP), hostOf(s.HTTPS), hostOf(s.Ops))
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "127.0.0.1:0"
	}
	return u.Host
}

// finish stops the server at the end of a test. If the test has failed, finish logs the server's
// output.
func (s *Server) finish(t T) {
	reportFaults(t)
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}

	err := s.Stop(t)
	var status *exec.ExitError
	if errors.As(err, &status) && !killed(status) {
		t.Errorf("selvage ended with %v", err)
	}

	if t.Failed() {
		t.Logf("log of selvage:\n%s", s.Log())
	}
}

func killed(e *exec.ExitError) bool {
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Database returns the URL of the server's database, or "" if the database is in the data
// directory.
func (s *Server) Database() string {
	for _, entry := range s.Backends {
		if url, ok := strings.CutPrefix(entry, "SELVAGE_DATABASE="); ok {
			return url
		}
	}
	return ""
}

// Log returns what the server has printed so far.
func (s *Server) Log() string { return s.log.String() }

// PID returns the process ID of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// A logBuffer is a bytes.Buffer for concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
