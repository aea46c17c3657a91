package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience limits how long a server may take to start or to end. It is generous, because the
// machine may be busy with other tests.
const patience = time.Minute

const pollEvery = 5 * time.Millisecond

// A Server is a process that a test may stop, pause and start again, always on the same port.
// It is not safe for concurrent use.
type Server struct {
	Port int

	dir     string // directory of its data; the log is next to it
	command []string
	account *syscall.Credential // account that runs the server; nil means our own
	ending  syscall.Signal      // signal that requests a clean shutdown
	dying   syscall.Signal      // signal that the server receives when this process ends
	ready   func() error        // returns nil when the server answers
	cmd     *exec.Cmd           // nil while the server does not run
	exited  chan struct{}
}

// Start restarts a stopped server with its existing data and waits until it responds.
func (s *Server) Start(t T) {
	t.Helper()
	check(t, s.start())
}

// Stop asks the server to shut down and waits until it has exited.
func (s *Server) Stop(t T) {
	t.Helper()
	check(t, s.stop())
}

// Kill ends the server and its children immediately with SIGKILL, without a clean shutdown, and
// waits until they have exited.
func (s *Server) Kill(t T) {
	t.Helper()
	check(t, s.kill())
}

// Pause stops the server and its children with SIGSTOP. Connections remain open, but get no
// answers.
func (s *Server) Pause(t T) {
	t.Helper()
	check(t, s.signal(syscall.SIGSTOP))
}

// Resume continues a paused server.
func (s *Server) Resume(t T) {
	t.Helper()
	check(t, s.signal(syscall.SIGCONT))
}

// PID returns the process ID of the running server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns what the server has printed so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.dir + ".log")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *Server) start() error {
	if s.cmd != nil {
		return fmt.Errorf("starting %s: it is already running", s.name())
	}
	log, err := os.OpenFile(s.dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	if err := spawn(cmd, s.dying); err != nil {
		return fmt.Errorf("starting %s: %w", s.name(), err)
	}

	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the log shows why it exited
		close(exited)
	}()

	s.cmd, s.exited = cmd, exited
	if err := s.await(); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w\n%s", s.name(), err, s.Log()), s.kill())
	}
	return nil
}

// await waits until the server answers.
func (s *Server) await() error {
	deadline := time.After(patience)
	for {
		err := s.ready()
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("the server exited immediately")
		case <-deadline:
			return fmt.Errorf("the server did not answer within %v: %w", patience, err)
		case <-time.After(pollEvery):
		}
	}
}

func (s *Server) stop() error {
	if s.cmd == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(s.ending) // fails if the server has already ended
	select {
	case <-s.exited:
		s.cmd = nil
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not end within %v\n%s", s.name(), patience, s.Log()), s.kill())
	}
}

func (s *Server) kill() error {
	if s.cmd == nil {
		return nil
	}
	children := s.children()

	_ = s.cmd.Process.Kill() // fails if the server has already ended
	<-s.exited
	s.cmd = nil

	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails if the child ended with its parent
	}
	// PostgreSQL does not start while a child still holds its shared memory.
	return poll("the children of "+s.name()+" to end", func() error {
		for _, pid := range children {
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil &&
				!bytes.Contains(stat, []byte(") Z ")) {
				return fmt.Errorf("process %d is still running", pid)
			}
		}
		return nil
	})
}

// signal sends a signal to the server first, so that it starts no more children, and then to the
// children.
func (s *Server) signal(sig syscall.Signal) error {
	if s.cmd == nil {
		return fmt.Errorf("%s is not running", s.name())
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %v to %s: %w", sig, s.name(), err)
	}
	for _, pid := range s.children() {
		_ = syscall.Kill(pid, sig) // fails if the child has ended
	}
	return nil
}

// children returns the child processes of the server. PostgreSQL has one for each connection.
func (s *Server) children() []int {
	pid := strconv.Itoa(s.cmd.Process.Pid)
	text, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return nil // the server has ended
	}
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(field); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// remove kills the server and removes its data.
func (s *Server) remove() {
	_ = s.kill() // a server that does not end dies with this process
	_ = os.Remove(s.dir + ".log")
	_ = os.RemoveAll(s.dir)
}

func (s *Server) name() string { return filepath.Base(s.command[0]) }

// poll calls done until it returns nil or patience has passed.
func poll(what string, done func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		err := done()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v for %s: %w", patience, what, err)
		}
	}
}
