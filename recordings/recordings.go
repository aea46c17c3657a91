// Package recordings keeps calls that were recorded: the noun [Recording], what
// an upload must be, whose it is, how long it is kept and what it costs.
//
// An upload is hashed, parsed and stored in one pass, and it is on disk, bytes
// and row, before [Recordings.Ingest] returns: senders delete their copy then.
// The bytes stay as they came; where a header is wrong, the facts in the row are
// right and say what was repaired. Sids are random: whoever knows one may fetch
// the media, so nothing else ever gives one away.
//
// Rows are kept by a [Store] and bytes by a [Media]; HTTP is spoken by package
// recordings/laml.
package recordings

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/recent"
)

// DefaultMaxUpload bounds an upload where [Config] does not: 2 GiB.
const DefaultMaxUpload = 2 << 30

// StubLife is how long the row of a deleted recording is kept.
const StubLife = 40 * 24 * time.Hour

// Config says what a [Recordings] stands on.
type Config struct {
	Store Store // the rows; required
	Media Media // the bytes; required

	// SubscriberOf gives the subscriber of a project whose address is
	// "/context/name", or "" if it is nobody's. nil ties no recording to an address.
	SubscriberOf func(ctx context.Context, projectID, address string) (subscriberID string, err error)

	MaxUpload int64            // bytes of one upload; 0 means DefaultMaxUpload
	Now       func() time.Time // nil means time.Now
}

// Recordings is the rules. Its methods may be called at once from any number of
// goroutines.
type Recordings struct {
	store        Store
	media        Media
	subscriberOf func(ctx context.Context, projectID, address string) (string, error)
	maxUpload    int64
	now          func() time.Time
	lately       *recent.Cache[Recording] // by project and sid: one media is asked for in many ranges
}

// New makes the rules over a store and its media.
func New(c Config) *Recordings {
	if c.SubscriberOf == nil {
		c.SubscriberOf = func(context.Context, string, string) (string, error) { return "", nil }
	}
	if c.MaxUpload == 0 {
		c.MaxUpload = DefaultMaxUpload
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Recordings{store: c.Store, media: c.Media, subscriberOf: c.SubscriberOf, maxUpload: c.MaxUpload, now: c.Now, lately: recent.New[Recording](c.Now)}
}

// MaxUpload is the largest upload taken, in bytes.
func (r *Recordings) MaxUpload() int64 { return r.maxUpload }

// A Store keeps the rows. Its methods may be called at once; each is atomic.
type Store interface {
	// AddRecording inserts a recording, tied to subscribers of its project. If a
	// live recording of the project has the same identity, nothing is inserted and
	// that one is given, with added false; of many callers one adds. "" is no
	// identity.
	AddRecording(ctx context.Context, r Recording, identity string, subscriberIDs []string) (kept Recording, added bool, err error)
	// FindRecording gives a live recording of the owner, else a problem.NotFound.
	FindRecording(ctx context.Context, o Owner, sid string) (Recording, error)
	// ListRecordings gives a page, newest first.
	ListRecordings(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error)
	// DeleteRecording turns a live recording of the project into a stub and gives
	// its ID; else a problem.NotFound.
	DeleteRecording(ctx context.Context, projectID, sid string, at time.Time) (id string, err error)
	// SweepRecordings forgets the stubs deleted before a time.
	SweepRecordings(ctx context.Context, before time.Time) error
	// MediaInUse gives the IDs of live recordings from first to last, both included.
	MediaInUse(ctx context.Context, first, last string) ([]string, error)
	// RecordRate gives the price of a minute in a project, in millionths of its
	// currency; a problem.NotFound if there is no such project.
	RecordRate(ctx context.Context, projectID string) (int64, error)
	// HasSubscriber tells whether a subscriber is one of the project.
	HasSubscriber(ctx context.Context, projectID, subscriberID string) (bool, error)
}

// Media keeps immutable bytes by key, the ID of their recording. Its methods may
// be called at once, by several processes.
type Media interface {
	// Put stores what write puts into the file, and once that is safe on disk calls
	// commit, which makes the row that owns it. If write fails, or commit does not
	// want to keep the bytes, they are gone when Put returns; if commit fails, Sweep
	// decides.
	Put(key string, write func(f *os.File) error, commit func() (keep bool, err error)) error
	// Open gives the bytes of a key, from disk as an *os.File, so that the kernel can
	// send them. An absent key is an fs.ErrNotExist.
	Open(key string) (io.ReadSeekCloser, error)
	// Remove deletes the bytes of a key; an absent one is no error. Who has them open
	// may read on.
	Remove(key string) error
	// Sweep deletes what nobody owns: bytes that are not being Put, and whose key is
	// not in use. inUse gives the keys in use from first to last, both included.
	Sweep(ctx context.Context, inUse func(ctx context.Context, first, last string) ([]string, error)) error
}
