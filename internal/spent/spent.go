// Package spent remembers what may be used only once, such as the proofs and assertions of clients.
// It is for a server that shares its data with no other server, and costs a fraction of a row in a
// database.
//
// A [Log] keeps digests in memory and in files. A use is written before Add returns, so it survives
// the process. With Sync, it also survives the machine. A Log is a list of parts, each with a file.
// Each minute, a new part begins. A part is deleted when all uses in it have expired.
package spent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// partFor is how long uses are added to a part. A shorter time needs more parts, and a longer time
// keeps expired uses for longer.
const partFor = time.Minute

// retryAfter is how long after a part was begun a new one may replace it because the disk failed.
const retryAfter = time.Second

// maxUses is the maximum number of uses in a Log. They take about 200 MiB.
const maxUses = 8 << 20

// Config configures a Log.
type Config struct {
	Dir  string           // directory of the files; no other process may use it
	Sync bool             // whether Add waits until the use is on the disk
	Now  func() time.Time // nil means time.Now
}

// A Use is the only use of something.
type Use struct {
	ID      string    // identifies the used thing
	Expires time.Time // when the use may be forgotten
}

// A Repeated error reports that something was used before.
type Repeated struct{ Index int } // index in the arguments of Add

func (r Repeated) Error() string { return "it was used before" }

var errFull = problem.New(problem.Unavailable, "overloaded", "too many requests; try again later")

// A Log remembers uses. Its methods may be called concurrently.
type Log struct {
	c Config

	mu    sync.Mutex
	parts []*part   // the oldest first; uses are added to the last one
	begun time.Time // when the last part was begun
	count int       // number of uses in parts
}

// A digest identifies a use in memory and in files.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:])
}

// Open opens the log in a directory, which it creates if necessary. It reads the uses that have not
// expired.
func Open(c Config) (*Log, error) {
	if c.Now == nil {
		c.Now = time.Now
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
		l.count += len(p.uses)
	}
	return l, nil
}

// Learn adds uses that are already stored elsewhere. It does not write them.
func (l *Log) Learn(uses ...Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &part{uses: make(map[digest]struct{}, len(uses))}
	for _, u := range uses {
		p.add(digestOf(u.ID), seconds(u.Expires))
	}
	l.count += len(p.uses)
	l.parts = append([]*part{p}, l.parts...)
}

// Has reports whether something was used.
func (l *Log) Has(id string) bool {
	d := digestOf(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.has(d)
}

func (l *Log) has(d digest) bool {
	for _, p := range l.parts {
		if _, ok := p.uses[d]; ok {
			return true
		}
	}
	return false
}

// Add adds uses, all or none. If one of them is known, Add returns a Repeated error. If Add returns
// another error, the uses may count as used.
func (l *Log) Add(uses ...Use) error {
	p, end, err := l.add(uses)
	if err == nil && l.c.Sync {
		err = p.sync(end)
	}
	return err
}

// Claim is like Add, but never waits for the disk.
func (l *Log) Claim(uses ...Use) error {
	_, _, err := l.add(uses)
	return err
}

// add writes uses. It returns the part that contains them, and the end of the last one in its file.
func (l *Log) add(uses []Use) (p *part, end int64, err error) {
	records := make([]byte, 0, len(uses)*recordSize)
	digests := make([]digest, len(uses))
	for i, u := range uses {
		digests[i] = digestOf(u.ID)
		records = appendRecord(records, digests[i], seconds(u.Expires))
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if p, err = l.current(); err != nil {
		return nil, 0, err
	}
	for i, d := range digests {
		if l.has(d) {
			return nil, 0, Repeated{i}
		}
	}
	if l.count+len(uses) > maxUses {
		return nil, 0, errFull
	}

	before := len(p.uses)
	for i, u := range uses {
		p.add(digests[i], seconds(u.Expires))
	}
	l.count += len(p.uses) - before
	end, err = p.write(records)
	return p, end, err
}

// current returns the part to which uses are added. It begins a new part if necessary, and deletes
// the parts whose uses have expired.
func (l *Log) current() (*part, error) {
	now := l.c.Now()
	if age := now.Sub(l.begun); age >= 0 && age < partFor {
		p := l.parts[len(l.parts)-1]
		if !p.failed.Load() || age < retryAfter {
			return p, nil
		}
	}

	var kept []*part
	for _, p := range l.parts {
		_ = p.close(l.c.Sync) // callers that wait for the disk get the error
		if p.until >= seconds(now) {
			kept = append(kept, p)
			continue
		}
		l.count -= len(p.uses)
		if err := p.remove(); err != nil {
			return nil, err
		}
	}
	l.parts = kept

	p, err := newPart(l.c.Dir, now, l.c.Sync)
	if err != nil {
		return nil, err
	}
	l.parts = append(l.parts, p)
	l.begun = now
	return p, nil
}

// Close closes the files.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, p := range l.parts {
		errs = append(errs, p.close(l.c.Sync))
	}
	l.begun = time.Time{}
	return errors.Join(errs...)
}
