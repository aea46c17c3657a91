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

// Hashes are made in a process of their own, which stands behind ours: the kernel gives it
// what others leave, so that whoever has a token verified does not wait for the hashes of
// those who guess. Threads of ours that did so would keep everybody waiting, since the
// runtime waits for all of them where it collects garbage, and 19 MiB of each hash is that.

// linger is how long the process stays after the last hash, respite how long none is begun
// after one that did not work, and answerFor how long a hash may take: a process that the
// kernel returns no turn, or that has been stopped, keeps nobody from signing in.
const (
	linger    = time.Minute
	respite   = time.Minute
	answerFor = 20 * time.Second
)

// behind is how nice the process is, from 0 to 19 (setpriority(2)): what wants the same
// processor as others of ours gets a tenth of it.
const behind = 10

// A Task is what [Hasher.Serve] is asked for.
type Task struct {
	Password string // in NFC
	Hash     string // to compare with; "" is nobody's
	Make     bool   // whether a new hash is wanted instead

	Rate  bool     // whether the password is to be rated instead
	Known []string // what a guesser knows of the person
}

// A Result is its answer.
type Result struct {
	Hash string // the new one
	OK   bool   // whether the password is that of the hash
	Rating
}

// Hashes is what [Hasher.Serve] serves.
type Hashes struct{ of *Hasher }

// Do does one task.
func (h Hashes) Do(t Task, r *Result) (err error) {
	*r, err = h.of.do(t)
	return err
}

// Serve makes the hashes of another process, which asks for them over conn, until that is
// closed. How many at a time is up to the one that asks.
func (h *Hasher) Serve(conn io.ReadWriteCloser) error {
	s := rpc.NewServer()
	if err := s.Register(Hashes{h}); err != nil {
		return fmt.Errorf("serving hashes: %w", err)
	}
	s.ServeConn(conn)
	return nil
}

// Apart has hashes made by a process that command gives, which calls [Hasher.Serve] on its
// standard input and output. It is begun with the first hash, and ends when there is none
// for a while. Where there can be none, hashes are made in this process, and broken is
// told why.
func (h *Hasher) Apart(command func() *exec.Cmd, broken func(error)) {
	h.apart = &process{command: command, broken: broken, answerFor: answerFor}
}

// A process makes hashes beside this one.
type process struct {
	command   func() *exec.Cmd
	broken    func(error)
	answerFor time.Duration

	mu     sync.Mutex
	worker *worker     // nil while it does not run
	tasks  int         // how many it has to do
	idle   *time.Timer // ends it
	after  time.Time   // before then none is begun
}

// do has a task done; ok is false where there is no process that does it.
func (p *process) do(t Task) (r Result, ok bool, err error) {
	for tries := 0; tries < 2 && !errors.Is(err, errNoAnswer); tries++ { // one that has died is begun anew
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

// take returns the process a task, and begins it where it does not run.
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

// leave takes a task from it. Where the process has died of it, dead is what ran, and why
// tells how it ended.
func (p *process) leave(dead *worker, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dead != nil && p.worker == dead {
		_ = dead.Close()
		_ = dead.Kill() // it may be there, and have no ear for the end of its input
		p.worker = nil
		p.broken(fmt.Errorf("the process that makes hashes has ended: %w", why))
	}
	if p.tasks--; p.tasks == 0 {
		p.idle = time.AfterFunc(linger, p.end)
	}
}

// end ends the process, unless it has something to do.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == 0 && p.worker != nil {
		_ = p.worker.Close()
		p.worker = nil
	}
}

// Close ends the process that makes hashes, if one runs and has nothing to do.
func (h *Hasher) Close() {
	if h.apart != nil {
		h.apart.end()
	}
}

// A worker is a process that runs.
type worker struct {
	*rpc.Client
	*os.Process
}

var errNoAnswer = errors.New("it did not answer in time")

// do has a task done, in so much time.
func (w *worker) do(t Task, within time.Duration) (Result, error) {
	r := new(Result) // of a call that is given up, which may still write to it
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

// pipes are the standard input and output of a process.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// start starts a process that stands behind ours. How nice it is, it has from the thread
// that starts it, which ends: none that stands behind can come forward again.
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
		runtime.LockOSThread() // and never unlocks it
		standBehind()
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the process that makes hashes: %w", err)
	}
	client := rpc.NewClient(pipes{out, in})
	go func() { _ = cmd.Wait() }()
	return &worker{client, cmd.Process}, nil
}
