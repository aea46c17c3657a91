// Package password hashes passwords with argon2id, and checks them. Each hash contains its
// parameters. Only a few hashes are computed at the same time, because each takes 19 MiB.
package password

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/argon2"
	"github.com/selvage/selvage/internal/problem"
)

// The parameters of new hashes, as OWASP recommends for argon2id.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	saltLen   = 16
	keyLen    = 32
)

// The minimum and maximum length of a password, in characters after NFC.
const (
	MinLength = 8
	MaxLength = 72
)

const (
	patience = 10 * time.Second // how long a caller waits for its turn

	// queue is how many callers may wait for each task that can run at the same time. Additional
	// callers are refused immediately, because their turn would not come in time.
	queue = 100
)

// A Hasher hashes and checks passwords. It runs a limited number of tasks at the same time. Create
// it with [New].
type Hasher struct {
	cost    params
	sem     chan struct{} // has one value for each running task
	waiting atomic.Int64
	apart   *process // the separate process that runs tasks; nil if this process runs them

	// NextImported returns the first hash that sorts after the given text, in byte order, among the
	// imported hashes of all accounts. It returns "" if there is none. The hashes determine how
	// long refused logins take; see [Attempt.Wait]. If NextImported is nil, no account has an
	// imported hash.
	NextImported func(ctx context.Context, after string) (string, error)

	pace *pace
}

// New returns a Hasher that runs at most parallel tasks at the same time; 0 means GOMAXPROCS.
func New(parallel int) *Hasher {
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	return &Hasher{
		cost: params{memory: memoryKiB, time: passes, threads: lanes},
		sem:  make(chan struct{}, parallel),
		pace: newPace(),
	}
}

// Weak returns a Hasher for tests that are not about passwords. Its hashes cost almost nothing and
// give no protection. Only tests may call it.
func Weak(parallel int) *Hasher {
	h := New(parallel)
	h.cost = params{memory: 8, time: 1, threads: 1}
	return h
}

// Waiting returns how many callers are waiting for their turn.
func (h *Hasher) Waiting() int { return int(h.waiting.Load()) }

// Check returns a problem that names param if password is too short, too long or not valid UTF-8.
func Check(param, password string) error {
	if !utf8.ValidString(password) {
		return problem.BadParam(param, "%s is not valid UTF-8", param)
	}
	if len(password) > 16*MaxLength {
		return problem.BadParam(param, "%s is too long (maximum is %d characters)", param, MaxLength)
	}

	n := utf8.RuneCountInString(norm.NFC.String(password))
	switch {
	case n < MinLength:
		return problem.BadParam(param, "%s is too short (minimum is %d characters)", param, MinLength)
	case n > MaxLength:
		return problem.BadParam(param, "%s is too long (maximum is %d characters)", param, MaxLength)
	}
	return nil
}

// Hash returns the PHC string of a password, $argon2id$v=19$m=…,t=…,p=…$salt$key.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	result, _, err := h.run(ctx, Task{Password: norm.NFC.String(password), Make: true})
	if err != nil {
		return "", err
	}
	return result.Hash, nil
}

// make returns the PHC string of a password.
func (h *Hasher) make(password string) string {
	salt := make([]byte, saltLen)
	rand.Read(salt)
	key := h.cost.derive([]byte(password), salt, keyLen)
	cost := fmt.Sprintf("m=%d,t=%d,p=%d", h.cost.memory, h.cost.time, h.cost.threads)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$%s$%s$%s", argon2.Version, cost, encode(salt), encode(key))
}

// params are the cost parameters of argon2id.
type params struct {
	memory, time uint32
	threads      uint8
}

// derivers keep the memory of argon2id for the next hash. The garbage collector may release it.
var derivers = sync.Pool{New: func() any { return new(argon2.Deriver) }}

func (p params) derive(password, salt []byte, size int) []byte {
	d := derivers.Get().(*argon2.Deriver)
	defer derivers.Put(d)
	return d.IDKey(password, salt, p.time, p.memory, p.threads, uint32(size))
}

// work returns the work of checking a hash with these parameters. Lanes run in parallel, so hashes
// with different numbers of lanes count as separate algorithms.
func (p params) work() work {
	return work{fmt.Sprintf("argon2id with %d lanes", p.threads), int(p.memory) * int(p.time)}
}

// nobody returns a hash for accounts without one. No password matches it, and checking it costs as
// much as checking a real hash.
func (h *Hasher) nobody() hash {
	return hash{
		derive: func(password []byte) ([]byte, error) {
			return h.cost.derive(password, make([]byte, saltLen), keyLen), nil
		},
		work: h.cost.work(),
	}
}

// Stale reports whether a password should be hashed again when it is next entered, because its hash
// was imported or made with other parameters.
func (h *Hasher) Stale(text string) bool {
	of, err := read(text)
	return err == nil && (of.cost != h.cost || len(of.want) != keyLen)
}

// Verify reports whether password matches a hash, which may have been imported (see [CheckHash]).
// An empty hash stands for an unknown subscriber, or a subscriber without a password. It never
// matches, and checking it takes as long as checking one of our own hashes. Logins must use
// [Hasher.Try] instead.
func (h *Hasher) Verify(ctx context.Context, text, password string) (bool, error) {
	attempt, err := h.Try(ctx, text, password)
	if err != nil {
		return false, err
	}
	return attempt.OK, nil
}

// rate rates a password when it is the caller's turn. It waits because any client can cause this
// work. If h is nil, rate does not wait.
func (h *Hasher) rate(ctx context.Context, password string, known []string) (Rating, error) {
	if h == nil {
		return rate(password, known), nil
	}
	result, _, err := h.run(ctx, Task{Password: password, Rate: true, Known: splitWords(known)})
	if err != nil {
		return Rating{}, err
	}
	return result.Rating, nil
}

// run runs a task when it is the caller's turn, in the separate process if possible. It also
// returns the time when the turn began.
func (h *Hasher) run(ctx context.Context, t Task) (Result, time.Time, error) {
	if err := h.turn(ctx); err != nil {
		return Result{}, time.Time{}, err
	}
	defer func() { <-h.sem }()

	began := time.Now()
	if h.apart != nil {
		if r, ok, err := h.apart.do(t); ok {
			return r, began, err
		}
	}
	r, err := h.do(t)
	return r, began, err
}

// do runs a task in this process, without waiting for a turn.
func (h *Hasher) do(t Task) (r Result, err error) {
	if t.Make {
		r.Hash = h.make(t.Password)
		return r, nil
	}

	if t.Rate {
		r.Rating = rate(t.Password, t.Known)
		return r, nil
	}

	of, unread := read(t.Hash)
	if unread != nil {
		of = h.nobody()
	}
	r.OK, err = of.is(t.Password)
	return r, err
}

// turn waits until the caller may run a task.
func (h *Hasher) turn(ctx context.Context) error {
	busy := &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "too many passwords are being checked at once",
		RetryAfter: time.Second,
	}

	if h.waiting.Add(1) > int64(queue*cap(h.sem)) {
		h.waiting.Add(-1)
		return busy
	}
	defer h.waiting.Add(-1)

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case h.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return busy
	}
}
