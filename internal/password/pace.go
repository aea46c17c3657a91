package password

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Imported hashes may take longer to check than ours, or less. So that the time of a refused login
// does not tell which kind of hash an account has, or that it exists, every refusal waits until the
// slowest hash among the accounts would have been checked. The wait costs no processor time.

// maxWait bounds the wait. maxForms bounds how many kinds of hashes are looked up, and formsFor is
// how long they are remembered.
const (
	maxWait  = 5 * time.Second
	maxForms = 32
	formsFor = time.Second
)

// An Attempt is a password of a login that was compared with a hash.
type Attempt struct {
	OK    bool // whether the password matches
	of    *Hasher
	began time.Time
}

// Try compares a password with a hash like [Hasher.Verify]. If the login is refused, whatever the
// reason, the caller calls [Attempt.Wait] before it answers.
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

	r, began, err := h.run(ctx, task)
	if err == nil {
		h.pace.observe(of.work, time.Since(began))
	}

	if err == nil && text != "" && unread != nil {
		err = fmt.Errorf("reading password hash: %w", unread)
	}
	return Attempt{OK: r.OK && err == nil, of: h, began: began}, err
}

// Wait returns when the slowest hash among the accounts would have been checked, at most five
// seconds after this one's turn began, or when ctx is done. If no account has an imported hash, it
// returns at once. It occupies no turn of the queue.
//
// The first Wait of a process checks one hash of each kind that the process has not checked yet, to
// learn how long it takes.
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

// slowest returns how long a refused login takes, from the beginning of its turn.
func (h *Hasher) slowest(ctx context.Context) time.Duration {
	if h.NextImported == nil {
		return 0
	}

	// One caller looks the hashes up and measures them; the others wait for it.
	select {
	case h.pace.turn <- struct{}{}:
		defer func() { <-h.pace.turn }()
	case <-ctx.Done():
		return 0
	}

	if time.Since(h.pace.read) > formsFor {
		if forms, err := h.imported(ctx); err == nil {
			h.pace.forms, h.pace.read = forms, time.Now()
		} // otherwise, use those of the last time
	}
	if len(h.pace.forms) == 0 {
		return 0
	}

	longest := h.estimate(ctx, h.cost.work(), "")
	for w, text := range h.pace.forms {
		longest = max(longest, h.estimate(ctx, w, text))
	}
	return min(longest+longest/4, maxWait) // the next check may take longer than those before
}

// estimate returns how long a hash takes. If that is unknown, it checks the hash once.
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

// imported returns a hash of each kind among the accounts that this package did not make: for each
// algorithm the one with the most work.
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
		after = form(text) + "\U0010ffff" // after every hash of this form, in byte order
	}

	forms := map[work]string{}
	for algorithm, text := range texts {
		forms[work{algorithm, most[algorithm]}] = text
	}
	return forms, nil
}

// form returns what the hashes of an algorithm with the same parameters begin with. Django writes
// the salt of scrypt before the parameters, so there one hash stands for all of them.
func form(text string) string {
	switch {
	case strings.HasPrefix(text, "$2") && len(text) > 7: // bcrypt: $2b$12$ and then salt and key
		return text[:7]
	case strings.HasPrefix(text, "scrypt$"):
		return "scrypt$"
	}

	end := strings.LastIndexByte(text, '$')
	if end > 0 && !strings.Contains(text[:end], ":") { // others than Werkzeug's have the salt before the key
		end = strings.LastIndexByte(text[:end], '$')
	}
	return text[:max(end, 0)+1]
}

// work is what it takes to check a hash. For one algorithm, the time grows with the amount.
type work struct {
	algorithm string
	amount    int
}

// A pace is how long checks of hashes take on this machine.
type pace struct {
	turn  chan struct{}   // guards forms and read
	forms map[work]string // a hash of each kind among the accounts
	read  time.Time       // when forms was read

	mu     sync.Mutex
	speeds map[string]speed // by algorithm
}

// A speed is how long an algorithm takes.
type speed struct {
	amount int     // the most work that was measured
	each   float64 // nanoseconds for a unit of work
}

func newPace() *pace { return &pace{turn: make(chan struct{}, 1), speeds: map[string]speed{}} }

// observe notes how long a check took. A slower check than expected counts at once, a faster one
// slowly, so that the estimates hold while the machine is busy. Checks of little work show
// nothing about those of much.
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

// of returns how long a check takes. It is unknown if only checks of less than half the work were
// measured.
func (p *pace) of(w work) (took time.Duration, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.speeds[w.algorithm]
	return time.Duration(s.each * float64(w.amount)), s.amount*2 >= w.amount
}
