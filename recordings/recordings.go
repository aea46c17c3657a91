// Package recordings keeps recorded calls. It defines the noun [Recording] and the rules for
// uploads, ownership, retention and price.
//
// [Recordings.Ingest] hashes, parses, stores and measures an upload. When it returns, bytes and
// row are on disk, because senders then delete their copy. The bytes are kept as they came. If
// the header is wrong, the facts in the row are right and list the repairs. Conversion to WAV
// or MP3 happens while the media is read.
//
// Sids are random. Unless the project says otherwise, everyone who knows a Sid may fetch the
// media, so nothing else ever reveals one.
//
// A recording can exist before its media: it is announced, and then waits.
//
// A [Store] keeps the rows and a [Media] the bytes. Packages laml and rest, below this one,
// speak HTTP.
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

// DefaultMaxUpload is the upload limit if [Config] sets none: 2 GiB.
const DefaultMaxUpload = 2 << 30

// DefaultWait is how long an announced recording waits for its media, counted from its last
// change.
const DefaultWait = 24 * time.Hour

// StubLife is how long the row of a deleted recording is kept as a stub.
const StubLife = 40 * 24 * time.Hour

// Config holds the dependencies and limits of a [Recordings].
type Config struct {
	Store Store // the rows; required
	Media Media // the bytes; required

	// SubscriberOf returns the subscriber of a project with the address "/context/name", or ""
	// if there is none. If it is nil, no recording is tied to an address.
	SubscriberOf func(ctx context.Context, projectID, address string) (subscriberID string, err error)

	// Calls are the calls that this deployment itself carries; nil means none.
	Calls Calls

	// CheckURL returns a problem on param if nothing can ever be sent to a URL. Nil checks nothing.
	CheckURL func(param, url string) error

	MaxUpload int64         // bytes per upload; 0 means DefaultMaxUpload
	Wait      time.Duration // how long a recording waits for its media; 0 means DefaultWait
	Links     Links         // signs links to media; nil disables them

	// CheckMaker returns problem.Unauthenticated if the maker of a link has ended since the link was
	// made. If it is nil, links that have a maker are refused.
	CheckMaker func(maker string, made time.Time) error

	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil means slog.Default
}

// Recordings implements the rules. Its methods are safe for concurrent use.
type Recordings struct {
	store        Store
	media        Media
	subscriberOf func(ctx context.Context, projectID, address string) (string, error)
	calls        Calls
	checkURL     func(param, url string) error
	maxUpload    int64
	wait         time.Duration
	links        Links
	checkMaker   func(maker string, made time.Time) error
	now          func() time.Time
	log          *slog.Logger
	measuring    chan struct{}           // holds one token per upload being measured
	lately       *cache.Cache[Recording] // by owner and Sid; players request many ranges of one media
	facts        *cache.Cache[wav.Facts] // by MediaKey
	auth         *cache.Cache[MediaAuth] // by project
}

// New returns the rules on top of a store and its media.
func New(c Config) *Recordings {
	if c.SubscriberOf == nil {
		c.SubscriberOf = func(context.Context, string, string) (string, error) { return "", nil }
	}
	if c.Calls == nil {
		c.Calls = noCalls{}
	}
	if c.CheckURL == nil {
		c.CheckURL = func(string, string) error { return nil }
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
		store: c.Store, media: c.Media, subscriberOf: c.SubscriberOf, calls: c.Calls,
		checkURL:  c.CheckURL,
		maxUpload: c.MaxUpload, wait: c.Wait, links: c.Links, checkMaker: c.CheckMaker, now: c.Now,
		log: c.Log, measuring: make(chan struct{},
			max(1, runtime.GOMAXPROCS(0)/2)), // the other processors are left to requests
		lately: cache.New[Recording](c.Now), facts: cache.New[wav.Facts](c.Now), auth: cache.New[MediaAuth](c.Now),
	}
}

// MaxUpload returns the largest accepted size of an upload, in bytes.
func (r *Recordings) MaxUpload() int64 { return r.maxUpload }

// A Store keeps the rows. Its methods are atomic and safe for concurrent use. A change
// after which a recording has a status that its callback wants also queues the delivery.
type Store interface {
	// AddRecording inserts a recording, or completes the one that waits for it. If a live
	// recording of the project has the same identity, nothing changes and that recording is
	// returned, with added false; of many concurrent callers, one adds. If the arrival names
	// a Sid that is not waiting, the error is a problem.Invalid, unless the arrival is Late
	// and no media came while it waited.
	AddRecording(ctx context.Context, r Recording, a Arrival) (kept Recording, added bool, err error)
	// UpdateRecording writes the status and the other live fields of a waiting recording. If
	// the recording was last changed at another time than old, the error is a
	// problem.Conflict. identity is shared with other announcements of the same recording,
	// or is "".
	UpdateRecording(ctx context.Context, r Recording, identity string, old time.Time) error
	// AwaitsMedia reports whether a recording of the call or conference waits for its media.
	AwaitsMedia(ctx context.Context, projectID string, m Metadata) (bool, error)
	// GiveUpRecordings turns waiting recordings Absent whose deadline is until or earlier.
	GiveUpRecordings(ctx context.Context, until time.Time) error
	// FindRecording returns a live recording of the owner, or a problem.NotFound.
	FindRecording(ctx context.Context, o Owner, sid string) (Recording, error)
	// ListRecordings returns a page, newest first, or by call id if the filter has CallBegins. If
	// too many numbers end with the digits of Party, the error is a problem.Invalid.
	ListRecordings(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error)
	// ReadNumbers prepares the search by number for recordings of earlier versions.
	ReadNumbers(ctx context.Context) error
	// FindRecordingsBeginning returns at most fifty live recordings of the project whose Sids
	// begin with sid.
	FindRecordingsBeginning(ctx context.Context, projectID, sid string) ([]Recording, error)
	// DeleteRecording turns a live recording of the project into a stub and returns its
	// MediaKey, or a problem.NotFound.
	DeleteRecording(ctx context.Context, projectID, sid string, at time.Time) (key string, err error)
	// SweepRecordings deletes the stubs of recordings deleted before a time.
	SweepRecordings(ctx context.Context, before time.Time) error
	// MediaInUse returns the MediaKeys of live recordings from first to last, both
	// inclusive.
	MediaInUse(ctx context.Context, first, last string) ([]string, error)
	// RecordRate returns the price of a minute in a project, in millionths of its currency,
	// or a problem.NotFound if the project is unknown.
	RecordRate(ctx context.Context, projectID string) (int64, error)
	// MediaAuth returns who may fetch the media of a project, or a problem.NotFound if the
	// project is unknown.
	MediaAuth(ctx context.Context, projectID string) (MediaAuth, error)
	// HasSubscriber reports whether the project has this subscriber.
	HasSubscriber(ctx context.Context, projectID, subscriberID string) (bool, error)

	DeliveryStore
}

// An Arrival is what a store needs to know about an upload in addition to its recording.
type Arrival struct {
	Identity      string   // shared by repetitions of the upload; "" for none
	SubscriberIDs []string // of the project; the recording is tied to them

	// Given is what the sender said about the call, without defaults. It takes precedence
	// over the fields of the recording that waits for this upload.
	Given Metadata

	// Sid is that of the waiting recording. If it is "", the upload goes to the one that
	// waits longest for this track of the call or conference.
	Sid string
	// Late lets Sid name a recording whose wait for media has ended.
	Late bool
}

// Media keeps immutable bytes under a key, the MediaKey of their recording. Its methods are
// safe for concurrent use by several processes.
type Media interface {
	// Put stores the file that write fills, and the small parts that write returns by name.
	// Once everything is safe on disk, Put calls commit, which creates the owning row. If
	// write fails, or commit returns keep false, the bytes are gone when Put returns. If
	// commit fails, Sweep decides. A part never exists without its key.
	Put(
		key string,
		write func(f *os.File) (parts map[string][]byte, err error),
		commit func() (keep bool, err error),
	) error
	// Open returns the bytes of a key. If they are on disk, they are an *os.File, so that the
	// kernel can send them. The error for an absent key is an fs.ErrNotExist.
	Open(key string) (io.ReadSeekCloser, error)
	// ReadPart returns a part of a key. The error for an absent part is an fs.ErrNotExist.
	ReadPart(key, part string) ([]byte, error)
	// Remove deletes the bytes of a key and the given parts. Absent ones are no error. Readers
	// that have the bytes open can continue.
	Remove(key string, parts ...string) error
	// Sweep deletes bytes and parts that nothing owns: those that no Put is writing and whose
	// key is not in use. inUse returns the keys in use from first to last, both inclusive.
	Sweep(ctx context.Context, inUse func(ctx context.Context, first, last string) ([]string, error)) error
}
