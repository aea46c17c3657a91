// Package spent remembers the use of things that may be used only once, such as the proofs and
// assertions of clients. It is for a server that shares its data with no other server. Storing a
// use costs a fraction of writing a row to a database.
//
// A [Log] keeps digests in memory and in files. A use is written before Add returns, so it survives
// the process. If the machine crashes, the latest uses may be lost, because Add does not wait for
// the disk. After such a crash, everything that was made before it counts as used. A mark in a file
// shows whether the machine has crashed.
//
// A Log is a list of parts, each with a file. A new part begins at most once a minute. A part is
// deleted when all uses in it have expired.
package spent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// partFor is how long uses are added to a part. A shorter time needs more parts, and a longer time
// keeps expired uses for longer.
const partFor = time.Minute

// ahead is how far the clock of the client that made a thing may be ahead of the server's.
const ahead = 10 * time.Second

// maxUses is the maximum number of uses in a Log. They take about 200 MiB.
const maxUses = 8 << 20

// Config configures a Log.
type Config struct {
	Dir  string           // directory of the files; no other process may use it
	Boot string           // identifies this start of the machine; "" means the kernel's id
	Now  func() time.Time // nil means time.Now
}

// A Use records that something was used.
type Use struct {
	ID      string    // identifies the used thing
	Made    time.Time // when the thing was made, or earlier
	Expires time.Time // when the use may be forgotten
}

// A Repeated error reports that something was used before.
type Repeated struct{ Index int } // index in the arguments of Add

func (r Repeated) Error() string { return "it was used before" }

var (
	errFull = unavailable("too many requests; try again later")
	errDisk = unavailable("the server cannot write to its disk")
)

func unavailable(message string) error {
	return &problem.Error{Kind: problem.Unavailable, Code: "temporarily_unavailable", Message: message,
		RetryAfter: time.Second}
}

// A Log remembers uses. Its methods may be called concurrently.
type Log struct {
	c Config

	mu    sync.Mutex
	parts []*part   // the oldest first; uses are added to the last one
	begun time.Time // when the last part was begun; zero if the next use needs a new part
	count int       // number of uses in parts

	// The mark contains these two values.
	lost   time.Time // things made until then count as used, because the machine has crashed
	marked bool      // whether the mark says that uses may be lost if the machine crashes
}

// A digest identifies a use in memory and in files.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:])
}

// Open opens the log in a directory. It reads the uses that have not expired.
func Open(c Config) (*Log, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Boot == "" {
		c.Boot = bootID()
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening log of uses: %w", err)
	}

	l := &Log{c: c}
	parts, err := readParts(c.Dir, c.Now())
	if err != nil {
		return nil, fmt.Errorf("opening log of uses: %w", err)
	}
	for _, p := range parts {
		l.parts = append(l.parts, p)
		l.count += p.count()
	}
	if err := l.readMark(); err != nil {
		return nil, fmt.Errorf("opening log of uses: %w", err)
	}
	return l, nil
}

// Learn adds uses that are already stored elsewhere. It does not write them to a file.
func (l *Log) Learn(uses ...Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &part{split: seconds(l.c.Now().Add(briefFor))}
	for _, u := range uses {
		p.add(digestOf(u.ID), seconds(u.Expires))
	}
	l.count += p.count()
	l.parts = append([]*part{p}, l.parts...)
}

// Has reports whether the thing with the given ID, which was made at the given time, has been used
// or may have been used.
func (l *Log) Has(id string, made time.Time) bool {
	d := digestOf(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.correctLost()
	return l.has(d, made)
}

// correctLost moves l.lost back if it is more than ahead in the future. This happens if the clock
// was wrong when the log was opened; the crash itself is in the past.
func (l *Log) correctLost() {
	latest := l.c.Now().Add(ahead)
	if l.lost.After(latest) {
		l.lost = latest.Round(0)
	}
}

func (l *Log) has(d digest, made time.Time) bool {
	if !l.lost.IsZero() && !made.After(l.lost) {
		return true
	}
	return slices.ContainsFunc(l.parts, func(p *part) bool { return p.has(d) })
}

// Add adds uses, all or none. If one of them is known, Add returns a Repeated error. If Add returns
// another error, the uses may count as used.
func (l *Log) Add(uses ...Use) error {
	records := make([]byte, 0, len(uses)*recordSize)
	digests := make([]digest, len(uses))
	for i, u := range uses {
		digests[i] = digestOf(u.ID)
		records = appendRecord(records, digests[i], seconds(u.Expires))
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.ensurePart()
	if err != nil {
		return errors.Join(errDisk, err)
	}
	l.correctLost()
	for i, u := range uses {
		if l.has(digests[i], u.Made) {
			return Repeated{i}
		}
	}
	if l.count+len(uses) > maxUses {
		return errFull
	}

	before := p.count()
	for i, u := range uses {
		p.add(digests[i], seconds(u.Expires))
	}
	l.count += p.count() - before
	if err := p.write(records); err != nil {
		return errors.Join(errDisk, err)
	}
	return nil
}

// ensurePart returns the part to which uses are added. If the last part is too old, ensurePart
// deletes the parts whose uses have expired, and begins a new part.
func (l *Log) ensurePart() (*part, error) {
	now := l.c.Now()
	age := now.Sub(l.begun)
	if age >= 0 && age < partFor {
		return l.parts[len(l.parts)-1], nil
	}

	if err := l.ensureMarked(); err != nil {
		return nil, err
	}
	l.begun = time.Time{} // if anything fails, the next call tries again
	if err := l.dropExpired(now); err != nil {
		return nil, err
	}
	p, err := newPart(l.c.Dir, now)
	if err != nil {
		return nil, err
	}
	l.parts = append(l.parts, p)
	l.begun = now
	return p, nil
}

// dropExpired closes all parts, and deletes those whose uses have expired.
func (l *Log) dropExpired(now time.Time) error {
	var kept []*part
	for _, p := range l.parts {
		if err := p.close(); err != nil {
			return err
		}
		l.count -= p.count()
		p.forget(seconds(now))
		l.count += p.count()
		if p.count() > 0 {
			kept = append(kept, p)
			continue
		}
		if err := p.remove(); err != nil {
			return err
		}
	}
	l.parts = kept
	return nil
}

// Close writes everything to the disk and closes the files.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, p := range l.parts {
		errs = append(errs, p.close())
	}
	l.begun = time.Time{}
	if err := errors.Join(errs...); err != nil {
		return err
	}

	mayHaveLost := slices.ContainsFunc(l.parts, func(p *part) bool { return p.failed })
	if !l.marked || mayHaveLost {
		return nil
	}
	l.marked = false
	return l.writeMark(closed)
}
