// Package recordings stores recorded calls. It defines the type [Recording] and the rules for
// uploads, ownership, retention and price.
//
// [Recordings.Ingest] hashes, parses, measures and stores an upload. Senders delete their copy
// after Ingest returns, so the file and its row must then be on disk. The bytes are stored
// unchanged. If the header is wrong, the row contains the corrected facts and lists the repairs.
// Media is converted to WAV or MP3 when it is read.
//
// Sids are random. By default, anyone who knows a Sid may fetch the media, so nothing else may
// reveal a Sid.
//
// A recording can also be announced before its media exists. It then waits for the media.
//
// A [Store] holds the rows, and a [Media] holds the bytes. Packages laml and rest serve recordings
// over HTTP.
package recordings

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings/wav"
)

// DefaultMaxUpload is the maximum size of an upload, 2 GiB, unless [Config] sets another maximum.
const DefaultMaxUpload = 2 << 30

// DefaultWait is how long an announced recording waits for its media after its last change.
const DefaultWait = 24 * time.Hour

// StubLife is how long the row of a deleted recording remains as a stub.
const StubLife = 40 * 24 * time.Hour

// Config holds the dependencies and limits of a [Recordings].
type Config struct {
	Store Store // holds the rows; required
	Media Media // holds the bytes; required

	// SubscriberOf returns the subscriber of a project with the address "/context/name", or "". If
	// SubscriberOf is nil, recordings are not assigned to subscribers by address.
	SubscriberOf func(ctx context.Context, projectID, address string) (subscriberID string, err error)

	// Calls gives access to the calls that this deployment carries. Nil means no calls.
	Calls Calls

	// CheckURL returns a problem that names param if selvage may not send requests to url. Nil
	// accepts every URL.
	CheckURL func(param, url string) error

	// CountUpload counts an upload to a project. If the project had more than perMinute uploads, it
	// returns problem.RateLimited. Nil counts nothing.
	CountUpload func(ctx context.Context, projectID string, perMinute int64) error

	MaxUpload int64         // maximum size of an upload, in bytes; 0 means DefaultMaxUpload
	Wait      time.Duration // how long a recording waits for its media; 0 means DefaultWait
	Links     Links         // signs links to media; nil disables them

	// CheckMaker returns problem.Unauthenticated if the maker of a link was revoked after made, the
	// time when the link was created. A maker is a set of credentials; see [Owner]. If CheckMaker
	// is nil, links that have a maker are refused.
	CheckMaker func(maker string, made time.Time) error

	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil means slog.Default
}

// Recordings implements the rules for recordings. Its methods are safe for concurrent use.
type Recordings struct {
	c Config // with defaults

	quotas    quotas
	measuring chan struct{}           // one token for each upload that is being measured
	decoding  chan struct{}           // the same for uploads that are slow to decode
	lately    *cache.Cache[Recording] // by owner and Sid; players request many ranges
	facts     *cache.Cache[wav.Facts] // by MediaKey
	auth      *cache.Cache[MediaAuth] // by project
	accesses  accessLog
	retaining sync.Mutex // held while retained is used
	retained  time.Time  // when Retention.Apply was called last
}

// New returns Recordings with configuration c.
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
	if c.CountUpload == nil {
		c.CountUpload = func(context.Context, string, int64) error { return nil }
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
		c:         c,
		measuring: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), // leaves the other CPUs to requests
		decoding:  make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4)),
		lately:    cache.New[Recording](c.Now),
		facts:     cache.New[wav.Facts](c.Now),
		auth:      cache.New[MediaAuth](c.Now),
	}
}

// MaxUpload returns the maximum size of an upload, in bytes.
func (r *Recordings) MaxUpload() int64 { return r.c.MaxUpload }

// A Store holds the rows. Its methods are atomic and safe for concurrent use. If a method sets a
// status that the recording's callback wants, it also queues a delivery.
type Store interface {
	// AddRecording inserts a recording, or completes the announced recording that is waiting for
	// this media. The recording gets the MediaKey of a.Twin if the twin is not deleted. If the
	// project has a recording with the same identity that is not deleted, AddRecording changes
	// nothing and returns the existing recording, with added false. Only one of several concurrent
	// callers adds the recording. If a.Sid names a recording that is not waiting, AddRecording
	// returns problem.Invalid. It accepts the recording if a.Late is set and the recording never
	// got media.
	AddRecording(ctx context.Context, r Recording, a Arrival) (kept Recording, added bool, err error)
	// UpdateRecording writes the status and the other Live fields of a waiting recording. If the
	// last change of the stored recording was not at old, it returns problem.Conflict. identity is
	// the identity shared with other announcements of the same recording, or "".
	UpdateRecording(ctx context.Context, r Recording, identity string, old time.Time) error
	// AwaitsMedia reports whether a recording of the call or conference in m is waiting for its
	// media.
	AwaitsMedia(ctx context.Context, projectID string, m Metadata) (bool, error)
	// GiveUpRecordings marks waiting recordings as Absent if their deadline is not after until.
	GiveUpRecordings(ctx context.Context, until time.Time) error
	// FindRecording returns one of the owner's recordings. If the recording is unknown or deleted,
	// FindRecording returns problem.NotFound.
	FindRecording(ctx context.Context, o Owner, sid string) (Recording, error)
	// ListRecordings returns a page, newest first, or sorted by call id if the filter has
	// CallBegins. If too many numbers end with the digits of Party, or Name has no words, it
	// returns problem.Invalid.
	ListRecordings(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error)
	// IndexRecordings prepares recordings that an older version stored, so that searches by number
	// and by name find them.
	IndexRecordings(ctx context.Context) error
	// FindRecordingsBeginning returns at most fifty recordings of the project whose Sids begin with
	// sid. It omits deleted recordings.
	FindRecordingsBeginning(ctx context.Context, projectID, sid string) ([]Recording, error)
	// MarkRecording calls change with the marks of a recording of the project and stores the
	// result. It may call change repeatedly.
	MarkRecording(
		ctx context.Context, projectID, sid string, change func(*Marks) error, at time.Time,
	) (Recording, error)
	// DeleteRecording turns a recording of the project into a stub and returns its MediaKey, which
	// other recordings may share. If the recording is unknown or already deleted, it returns
	// problem.NotFound. If the recording is on hold, it returns ErrHeld. If it has changed after
	// how.Unchanged, it returns problem.Conflict.
	DeleteRecording(ctx context.Context, projectID, sid string, how Removal) (key string, err error)
	// SweepRecordings removes the stubs of recordings that were deleted before the given time.
	SweepRecordings(ctx context.Context, before time.Time) error
	// MediaInUse returns the MediaKeys from first to last, both inclusive, of recordings that are
	// not deleted.
	MediaInUse(ctx context.Context, first, last string) ([]string, error)
	// FindTwin returns the oldest recording of the same project whose file has the same size,
	// SHA-256, format and levels as r. It skips deleted recordings. If no recording matches,
	// FindTwin returns the zero Twin.
	FindTwin(ctx context.Context, r Recording) (Twin, error)
	// StoredBytes returns the bytes that the recordings of a project use.
	StoredBytes(ctx context.Context, projectID string) (int64, error)

	ProjectStore
	DeliveryStore
	RetentionStore
	UsageStore
	AccessStore
}

// A ProjectStore holds what a project determines for its recordings.
type ProjectStore interface {
	// Terms returns a project's terms for uploads. If the project is unknown, it returns
	// problem.NotFound.
	Terms(ctx context.Context, projectID string) (Terms, error)
	// MediaAuth returns who may fetch the media of a project. If the project is unknown, it returns
	// problem.NotFound.
	MediaAuth(ctx context.Context, projectID string) (MediaAuth, error)
	// HasSubscriber reports whether the project has this subscriber.
	HasSubscriber(ctx context.Context, projectID, subscriberID string) (bool, error)
}

// An Arrival contains the facts about an upload that a store needs in addition to the recording.
type Arrival struct {
	Identity      string   // shared by repetitions of the upload; "" without an identity
	SubscriberIDs []string // subscribers that own the recording

	// Given contains the properties of the call that the sender set, without defaults. They take
	// precedence over the fields of the waiting recording.
	Given Metadata

	// Sid names the waiting recording. If Sid is "", the upload completes a waiting recording of
	// the same track and call or conference. If several wait, it completes the oldest.
	Sid string
	// Late allows Sid to name a recording that no longer waits for media.
	Late bool

	// Twin has the same file. If it still exists, the recording gets its MediaKey.
	Twin Twin
}

// A Twin is a stored recording with the same file as an upload. The zero Twin means none.
type Twin struct {
	ID       string
	MediaKey string
}

// A File is media that is being written. It is read only after all bytes were written.
type File = interface {
	io.Writer
	io.ReaderAt
}

// A Media stores immutable bytes under a key, which is the MediaKey of their recording. Its methods
// are safe for concurrent use by several processes.
type Media interface {
	// Put stores the file that write fills, and the small parts that write returns by name. After
	// everything is safe on disk, Put calls commit, which creates the row. If write fails, or
	// commit returns keep false, Put removes the bytes before it returns. If commit fails, a later
	// Sweep removes the bytes unless the row exists. A part never exists without the bytes of its
	// key.
	Put(
		key string,
		write func(f File) (parts map[string][]byte, err error),
		commit func() (keep bool, err error),
	) error
	// Open returns the bytes with this key. If they are in a file on disk, the result is an
	// *os.File, so that the kernel can send it. If the key does not exist, Open returns
	// fs.ErrNotExist.
	Open(key string) (io.ReadSeekCloser, error)
	// ReadPart returns a part that was stored with a key. If the part does not exist, ReadPart
	// returns fs.ErrNotExist.
	ReadPart(key, part string) ([]byte, error)
	// Remove deletes the bytes with this key and the given parts. It ignores missing bytes and
	// parts. Readers that have the bytes open can continue.
	Remove(key string, parts ...string) error
	// Sweep deletes bytes and parts that no Put is writing and whose key is not in use. inUse
	// returns the keys in use from first to last, both inclusive.
	Sweep(ctx context.Context, inUse func(ctx context.Context, first, last string) ([]string, error)) error
}
