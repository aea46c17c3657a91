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

// Deadlines for what the server must do in time. They are generous: a machine
// that is busy with other suites must not fail a test.
const (
	startDeadline = time.Minute
	stopDeadline  = time.Minute
	pollEvery     = 10 * time.Millisecond
)

// A Config says how a server is started. The zero value is a server on free
// loopback ports, with nothing in it but keys.
type Config struct {
	Data     string   // data directory; "" makes one, in which a server was begun before
	Backends []string // the environment that names its database and its sessions; nil takes Beside's, or new ones
	Beside   *Server  // shares its database and sessions; nil makes new ones, of the backend that servers.Backend chooses
	Args     []string // more arguments of selvage serve
	Env      []string // more environment
	Prefix   []string // a command to run the server under, such as taskset -c 0
	Binary   string   // the selvage to run; "" means [Binary]
}

// Run is what run.json says of a running server.
type Run struct {
	PID       int    `json:"pid"`
	HTTP      string `json:"http"`
	HTTPS     string `json:"https"`
	Ops       string `json:"ops"`
	PublicURL string `json:"public_url"`
	AuthURL   string `json:"auth_url"`
}

// Issuer is the identity provider's name, byte for byte.
func (r Run) Issuer() string { return strings.TrimSuffix(r.AuthURL, "/") + "/" }

// A Server is a running selvage.
type Server struct {
	Run
	Data     string   // its data directory
	Backends []string // the environment that names its database and its sessions; nothing for files in Data

	config Config
	binary string
	cmd    *exec.Cmd
	log    logBuffer
	exited chan struct{}
	exit   error // valid once exited is closed

	shared  bool // by the tests of a process
	spareMu sync.Mutex
	spare   []*Project // made and not yet given out
}

// Start starts a server that is stopped with the test, which fails if the
// server did not end well.
func Start(t T, args ...string) *Server {
	t.Helper()
	return StartConfig(t, Config{Args: args})
}

// StartConfig starts a server as Start does.
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

// FreePort returns a port that nobody listens on; see [servers.FreePort].
func FreePort(t T) int {
	t.Helper()
	return servers.FreePort(t)
}

// place is an address for a server which it may have again after it was stopped.
func place(t T) string { return fmt.Sprintf("127.0.0.1:%d", FreePort(t)) }

func (s *Server) start(t T, plain, tls, ops string) {
	t.Helper()
	args := append([]string{}, s.config.Prefix...)
	args = append(args, s.binary, "serve", "--data", s.Data, "--listen", plain, "--listen-tls", tls,
		"--listen-ops", ops, "--no-demo")
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

// unlimited raises the limits of what one address, account or key may do: all tests
// come from the same. Who tests a limit sets it in the environment of a [Config].
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

// await polls run.json until it is the one of our process.
func (s *Server) await(t T) {
	t.Helper()
	path := filepath.Join(s.Data, "run.json")
	Eventually(t, startDeadline, "selvage to write run.json", func() error {
		select {
		case <-s.exited:
			t.Fatalf("selvage serve ended at once: %v\n%s", s.exit, s.Log())
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
			return fmt.Errorf("run.json is of process %d", run.PID)
		}
		s.Run = run
		return nil
	})
}

// Stop asks the server to end (SIGTERM) and waits for it. The error is that of
// its exit status.
func (s *Server) Stop(t T) error {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-s.exited:
	case <-time.After(stopDeadline):
		_ = s.cmd.Process.Kill()
		t.Fatalf("selvage did not end within %v of SIGTERM\n%s", stopDeadline, s.Log())
	}
	return s.exit
}

// Kill ends the server at once, with no chance to tidy up (SIGKILL).
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.exited
}

// Restart starts a server that has ended, with the same data on the same
// addresses, so that its issuer stays what it was.
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

// finish stops the server at the end of a test and shows its log if that failed.
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

// Database returns the URL of the server's rows, "" where they are in its data
// directory.
func (s *Server) Database() string {
	for _, entry := range s.Backends {
		if url, ok := strings.CutPrefix(entry, "SELVAGE_DATABASE="); ok {
			return url
		}
	}
	return ""
}

// Log is what the server has printed so far.
func (s *Server) Log() string { return s.log.String() }

// PID is the process that runs the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// logBuffer is a bytes.Buffer for one writer and any readers.
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
