package password

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Hashes are computed in a separate process with a lower priority. The process runs when others do
// not need the CPU, so that requests with tokens are not delayed while someone guesses passwords.
// Threads with a lower priority in this process would not be enough. The garbage collector would
// wait for these threads, and each hash takes 19 MiB.

const (
	linger  = time.Minute // how long the separate process remains idle before it is stopped
	respite = time.Minute // how long to wait after a failure before starting the process again

	// answerFor is how long a task may take. If a task takes longer, it runs in this process, because
	// the separate process may be starved or suspended.
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
	OK   bool   // the password matches the hash
	Rating
}

// A request carries a task to the separate process. A response carries the result back. Responses
// may arrive in any order.
type request struct {
	ID   uint64
	Task Task
}

type response struct {
	ID     uint64
	Result Result
	Error  string // why the task failed, or ""
}

// Serve runs tasks for another process, which sends them over conn, until conn is closed. The other
// process limits how many tasks run at the same time.
func (h *Hasher) Serve(conn io.ReadWriteCloser) error {
	requests, responses := gob.NewDecoder(conn), gob.NewEncoder(conn)
	var sending sync.Mutex
	for {
		var r request
		err := requests.Decode(&r)
		if err == io.EOF {
			return conn.Close()
		}
		if err != nil {
			return fmt.Errorf("receiving a task: %w", err)
		}

		go func() {
			answer := h.answer(r)
			sending.Lock()
			defer sending.Unlock()
			if responses.Encode(answer) != nil {
				_ = conn.Close() // the other process has ended, and so does this one
			}
		}()
	}
}

// answer runs the task of a request.
func (h *Hasher) answer(r request) response {
	result, err := h.do(r.Task)
	if err != nil {
		return response{ID: r.ID, Error: err.Error()}
	}
	return response{ID: r.ID, Result: result}
}

// Apart makes h run its tasks in a separate process. The function command returns the command to
// run, which must call [Hasher.Serve] on its standard input and output. The process is started for
// the first task, and stopped after it has been idle for a while. If it fails, tasks run in this
// process, and broken is called with the reason.
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
		if failed := taskError(""); err == nil || errors.As(err, &failed) {
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

// leave records that a task has ended. If the task failed because the separate process died or did
// not answer, dead is that process, and why is the error.
func (p *process) leave(dead *worker, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dead != nil && p.worker == dead {
		_ = dead.tasks.Close()
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
		_ = p.worker.tasks.Close()
		p.worker = nil
	}
}

// Close stops the separate process, unless it is running tasks.
func (h *Hasher) Close() {
	if h.apart != nil {
		h.apart.end()
	}
}

// A worker is a running process. Closing tasks ends it.
type worker struct {
	*os.Process
	tasks io.WriteCloser

	sending  sync.Mutex
	requests *gob.Encoder // writes to tasks

	mu      sync.Mutex
	last    uint64                   // id of the last request
	waiting map[uint64]chan response // by the id of the request
	err     error                    // why there will be no more responses
}

var errNoAnswer = errors.New("it did not respond in time")

// A taskError is the reason why a task failed in the separate process.
type taskError string

func (e taskError) Error() string { return string(e) }

// do runs a task. It returns a taskError if the task fails, errNoAnswer if the task takes longer
// than within, and another error if the process has ended.
func (w *worker) do(t Task, within time.Duration) (Result, error) {
	id, answer, err := w.expect()
	if err != nil {
		return Result{}, err
	}
	defer w.forget(id)
	if err := w.send(request{id, t}); err != nil {
		return Result{}, err
	}

	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case a, ok := <-answer:
		switch {
		case !ok:
			return Result{}, w.ended()
		case a.Error != "":
			return Result{}, taskError(a.Error)
		}
		return a.Result, nil
	case <-timer.C:
		return Result{}, errNoAnswer
	}
}

// expect returns the id of a new request, and the channel that receives its response. The channel
// is closed if the process ends.
func (w *worker) expect() (id uint64, answer chan response, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, nil, w.err
	}
	w.last++
	answer = make(chan response, 1)
	w.waiting[w.last] = answer
	return w.last, answer, nil
}

func (w *worker) forget(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, id)
}

func (w *worker) send(r request) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	return w.requests.Encode(r)
}

func (w *worker) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// receive delivers responses until the process ends.
func (w *worker) receive(from io.Reader) {
	responses := gob.NewDecoder(from)
	for {
		var a response
		err := responses.Decode(&a)

		w.mu.Lock()
		if err != nil {
			w.err = err
			for _, answer := range w.waiting {
				close(answer)
			}
			w.mu.Unlock()
			return
		}
		if answer, ok := w.waiting[a.ID]; ok {
			answer <- a // does not block: the channel has room for the only response
		}
		w.mu.Unlock()
	}
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

	w := &worker{Process: cmd.Process, tasks: in, requests: gob.NewEncoder(in)}
	w.waiting = make(map[uint64]chan response)
	go func() {
		w.receive(out)
		_ = cmd.Wait() // Wait closes out, so it must follow the last read
	}()
	return w, nil
}
