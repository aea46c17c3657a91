package password

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Checking an imported hash may take more or less time than checking one of our own hashes. The
// duration of a refused login must not reveal what kind of hash an account has, or whether the
// account exists. So every refusal takes as long as checking the slowest hash among all accounts
// would. The wait costs no CPU time. A form of hashes is an algorithm with its parameters.

const (
	maxWait  = 5 * time.Second // longest wait
	maxForms = 32              // maximum number of forms that are looked up
	formsFor = time.Second     // how long the forms that were found are remembered
)

// An Attempt is the result of comparing the password of a login with a hash.
type Attempt struct {
	OK    bool // whether the password matches
	of    *Hasher
	began time.Time
}

// Try compares a password with a hash, like [Hasher.Verify]. If the login is refused for any
// reason, the caller must call [Attempt.Wait] before it responds.
func (h *Hasher) Try(ctx context.Context, text, password string) (Attempt, error) {
	of, unread := read(text)
	if unread != nil {
		of = h.nobody()
	}

	task := Task{Hash: text}
	if len(password) > 16*MaxLength {
		task.Hash, of = "", h.nobody()
	} else {
		task.Password = norm.NFC.String(password)
	}

	result, began, err := h.run(ctx, task)
	attempt := Attempt{of: h, began: began}
	if err != nil {
		return attempt, err
	}
	h.pace.observe(of.work, time.Since(began))

	if text != "" && unread != nil {
		return attempt, fmt.Errorf("reading password hash: %w", unread)
	}
	attempt.OK = result.OK
	return attempt, nil
}

// Wait makes a refused login take as long as checking the slowest hash, plus a quarter. This time
// begins with the check, and is at most five seconds. Wait returns early if ctx is done. If no account
// has an imported hash, it returns immediately. A waiting caller occupies no slot, so other passwords
// can be checked meanwhile.
//
// If Wait does not know yet how long an algorithm takes, it checks the most expensive hash of that
// algorithm, and measures the time. In most processes, only the first Wait does this.
func (a Attempt) Wait(ctx context.Context) {
	if a.of == nil {
		return
	}
	timer := time.NewTimer(time.Until(a.began.Add(a.of.slowest(ctx))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// slowest returns how long a refused login must take, counted from the start of its check.
func (h *Hasher) slowest(ctx context.Context) time.Duration {
	if h.NextImported == nil {
		return 0
	}

	// One caller looks up and measures the hashes while the others wait.
	select {
	case h.pace.turn <- struct{}{}:
		defer func() { <-h.pace.turn }()
	case <-ctx.Done():
		return 0
	}

	if time.Since(h.pace.read) > formsFor {
		// If this fails, use the previous forms.
		if forms, err := h.imported(ctx); err == nil {
			h.pace.forms, h.pace.read = forms, time.Now()
		}
	}
	if len(h.pace.forms) == 0 {
		return 0
	}

	longest := h.estimate(ctx, h.cost.work(), "")
	for w, text := range h.pace.forms {
		longest = max(longest, h.estimate(ctx, w, text))
	}
	return min(longest+longest/4, maxWait) // leave room for checks that take longer than the measured ones
}

// estimate returns how long checking a hash takes. If that is unknown, it checks the hash once.
func (h *Hasher) estimate(ctx context.Context, w work, text string) time.Duration {
	took, known := h.pace.of(w)
	if known {
		return took
	}
	if _, err := h.Try(ctx, text, "a password to measure with"); err != nil {
		return 0
	}
	took, _ = h.pace.of(w)
	return took
}

// imported returns the most expensive imported hash among all accounts for each algorithm.
func (h *Hasher) imported(ctx context.Context) (map[work]string, error) {
	most := map[string]int{}
	texts := map[string]string{}

	after := ""
	for range maxForms {
		text, err := h.NextImported(ctx, after)
		if err != nil {
			return nil, err
		}
		if text == "" {
			break
		}
		if of, err := read(text); err == nil && of.work.amount > most[of.work.algorithm] {
			most[of.work.algorithm], texts[of.work.algorithm] = of.work.amount, text
		}
		after = parameterPrefix(text) + "\U0010ffff" // after all hashes of this form, in byte order
	}

	forms := map[work]string{}
	for algorithm, text := range texts {
		forms[work{algorithm, most[algorithm]}] = text
	}
	return forms, nil
}

// parameterPrefix returns a prefix that all hashes with the same algorithm and parameters share. In
// Django's scrypt hashes, the salt precedes the parameters, so all of these hashes count as one form,
// and one of them represents the others.
func parameterPrefix(text string) string {
	switch {
	case strings.HasPrefix(text, "$2") && len(text) > 7: // bcrypt: $2b$12$, followed by the salt and key
		return text[:7]
	case strings.HasPrefix(text, "scrypt$"):
		return "scrypt$"
	}

	end := strings.LastIndexByte(text, '$')
	if end > 0 { // the last two fields are the salt and the key
		end = strings.LastIndexByte(text[:end], '$')
	}
	return text[:max(end, 0)+1]
}

// work describes the cost of checking a hash. For one algorithm, the time grows with the amount.
type work struct {
	algorithm string
	amount    int
}

// A pace records how long checking hashes takes on this machine.
type pace struct {
	turn  chan struct{}   // protects forms and read
	forms map[work]string // the most expensive imported hash of each algorithm
	read  time.Time       // when forms was last updated

	mu     sync.Mutex
	speeds map[string]speed // by algorithm
}

// A speed records how long an algorithm takes.
type speed struct {
	amount int     // the largest measured amount of work
	each   float64 // nanoseconds per unit of work
}

func newPace() *pace { return &pace{turn: make(chan struct{}, 1), speeds: map[string]speed{}} }

// observe records how long a check took. If the check was slower than expected, the estimate
// changes immediately. If it was faster, the estimate changes slowly, so that it remains valid
// while the machine is busy. Short checks do not affect the estimates for long ones.
func (p *pace) observe(w work, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()

	s := p.speeds[w.algorithm]
	if w.amount <= 0 || w.amount < s.amount/2 {
		return
	}
	each := float64(took) / float64(w.amount)
	if w.amount <= 2*s.amount {
		each = max(each, s.each*15/16)
	}
	p.speeds[w.algorithm] = speed{max(s.amount, w.amount), each}
}

// of returns how long a check of w takes. known is false if every measured check had less than half
// as much work.
func (p *pace) of(w work) (took time.Duration, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.speeds[w.algorithm]
	return time.Duration(s.each * float64(w.amount)), s.amount*2 >= w.amount
}
