// Package recordings keeps calls that were recorded: the noun [Recording], what
// an upload must be, whose it is, how long it is kept and what it costs.
//
// An upload is hashed, parsed, stored and measured, and it is on disk, bytes and
// row, before [Recordings.Ingest] returns: senders delete their copy then.
// The bytes stay as they came; where a header is wrong, the facts in the row are
// right and say what was repaired. As WAV or MP3 they are converted while they are
// read. Sids are random: unless its project says otherwise, whoever knows one may
// fetch the media, so nothing else ever gives one away.
//
// A recording may be there before its media: it is announced, and waits.
//
// Rows are kept by a [Store] and bytes by a [Media]; HTTP is spoken by packages laml
// and rest under it.
package recordings

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings/wav"
)

// DefaultMaxUpload bounds an upload where [Config] does not: 2 GiB.
const DefaultMaxUpload = 2 << 30

// DefaultWait is how long a recording that was announced waits for its media,
// from the last that was heard of it.
const DefaultWait = 24 * time.Hour

// StubLife is how long the row of a deleted recording is kept.
const StubLife = 40 * 24 * time.Hour

// Config says what a [Recordings] stands on.
type Config struct {
	Store Store // the rows; required
	Media Media // the bytes; required

	// SubscriberOf returns the subscriber of a project whose address is
	// "/context/name", or "" if it is nobody's. nil ties no recording to an address.
	SubscriberOf func(ctx context.Context, projectID, address string) (subscriberID string, err error)

	MaxUpload int64            // bytes of one upload; 0 means DefaultMaxUpload
	Wait      time.Duration    // how long a recording waits for its media; 0 means DefaultWait
	Links     Links            // signs links to media; nil makes none and takes none
	Now       func() time.Time // nil means time.Now
	Log       *slog.Logger     // nil means slog.Default
}

// Recordings is the rules. Its methods may be called at once from any number of
// goroutines.
type Recordings struct {
	store        Store
	media        Media
	subscriberOf func(ctx context.Context, projectID, address string) (string, error)
	maxUpload    int64
	wait         time.Duration
	links        Links
	now          func() time.Time
	log          *slog.Logger
	measuring    chan struct{}           // full when as many measure as may
	lately       *cache.Cache[Recording] // by owner and sid: one media is asked for in many ranges
	facts        *cache.Cache[wav.Facts] // by the key of the media
	auth         *cache.Cache[MediaAuth] // by project
}

// New makes the rules over a store and its media.
func New(c Config) *Recordings {
	if c.SubscriberOf == nil {
		c.SubscriberOf = func(context.Context, string, string) (string, error) { return "", nil }
	}
	if c.MaxUpload == 0 {
		c.MaxUpload = DefaultMaxUpload
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Recordings{
		store: c.Store, media: c.Media, subscriberOf: c.SubscriberOf, maxUpload: c.MaxUpload, wait: c.Wait,
		links: c.Links, now: c.Now,
		log: c.Log, measuring: make(chan struct{},
			max(1, runtime.GOMAXPROCS(0)/2)), // the rest is for whoever waits for an answer
		lately: cache.New[Recording](c.Now), facts: cache.New[wav.Facts](c.Now), auth: cache.New[MediaAuth](c.Now),
	}
}

// MaxUpload is the largest upload taken, in bytes.
func (r *Recordings) MaxUpload() int64 { return r.maxUpload }

// A Store keeps the rows. Its methods may be called at once; each is atomic.
type Store interface {
	// AddRecording inserts a recording, or completes the one that waits for it. If a
	// live recording of the project has the same identity, nothing is changed and
	// that one is given, with added false; of many callers one adds. If the arrival
	// names a Sid that does not wait, it is a problem.Invalid.
	AddRecording(ctx context.Context, r Recording, a Arrival) (kept Recording, added bool, err error)
	// UpdateRecording writes the status of a recording that waits and what belongs to
	// it, if it was last changed at the time old; else a problem.Conflict. identity is what
	// another announcement of the same has too, or "".
	UpdateRecording(ctx context.Context, r Recording, identity string, old time.Time) error
	// AwaitsMedia tells whether a recording of the call or conference waits.
	AwaitsMedia(ctx context.Context, projectID string, m Metadata) (bool, error)
	// GiveUpRecordings makes Absent what has waited until a time.
	GiveUpRecordings(ctx context.Context, until time.Time) error
	// FindRecording returns a live recording of the owner, else a problem.NotFound.
	FindRecording(ctx context.Context, o Owner, sid string) (Recording, error)
	// ListRecordings returns a page, newest first; of calls that begin so, by their ids.
	ListRecordings(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error)
	// FindRecordingsBeginning returns live recordings of the project whose Sids begin so,
	// fifty at most.
	FindRecordingsBeginning(ctx context.Context, projectID, sid string) ([]Recording, error)
	// DeleteRecording turns a live recording of the project into a stub and gives
	// its MediaKey; else a problem.NotFound.
	DeleteRecording(ctx context.Context, projectID, sid string, at time.Time) (key string, err error)
	// SweepRecordings forgets the stubs deleted before a time.
	SweepRecordings(ctx context.Context, before time.Time) error
	// MediaInUse returns the MediaKeys of live recordings from first to last, both
	// included.
	MediaInUse(ctx context.Context, first, last string) ([]string, error)
	// RecordRate returns the price of a minute in a project, in millionths of its
	// currency; a problem.NotFound if there is no such project.
	RecordRate(ctx context.Context, projectID string) (int64, error)
	// MediaAuth tells who may fetch the media of a project; a problem.NotFound if
	// there is no such project.
	MediaAuth(ctx context.Context, projectID string) (MediaAuth, error)
	// HasSubscriber tells whether a subscriber is one of the project.
	HasSubscriber(ctx context.Context, projectID, subscriberID string) (bool, error)
}

// An Arrival is what a store is told of an upload beside its recording.
type Arrival struct {
	Identity      string   // what a repeated upload has too; "" for none
	SubscriberIDs []string // of the project: whom the recording is tied to

	// Given is what the sender said of the call, without defaults. It goes before
	// what is known of the recording that waits for this upload.
	Given Metadata
	Sid   string // of that recording; "" finds the one that waits longest for the track of the call or conference
}

// Media keeps immutable bytes by key, the MediaKey of their recording. Its
// methods may be called at once, by several processes.
type Media interface {
	// Put stores what write puts into the file, and the small parts that it gives by
	// name. Once all is safe on disk it calls commit, which makes the row that owns
	// it. If write fails, or commit does not want to keep the bytes, they are gone when
	// Put returns; if commit fails, Sweep decides. No part is ever there without its key.
	Put(key string, write func(f *os.File) (parts map[string][]byte, err error), commit func() (keep bool, err error)) error
	// Open returns the bytes of a key, from disk as an *os.File, so that the kernel can
	// send them. An absent key is an fs.ErrNotExist.
	Open(key string) (io.ReadSeekCloser, error)
	// ReadPart returns a part of a key. An absent one is an fs.ErrNotExist.
	ReadPart(key, part string) ([]byte, error)
	// Remove deletes the bytes of a key, and these parts of it; what is absent is no
	// error. Who has the bytes open may read on.
	Remove(key string, parts ...string) error
	// Sweep deletes what nobody owns: bytes and parts that are not being Put, and whose key is
	// not in use. inUse gives the keys in use from first to last, both included.
	Sweep(ctx context.Context, inUse func(ctx context.Context, first, last string) ([]string, error)) error
}
