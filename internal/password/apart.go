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

// Hashes are made in a separate process with a lower priority. It runs when other processes do not
// need the processor, so that verifying a token does not wait for the hashes of people who guess
// passwords. Threads with a lower priority in this process would delay everybody: the garbage
// collector waits for all threads, and each hash allocates 19 MiB.

// linger is how long the process stays after the last hash. respite is how long no process is
// started after one failed. answerFor is how long a hash may take: a process that is starved or
// stopped does not keep anybody from signing in.
const (
	linger    = time.Minute
	respite   = time.Minute
	answerFor = 20 * time.Second
)

// behind is the nice value of the process, from 0 to 19 (setpriority(2)). A competing process of
// normal priority gets about ten times as much of a processor.
const behind = 10

// A Task is a request to [Hasher.Serve].
type Task struct {
	Password string // in NFC
	Hash     string // to compare with; "" matches no password
	Make     bool   // make a new hash instead

	Rate  bool     // rate the password instead
	Known []string // what a guesser knows about the person
}

// A Result is the response to a Task.
type Result struct {
	Hash string // the new hash
	OK   bool   // whether the password matches the hash
	Rating
}

// Hashes is the RPC service of [Hasher.Serve].
type Hashes struct{ of *Hasher }

// Do performs one task.
func (h Hashes) Do(t Task, r *Result) (err error) {
	*r, err = h.of.do(t)
	return err
}

// Serve makes hashes for another process, which requests them over conn, until conn is closed. The
// other process limits how many run at a time.
func (h *Hasher) Serve(conn io.ReadWriteCloser) error {
	s := rpc.NewServer()
	if err := s.Register(Hashes{h}); err != nil {
		return fmt.Errorf("serving hashes: %w", err)
	}
	s.ServeConn(conn)
	return nil
}

// Apart makes hashes in a separate process. command returns its command, which must call
// [Hasher.Serve] on its standard input and output. The process starts with the first hash and ends
// when it is idle for a while. If it cannot run, hashes are made in this process, and broken is
// called with the reason.
func (h *Hasher) Apart(command func() *exec.Cmd, broken func(error)) {
	h.apart = &process{command: command, broken: broken, answerFor: answerFor}
}

// A process is the separate process that makes hashes.
type process struct {
	command   func() *exec.Cmd
	broken    func(error)
	answerFor time.Duration

	mu     sync.Mutex
	worker *worker     // nil while it is not running
	tasks  int         // tasks that are running
	idle   *time.Timer // ends it
	after  time.Time   // earliest time of the next start
}

// do performs a task in the separate process. ok is false if there is none that can.
func (p *process) do(t Task) (r Result, ok bool, err error) {
	// A process that died is started once more.
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

// take counts a task and returns the process, which it starts if necessary.
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

// leave ends a task. If the process died, dead is the process and why is the reason.
func (p *process) leave(dead *worker, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dead != nil && p.worker == dead {
		_ = dead.Close()
		_ = dead.Kill() // it may hang and ignore the end of its input
		p.worker = nil
		p.broken(fmt.Errorf("the hashing process has ended: %w", why))
	}

	if p.tasks--; p.tasks == 0 {
		p.idle = time.AfterFunc(linger, p.end)
	}
}

// end ends the process, unless it has tasks.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == 0 && p.worker != nil {
		_ = p.worker.Close()
		p.worker = nil
	}
}

// Close ends the process that makes hashes, unless it has tasks.
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

// do performs a task within the given time.
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

// start starts a process with a lower priority. It inherits the priority of the thread that starts
// it. That thread then ends, because it could not raise its priority again.
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
