package password

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Hashes are computed in a separate process with a lower priority. It runs when other processes do
// not need the CPU, so that requests with tokens are not delayed while someone guesses passwords.
// Threads with a lower priority in this process would not be enough. The garbage collector would
// wait for them, and each hash takes 19 MiB.

// linger is how long the separate process remains idle before it is stopped. respite is how long to
// wait after a failure before starting the process again. answerFor is how long a task may take. If
// a task takes longer, it runs in this process, in case the separate process is starved or
// suspended.
const (
	linger    = time.Minute
	respite   = time.Minute
	answerFor = 20 * time.Second
)

// behind is the nice value of the separate process, from 0 to 19 (setpriority(2)). A competing
// process of normal priority gets about ten times as much CPU time.
const behind = 10

// A Task is a request to [Hasher.Serve].
type Task struct {
	Password string // the password in NFC
	Hash     string // the hash to compare the password with; "" matches no password
	Make     bool   // hash the password instead

	Rate  bool     // rate the password instead
	Known []string // words that an attacker may know about the user
}

// A Result is the response to a Task.
type Result struct {
	Hash string // the new hash
	OK   bool   // whether the password matches the hash
	Rating
}

// Hashes is the RPC service of [Hasher.Serve].
type Hashes struct{ of *Hasher }

// Do runs one task.
func (h Hashes) Do(t Task, r *Result) (err error) {
	*r, err = h.of.do(t)
	return err
}

// Serve runs tasks for another process, which sends them over conn, until conn is closed. The other
// process limits how many tasks run at the same time.
func (h *Hasher) Serve(conn io.ReadWriteCloser) error {
	s := rpc.NewServer()
	if err := s.Register(Hashes{h}); err != nil {
		return fmt.Errorf("serving hashes: %w", err)
	}
	s.ServeConn(conn)
	return nil
}

// Apart makes h run its tasks in a separate process. command returns the command to run, which
// must call [Hasher.Serve] on its standard input and output. The process is started for the first
// task, and stopped after it has been idle for a while. If it fails, tasks run in this process, and
// broken is called with the reason.
func (h *Hasher) Apart(command func() *exec.Cmd, broken func(error)) {
	h.apart = &process{command: command, broken: broken, answerFor: answerFor}
}

// A process is the separate process that runs tasks.
type process struct {
	command   func() *exec.Cmd
	broken    func(error)
	answerFor time.Duration

	mu     sync.Mutex
	worker *worker     // nil if the process is not running
	tasks  int         // number of running tasks
	idle   *time.Timer // stops the process
	after  time.Time   // the earliest time of the next start
}

// do runs a task in the separate process. ok is false if that is not possible.
func (p *process) do(t Task) (r Result, ok bool, err error) {
	// If the process has died, start it once more.
	for tries := 0; tries < 2 && !errors.Is(err, errNoAnswer); tries++ {
		w := p.take()
		if w == nil {
			return r, false, nil
		}

		r, err = w.do(t, p.answerFor)
		if refused := rpc.ServerError(""); err == nil || errors.As(err, &refused) {
			p.leave(nil, nil)
			return r, true, err
		}

		p.leave(w, err)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = time.Now().Add(respite)
	return r, false, nil
}

// take counts a task and returns the process for it. It starts the process if necessary, and
// returns nil if the process cannot run.
func (p *process) take() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worker == nil {
		if time.Now().Before(p.after) {
			return nil
		}
		w, err := start(p.command())
		if err != nil {
			p.after = time.Now().Add(respite)
			p.broken(err)
			return nil
		}
		p.worker = w
	}

	if p.idle != nil {
		p.idle.Stop()
	}
	p.tasks++
	return p.worker
}

// leave records that a task has ended. If the task failed because the process died, dead is the
// process and why is the error.
func (p *process) leave(dead *worker, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dead != nil && p.worker == dead {
		_ = dead.Close()
		_ = dead.Kill() // the process may hang without noticing that its input was closed
		p.worker = nil
		p.broken(fmt.Errorf("the hashing process has ended: %w", why))
	}

	if p.tasks--; p.tasks == 0 {
		p.idle = time.AfterFunc(linger, p.end)
	}
}

// end stops the process, unless it is running tasks.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == 0 && p.worker != nil {
		_ = p.worker.Close()
		p.worker = nil
	}
}

// Close stops the separate process, unless it is running tasks.
func (h *Hasher) Close() {
	if h.apart != nil {
		h.apart.end()
	}
}

// A worker is a running process.
type worker struct {
	*rpc.Client
	*os.Process
}

var errNoAnswer = errors.New("it did not respond in time")

// do runs a task. It returns errNoAnswer if the task takes longer than within.
func (w *worker) do(t Task, within time.Duration) (Result, error) {
	r := new(Result) // not reused: an abandoned call may still write to it
	call := w.Go("Hashes.Do", t, r, make(chan *rpc.Call, 1))
	timer := time.NewTimer(within)
	defer timer.Stop()

	select {
	case <-call.Done:
		return *r, call.Error
	case <-timer.C:
		return Result{}, errNoAnswer
	}
}

// pipes are a process's standard input and output.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// start starts a process with a lower priority. A process inherits the priority of the thread that
// starts it. That thread then ends, because it may not raise its priority again.
func start(cmd *exec.Cmd) (*worker, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}

	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		standBehind()
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the hashing process: %w", err)
	}

	client := rpc.NewClient(pipes{out, in})
	go func() { _ = cmd.Wait() }()
	return &worker{client, cmd.Process}, nil
}
